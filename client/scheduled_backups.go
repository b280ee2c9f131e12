package client

import (
	"context"
	"time"
)

// ScheduledBackups is the backups that the cluster has made by itself.
type ScheduledBackups struct {
	Backups []ScheduledBackup `json:"backups"` // the newest first
	Nodes   []NodeBackups     `json:"nodes"`
}

// ScheduledBackup is a file in the --backup-dir of one node or of several, which may share it.
type ScheduledBackup struct {
	Name      string    `json:"name"`
	Index     uint64    `json:"index"` // it has everything up to this entry of the log
	PlannedAt time.Time `json:"planned_at"`
	TakenAt   time.Time `json:"taken_at,omitzero"` // zero: its header cannot be read
	Bytes     int64     `json:"bytes"`
	Base      string    `json:"base,omitempty"` // the file that it builds on; empty: it is whole, or its header cannot be read
	// Verified: it was read back when it was made, and still has its beginning and its end, as
	// have those that it builds on.
	Verified bool     `json:"verified"`
	Problem  string   `json:"problem,omitempty"` // why it is not verified
	Nodes    []string `json:"nodes"`
}

// NodeBackups is what one node replied about its scheduled backups.
type NodeBackups struct {
	ID        string `json:"id"`
	Scheduled bool   `json:"scheduled"`       // it has a --backup-schedule
	More      int    `json:"more"`            // older backups that it did not list
	Error     string `json:"error,omitempty"` // why it did not reply, or cannot use its directory
}

// Scheduled lists the scheduled backups of all nodes. It needs no leader.
func (c Backups) Scheduled(ctx context.Context) (ScheduledBackups, error) {
	return read[ScheduledBackups](ctx, c.client, "/v1/cluster/backups")
}
