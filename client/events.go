package client

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// ClusterEvent is something that happened to the cluster, as one node saw it.
type ClusterEvent struct {
	Number  uint64            `json:"number"` // of the node, from 1 since its process started
	At      time.Time         `json:"at"`
	Kind    string            `json:"kind"`  // such as member, leader, clock or disk
	Level   string            `json:"level"` // info, warn or error
	Event   string            `json:"event"`
	Details map[string]string `json:"details"`
}

// ClusterEvents is what one node has seen.
type ClusterEvents struct {
	Node      string         `json:"node"`
	StartedAt time.Time      `json:"started_at,omitzero"` // the process
	Events    []ClusterEvent `json:"events"`              // oldest first
}

// Events lists what the client's node has seen happen to the cluster: the last 1000 events
// since it started, or those from a number on. The client should have the address of only that
// node.
func (c Node) Events(ctx context.Context, from uint64) (ClusterEvents, error) {
	path := "/v1/cluster/events"
	if from > 0 {
		path += "?from=" + strconv.FormatUint(from, 10)
	}
	return ask[ClusterEvents](ctx, c.client, request{method: http.MethodGet, path: path, repeat: true, here: true})
}

// NodeInfo describes the build and the settings of one node.
type NodeInfo struct {
	ID                string        `json:"id"`
	Release           string        `json:"release"`
	Revision          string        `json:"revision"` // commit of the build
	Go                string        `json:"go"`
	Platform          string        `json:"platform"`
	StartedAt         time.Time     `json:"started_at,omitzero"`
	Draining          bool          `json:"draining"`
	StoreFormat       uint32        `json:"store_format"`
	WireVersion       uint32        `json:"wire_version"`
	BackupFormat      uint32        `json:"backup_format"`
	MinClusterVersion uint32        `json:"min_cluster_version"`
	MaxClusterVersion uint32        `json:"max_cluster_version"`
	Settings          []NodeSetting `json:"settings"`
}

// NodeSetting is one setting of a node.
type NodeSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Hidden bool   `json:"hidden,omitzero"` // there is a value, which may be a secret
}

// NodeLog is the last lines of a node's log.
type NodeLog struct {
	Node  string   `json:"node"`
	Lines []string `json:"lines"` // the oldest first, in the format of --log-format
}

// Log returns the last lines of the log of the client's node, as they are in its memory: some
// hundred KiB, since its process began. The client should have the address of only that node.
func (c Node) Log(ctx context.Context) (NodeLog, error) {
	return ask[NodeLog](ctx, c.client, request{method: http.MethodGet, path: "/v1/cluster/node/log", repeat: true, here: true})
}

// SetLogLevel sets the lowest level that the client's node logs: debug, info, warn or error, until
// its next SIGHUP or restart. The client must have the address of only that node.
func (c Node) SetLogLevel(ctx context.Context, level string) error {
	in := struct {
		Level string `json:"level"`
	}{level}
	return c.client.operate(ctx, request{method: http.MethodPut, path: "/v1/cluster/node/log", in: in, here: true, repeat: true})
}

// Info describes the client's node. The client should have the address of only that node.
func (c Node) Info(ctx context.Context) (NodeInfo, error) {
	return ask[NodeInfo](ctx, c.client, request{method: http.MethodGet, path: "/v1/cluster/node", repeat: true, here: true})
}

// Drain drains the client's node: it is not ready, does not lead, and ends waiting reserves,
// until Undrain or its restart. The client must have the address of only that node.
func (c Node) Drain(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/drain", here: true, repeat: true})
}

// Undrain ends a drain of the client's node, if there is one. The client must have the address
// of only that node.
func (c Node) Undrain(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodDelete, path: "/v1/cluster/drain", here: true, repeat: true})
}
