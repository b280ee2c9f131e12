package job

import "time"

// ClusterEvent is something that happened to the cluster, as one node saw it.
type ClusterEvent struct {
	Number  uint64 // of the node, from 1 since its process started
	At      time.Time
	Kind    string // such as member, leader, clock or disk
	Level   string // info, warn or error
	Text    string
	Details []EventDetail
}

// EventDetail is one detail of a ClusterEvent.
type EventDetail struct{ Name, Value string }

// About describes a node's build and configuration.
type About struct {
	ID       string
	Release  string
	Revision string // commit of the build
	Go       string // version that built it
	Platform string
	Started  time.Time

	StoreFormat, WireVersion, BackupFormat uint32
	Runs                                   Versions // of the cluster

	Settings []NodeSetting // in the order of their names
}

// StartedMS returns Started in Unix milliseconds; 0: it is not known.
func (a *About) StartedMS() int64 {
	if a.Started.IsZero() {
		return 0
	}
	return a.Started.UnixMilli()
}

// NodeSetting is one setting of a node. A secret has no value.
type NodeSetting struct {
	Name, Value string
	Hidden      bool // there is a value that is not shown
}

// The bounds of a backup. It keeps files of the store, and a node makes one at a time, so it
// must end.
const (
	MaxBackupTime = 12 * time.Hour
	MinBackupRate = 64 << 10 // bytes a second
	MaxBackupRate = 1 << 40
)

// BackupOptions are the options of a backup.
type BackupOptions struct {
	// Rate of the file, in bytes a second, from MinBackupRate to MaxBackupRate, and enough for
	// the state in MaxBackupTime; 0: without limit.
	Rate  int64
	Stale bool // what the node has now, even if it is behind
	// Base is a backup with whose files this one is incremental, if the node has the store that
	// Base is of; nil: it is whole.
	Base *BackupBase
}

// Verification compares the nodes' states at one index of the log.
type Verification struct {
	Index   uint64
	Equal   bool // every member answered and all digests are the same
	Digests []NodeDigest
}

// NodeDigest is one node's part of a Verification.
type NodeDigest struct {
	ID     string
	Digest string // hexadecimal; empty when Error is set
	Error  string
}

// Sharding is how a cluster's jobs are spread over Raft groups, as a node knows it.
type Sharding struct {
	Shards int
	Groups []Group // by their numbers
}

// Group is a Raft group.
type Group struct {
	Number  uint32
	Shard   int    // -1: it has no jobs
	Leader  string // node id; empty: the node knows none
	Address string // where clients reach the leader; empty: the node does not know it
	Term    uint64
}

// Readiness is whether a node can serve clients now.
type Readiness struct {
	Ready   bool
	Reasons []string // why it cannot, one sentence each
	// Warnings need an operator's attention although the node can serve, one sentence each.
	Warnings []string
	// Leader is the node id of the leader, empty when none is known.
	Leader string
	Waited time.Duration // how long there has been no leader; 0 with a leader
}
