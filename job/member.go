package job

import "time"

// Member is one node of the cluster as the leader knows it.
type Member struct {
	ID           string // --node-id
	Address      string // cluster address, host:port by name
	HTTPAddress  string // host:port for clients; empty while unknown
	Role         string // "leader" or "follower"
	Voter        bool
	NonVoter     bool // it was started not to vote; false while it is not alive
	Alive        bool
	Draining     bool // an operator has drained it, or it is about to stop
	AppliedIndex uint64
	Lag          uint64 // entries behind the leader's last index
	Version      string // release of the node's binary; empty while unknown

	DiskFree uint64 // bytes on the disk of its data directory; 0 while it does not answer
	DiskLow  bool   // that is below its low-water mark

	Runs           Versions // cluster versions that the node runs; zero while it does not answer
	ClusterVersion uint32   // as the node's state has it; 0 while it does not answer
}

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

// Clocks compares the nodes' clocks, as the leader sees them.
type Clocks struct {
	MaxOffset time.Duration // how far a clock may be off the majority's for its node to lead
	// Agreed: a majority of the voters' clocks is within MaxOffset of Majority. Otherwise
	// Majority is the lower median of the clocks that are known.
	Agreed   bool
	Majority time.Time
	// ClusterAhead is how far the clock of the queue is ahead of Majority.
	ClusterAhead time.Duration
	Nodes        []NodeClock // by id
}

// NodeClock is one member's clock.
type NodeClock struct {
	ID     string
	Voter  bool
	Known  bool          // the node answered
	Offset time.Duration // its clock, less the majority's
	Within time.Duration // how far Offset may be wrong
	Off    bool          // by more than MaxOffset: the node does not lead
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
