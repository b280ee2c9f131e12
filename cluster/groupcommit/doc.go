// Package groupcommit gathers the operations of many requests into few entries of the
// Raft log. A commit costs two syncs one after the other, the leader's and a
// follower's, whatever the size of the entry. Throughput therefore depends most on how
// many operations share an entry.
//
// The Batcher sends a request at once while nothing is in flight. Whatever arrives
// while batches are in flight shares the next one. After a batch with several operations,
// the leader's next one waits shortly for the callers of the last (gather.go). On the leader
// a batch goes to the Committer, which makes it one entry; on any other node it goes to the
// leader. The Batcher keeps what no leader has accepted, in order, and fails a request that has
// waited for too long. Every request gets exactly one outcome.
//
// The package knows runs of encoded operations and Raft's Apply. It does not know what
// the operations do, or how a batch reaches another node. Start at Batcher.
package groupcommit
