// Package logstore keeps a shard's Raft log and its votes on disk, and ends the
// process when the disk can no longer be trusted.
//
// raft-wal holds the log: one sync an append, and truncation that costs nothing
// later. BenchmarkAppend compares it with raft-boltdb. Its list of segments, and
// term and vote, are small files with a checksum (record.go). They were bbolt files
// before: there a flipped bit could take back a vote or the end of the log without
// a word, and some damage ended the process inside of bbolt.
//
// Both stores are fail-stop (failstop.go). Raft answers a failed write by going
// on, but after one failed sync nobody knows what is on the disk, and a later
// sync may succeed without the lost pages. So the first failure is kept, every
// later call returns it, and the owner is told to end the process. A write that
// hangs is worse than one that fails, because heartbeats go on and no other node
// takes over: a write in flight for too long ends the process as well. It is
// never given up while it goes on, for it could still reach the disk later.
//
// A vote is two writes in Raft, the term and then the candidate. A crash in
// between could leave the new term with the old candidate and let the node vote
// twice. Here the term waits in memory and all go to disk as one record
// (vote.go).
//
// What is truncated at the log's start stays readable while its segment exists:
// raft-wal drops whole segments. That is harmless, the entries are committed, and
// it spares a follower that is a little behind a whole snapshot.
//
// Start at Open in stores.go.
package logstore
