package job

import "time"

// Member is one node of the cluster as the leader knows it.
type Member struct {
	ID           string // --node-id
	Address      string // cluster address, host:port by name
	HTTPAddress  string // host:port for clients; empty while unknown
	Role         string // "leader" or "follower"
	Voter        bool
	Alive        bool
	AppliedIndex uint64
	Lag          uint64 // entries behind the leader's last index
	Version      string // release of the node's binary; empty while unknown

	Runs           Versions // cluster versions that the node runs; zero while it does not answer
	ClusterVersion uint32   // as the node's state has it; 0 while it does not answer
}

// Health is the cluster's state for an operator.
type Health struct {
	Healthy bool
	// FailureTolerance is how many more voters may fail before writes stop.
	FailureTolerance int
	Reasons          []string // why it is not healthy, one sentence each

	ClusterVersion uint32
	Upgrade        string // what a raise of the cluster version waits for; empty: none is due
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
