// Package cluster is a node of Tarry: it feeds the state machine through Raft and
// lets any node serve any request.
//
// A Node owns what belongs to the process (data directory, the cluster port,
// membership) and one Shard, which is everything that belongs to one Raft group:
// Raft itself, the state machine, the batcher, and on the leader the timer and
// the dispatcher. Start at Node.Start, then Shard.
//
// The way of a write: Shard.Do frames operations and gives them to the batcher
// (batcher.go); on the leader a batch becomes one Raft entry, on a follower one
// message to the leader (propose.go). The way of a waiting reserve: reserve.go,
// then the dispatcher, over a stream when the leader is another node
// (waitclient.go, waitserver.go). The way of a read: read.go.
//
// Subrooms: logstore (the Raft log on disk, fail-stop), transport (one TCP port
// for all that nodes say), statemachine (the adapter between Raft and fsm, and
// snapshots), membership (discovery, bootstrap, joins and removals), noderpc.
package cluster
