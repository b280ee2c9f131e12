package client

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// RemovedNode is a node that was removed from the cluster, and must not join again before it
// is admitted.
type RemovedNode struct {
	ID        string    `json:"id"`
	RemovedAt time.Time `json:"removed_at"`
}

// Member is a node of the cluster.
type Member struct {
	ID           string `json:"id"`
	Address      string `json:"address"`
	HTTPAddress  string `json:"http_address"`
	Role         string `json:"role"` // "leader" or "follower"
	Voter        bool   `json:"voter"`
	NonVoter     bool   `json:"non_voter"` // it was started with --non-voter
	Alive        bool   `json:"alive"`
	Draining     bool   `json:"draining"` // it is drained, or about to stop: it does not lead, and clients should use other nodes
	AppliedIndex uint64 `json:"applied_index"`
	Lag          uint64 `json:"lag"`       // log entries behind the leader
	DiskFree     uint64 `json:"disk_free"` // bytes on the disk of its data directory; 0 while it does not reply
	DiskLow      bool   `json:"disk_low"`  // that is below its low-water mark
	Version      string `json:"version"`

	ClusterVersion    uint32 `json:"cluster_version"`     // in the node's state
	MinClusterVersion uint32 `json:"min_cluster_version"` // that the node's release runs; 0 while it does not reply
	MaxClusterVersion uint32 `json:"max_cluster_version"`

	// Admission is what a node needs to become a member, as the node that replied knows it: the
	// same for all members. Empty: the caller may not know it, or that node is of an older release.
	Admission string `json:"admission,omitzero"`
}

// Health is the cluster's state for an operator.
type Health struct {
	Healthy          bool     `json:"healthy"`           // despite problems that are only to be solved in time
	FailureTolerance int      `json:"failure_tolerance"` // voters that may still fail
	Severity         string   `json:"severity"`          // none, warning or critical; empty: an older node
	Reasons          []string `json:"reasons"`
	// Problems are the reasons with their severities.
	Problems       []Problem `json:"problems"`
	ClusterVersion uint32    `json:"cluster_version"`
	Upgrade        string    `json:"upgrade"` // what a raise of the cluster version waits for; empty: there is none to make
}

// Problem is a reason of Health.
type Problem struct {
	Severity  string    `json:"severity"` // warning or critical
	Reason    string    `json:"reason"`
	Kind      string    `json:"kind"`          // what it is about, such as node_down; empty: an older node
	Unhealthy bool      `json:"unhealthy"`     // the cluster is not healthy because of it
	Node      string    `json:"node,omitzero"` // the node that it is about; empty: no single one
	At        time.Time `json:"at,omitzero"`   // the instant that it is about; zero: there is none
}

// Shards is how the jobs of the cluster are spread over Raft groups.
type Shards struct {
	Shards uint64  `json:"shards"`
	Groups []Group `json:"groups"`
}

// Group is a Raft group.
type Group struct {
	Group   uint64  `json:"group"`
	Shard   *uint64 `json:"shard,omitzero"`   // from 0 on; nil: it has no jobs
	Leader  string  `json:"leader,omitzero"`  // a node; empty: none is known
	Address string  `json:"address,omitzero"` // where clients reach it
	Term    uint64  `json:"term,omitzero"`
}

// Verification compares the states of all nodes at one index of the log.
type Verification struct {
	Equal   bool         `json:"equal"`
	Index   uint64       `json:"index"`
	Digests []NodeDigest `json:"digests"`
}

// NodeDigest is one node's part of a Verification.
type NodeDigest struct {
	ID     string `json:"id"`
	Digest string `json:"digest"` // empty when Error is set
	Error  string `json:"error,omitzero"`
}

// OperatorTime bounds an operator's call that changes the cluster or compares its nodes.
const OperatorTime = 2 * time.Minute

const removedPath = "/v1/cluster/removed"

// Members lists the nodes of the cluster.
func (c Cluster) Members(ctx context.Context) ([]Member, error) {
	var out memberList
	_, err := c.client.call(ctx, request{method: http.MethodGet, path: membersPath, repeat: true}, &out)
	if err == nil {
		c.client.nodes.meet(out.Members)
	}
	for i := range out.Members {
		out.Members[i].Admission = out.Admission
	}
	return out.Members, err
}

// Shards lists the Raft groups of the cluster with their shards and leaders, as the node knows them.
func (c Cluster) Shards(ctx context.Context) (Shards, error) {
	return read[Shards](ctx, c.client, "/v1/cluster/shards")
}

// Health returns the health of the cluster.
func (c Cluster) Health(ctx context.Context) (Health, error) {
	return read[Health](ctx, c.client, "/v1/cluster/health")
}

// Verify compares the states of all nodes at one index of the log. It blocks until all have
// replied, for up to two minutes.
func (c Cluster) Verify(ctx context.Context) (Verification, error) {
	return ask[Verification](ctx, c.client, request{method: http.MethodPost, path: "/v1/cluster/verify", work: OperatorTime, repeat: true, reads: true})
}

// TransferLeadership transfers leadership to the node id, or to the best follower if that is
// empty. It blocks until the transfer is done. moved is false if the node leads already.
func (c Cluster) TransferLeadership(ctx context.Context, id string) (moved bool, err error) {
	in := struct {
		ID string `json:"id,omitzero"`
	}{id}
	var out transfer
	_, err = c.client.call(ctx, request{method: http.MethodPost, path: "/v1/cluster/transfer-leadership", in: in, work: OperatorTime}, &out)
	return out.Moved != nil && *out.Moved, err
}

// RemoveMember removes a node from the cluster for good. It fails if the quorum would be
// lost. The node cannot join again before Admit.
func (c Cluster) RemoveMember(ctx context.Context, id string) error {
	return c.client.operate(ctx, request{method: http.MethodDelete, path: membersPath + "/" + segment(id)})
}

// Removed lists the nodes that were removed and must not join again.
func (c Cluster) Removed(ctx context.Context) ([]RemovedNode, error) {
	list, err := read[removedList](ctx, c.client, removedPath)
	return list.Removed, err
}

// Admit lets a node that was removed join again, with an empty data directory.
func (c Cluster) Admit(ctx context.Context, id string) error {
	return c.client.operate(ctx, request{method: http.MethodDelete, path: removedPath + "/" + segment(id)})
}

// Join makes a node join the cluster whose nodes have the gossip addresses addrs
// (host:port). The client must have the address of only that node.
func (c Node) Join(ctx context.Context, addrs []string) error {
	in := struct {
		Addresses []string `json:"addresses"`
	}{addrs}
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/join", in: in, here: true})
}

// Leave makes a node leave its cluster and stop. The client must have the address of only
// that node.
func (c Node) Leave(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/leave", here: true})
}

func (c *Client) operate(ctx context.Context, q request) error {
	q.work = OperatorTime
	_, err := ask[done](ctx, c, q)
	return err
}

const (
	admissionPath   = "/v1/cluster/admission"
	invitationsPath = "/v1/cluster/invitations"
)

// What a node needs to become a member of the cluster.
const (
	// AdmissionOpen is no more than to find the cluster.
	AdmissionOpen = "open"
	// AdmissionInvited is a certificate of the cluster, or an invitation.
	AdmissionInvited = "invited"
)

// Invitation is an invitation without its text, which is stored nowhere.
type Invitation struct {
	ID        string    `json:"id"`
	Node      string    `json:"node,omitzero"` // that may use it; empty: any
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Expired   bool      `json:"expired,omitzero"`
	UsedBy    string    `json:"used_by,omitzero"` // the server that has used it: its node, a dot and its incarnation
	UsedAt    time.Time `json:"used_at,omitzero"`
}

// Invited is an invitation that was just made.
type Invited struct {
	ID string `json:"id"`
	// Invitation is its text, which is shown this once.
	Invitation string    `json:"invitation,omitzero"`
	Node       string    `json:"node,omitzero"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Admission returns what a node needs to become a member: AdmissionOpen or AdmissionInvited.
func (c Cluster) Admission(ctx context.Context) (string, error) {
	a, err := read[admission](ctx, c.client, admissionPath)
	return a.Mode, err
}

// SetAdmission sets what a node needs to become a member.
func (c Cluster) SetAdmission(ctx context.Context, mode string) error {
	_, err := ask[admission](ctx, c.client, request{method: http.MethodPut, path: admissionPath, in: admission{mode}, repeat: true})
	return err
}

// Invite makes an invitation, with which one node may become a member: the node, or any if that
// is empty. It is valid for the time of lasts; 0: an hour. It is not repeated when its outcome is
// unknown, because the text would be lost.
func (c Cluster) Invite(ctx context.Context, node string, lasts time.Duration) (Invited, error) {
	in := struct {
		Node      string  `json:"node,omitzero"`
		ExpiresIn float64 `json:"expires_in,omitzero"`
	}{node, lasts.Seconds()}
	return ask[Invited](ctx, c.client, request{method: http.MethodPost, path: invitationsPath, in: in})
}

// Invitations lists the invitations by their ids.
func (c Cluster) Invitations(ctx context.Context) ([]Invitation, error) {
	list, err := read[invitationList](ctx, c.client, invitationsPath)
	return list.Invitations, err
}

// Uninvite revokes an invitation. A node that has used it stays a member.
func (c Cluster) Uninvite(ctx context.Context, id string) error {
	return c.client.end(ctx, http.MethodDelete, invitationsPath+"/"+segment(id), nil, new(done))
}

// The modes of a cluster as a standby.
const (
	StandbyNone      = "none"      // it never was one
	StandbyFollowing = "following" // it only follows its primary
	StandbyPromoted  = "promoted"  // it was one
)

// Standby is what is known of a cluster as a standby.
type Standby struct {
	Mode    string `json:"mode"`
	Primary string `json:"primary"` // id of the cluster that it follows, or followed
	// Index and Term are the last entry of the primary's log whose effects are here.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// PrimaryIndex is how far the primary was at the last contact.
	PrimaryIndex uint64 `json:"primary_index"`
	LagEntries   uint64 `json:"lag_entries"`
	// LagSeconds is how long ago it last had everything; nil: unknown. After a promotion it is
	// what it was then.
	LagSeconds    *float64   `json:"lag_seconds,omitempty"`
	LastContactAt *time.Time `json:"last_contact_at,omitempty"`
	CaughtUpAt    *time.Time `json:"caught_up_at,omitempty"`
	PromotedAt    *time.Time `json:"promoted_at,omitempty"`
	Connected     bool       `json:"connected"`
	Source        string     `json:"source"`  // address of the node that sends the log; "": none does
	Problem       string     `json:"problem"` // why it does not follow; "": it does
	Reseed        bool       `json:"reseed"`  // it must be made again from a backup
}

// Standby returns how far a standby is behind its primary.
func (c Cluster) Standby(ctx context.Context) (Standby, error) {
	return read[Standby](ctx, c.client, "/v1/cluster/standby")
}

// PromoteStandby makes a standby take operations of clients, for good, and returns what was known
// of it before. While the primary still sends its log it fails, unless force is set.
func (c Cluster) PromoteStandby(ctx context.Context, force bool) (Standby, error) {
	in := struct {
		Force bool `json:"force,omitzero"`
	}{force}
	return ask[Standby](ctx, c.client, request{method: http.MethodPost, path: "/v1/cluster/standby/promote", in: in, work: OperatorTime})
}

// Clocks compares the clocks of the nodes, as the leader sees them.
type Clocks struct {
	MaxOffset float64 `json:"max_offset"` // seconds that a clock may be off the majority's for its node to lead
	// Agreed is set if a majority of the voters' clocks agrees with Majority within
	// MaxOffset. Otherwise Majority is the lower median of the clocks of the nodes that
	// replied; nil: too few replied.
	Agreed   bool       `json:"agreed"`
	Majority *time.Time `json:"majority,omitempty"`
	// ClusterAhead is how many seconds the queue's clock is ahead of Majority.
	ClusterAhead float64     `json:"cluster_ahead"`
	Clocks       []NodeClock `json:"clocks"`
}

// NodeClock is one node's clock.
type NodeClock struct {
	ID       string  `json:"id"`
	Voter    bool    `json:"voter"`
	Answered bool    `json:"answered"`
	Offset   float64 `json:"offset"` // seconds ahead of the majority's
	Within   float64 `json:"within"` // the error of Offset, in seconds
	Off      bool    `json:"off"`    // by more than MaxOffset: the node does not lead
}

// Clocks asks all nodes for the time.
func (c Cluster) Clocks(ctx context.Context) (Clocks, error) {
	return read[Clocks](ctx, c.client, "/v1/cluster/clock")
}

// ResetClock sets the queue's clock back to the clock of the majority of the nodes. It fails
// unless the queue's clock is ahead by more than MaxOffset.
func (c Cluster) ResetClock(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/clock/reset"})
}

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
