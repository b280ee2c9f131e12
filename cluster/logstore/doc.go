// Package logstore keeps a shard's Raft log and its votes on disk, and ends the
// process when the disk can no longer be trusted.
//
// There are two kinds of log (kind.go). raft-wal (wal*.go) is the default: one sync an
// append, and truncation without later cost. raft-boltdb (bolt*.go) is
// one file that bbolt's tools can read: two syncs an append. This package adds what
// each of them lacks, so that both keep one contract (contract_test.go): checksums of
// entries, no gaps, and no silent loss of what was committed. BenchmarkAppend compares
// them. With either kind, a watermark has what was acknowledged (watermark.go), and term and
// vote are in a small file with a checksum (record.go).
//
// Log and votes are fail-stop (failstop.go). Raft continues after a failed write. But
// after a failed sync the content of the disk is unknown, and a later sync may succeed
// without the lost pages. So the first failure is kept, every later call returns it,
// and a callback makes the owner end the process. The next process writes the last appends
// again (segments.go). A write that hangs is worse than one
// that fails: the leader still sends heartbeats, so no other node takes over. A write
// that takes too long therefore ends the process too. The write is never abandoned
// while the process runs, because it could still reach the disk later.
//
// A vote is two writes in Raft, the term and then the candidate. A crash in
// between could leave the new term with the old candidate and let the node vote
// twice. Here the term is kept in memory until both go to disk as one record
// (vote.go).
//
// A segment of raft-wal is filled with zeros ahead of its entries, which makes the sync of
// an append cheap (segments.go).
//
// The last segment is read before raft-wal opens it (wal_scan.go). What is behind its last whole
// append is a torn write or damage (wal_tail.go).
//
// Entries that were truncated at the log's start may stay readable, because raft-wal
// drops whole segments. That is harmless, since they are committed, and it saves a
// follower that is slightly behind from needing a snapshot.
//
// Start at Open in stores.go.
package logstore
