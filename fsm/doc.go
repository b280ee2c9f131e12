// Package fsm is the replicated state of one shard: jobs, topics, their order
// and counts, on Pebble. A Machine takes committed log entries (Apply) and gives
// results; a View reads a consistent state. Start with apply.go, then tx.go; the
// operations are in add.go, reserve.go, change.go, pause.go, settings.go, advance.go and
// cluster.go.
//
// It imports no other room but the job types. It reads no clock, no network and
// no random source: time comes in with the entries, as the leader's clock, and
// the FSM clock is the largest seen, until ResetClock sets it back (clockreset.go).
// The same entries, cut into whatever batches, with whatever restarts between them,
// give the same results and the same Digest on every node.
//
// # What is on disk
//
// keys.go lists the keyspaces. A job is two records: its origin, with the body,
// written once and never changed; and its fate, absent until the first change of
// state after the add. Besides, each job stands in exactly one list of its topic,
// by state:
//
//	delayed   by due instant
//	ready     by (priority, due instant, seq)
//	reserved  by the end of the reservation
//	dead      in the order of dying
//	ended     by the end of the retention
//
// A finished or deleted job leaves nothing, unless its topic has a retention. Then
// it goes to the list of ended jobs, whose places an Advance removes when they are
// past; its records and its id stay until then, and only readers and adds find it
// (retain.go). Such topics also keep a history of each job, at the end of its fate
// (history.go).
//
// A ready job of a topic with a time of expiry stands in a second list, by due
// instant (expire.go). Settings of topics have a keyspace of their own: they outlive the
// topic (settings.go).
//
// An add is two puts, three with an id of the producer's. When a delayed job
// falls due only its list entry moves; both its records say "waiting" before and
// after, and the lists tell the rest (stateOf). Topic records carry the counts,
// the totals and the heads of the five lists, so nothing is ever counted or
// searched for.
//
// # Durability
//
// The Raft log is the write-ahead log. Every batch holds whole entries and the
// index of the last one, and is committed without waiting for the disk. After a
// crash the store holds the state at some earlier entry, and says at which; Raft
// applies the rest again. Witness is the only sync: it lets Raft cut its log.
// Pebble's own write-ahead log stays on, unsynced: it makes the loss after a
// killed process nothing, and after a power failure small.
//
// Failures are final. After any error Apply refuses for good, because memory may
// be ahead of the store; the owner ends the process. Unknown operations, entry
// versions and record versions are such errors too: a node that skipped one
// would differ from the others for ever.
//
// # Queues on an LSM tree: windows
//
// A queue deletes where it reads. In an LSM tree each deletion leaves a tombstone
// until a compaction meets it, so looking for the head of a long-used queue from
// its beginning walks over everything taken before: the cost of a job grows with
// the jobs done. Three things together keep it flat (BenchmarkDrainTopic).
//
// First, windows (window.go). The applying goroutine keeps the head of each list
// in memory: every place below a bound, and none above. What is inserted below
// the bound goes to memory and to the batch, the rest to the batch alone. A full
// window drops its later half and lowers the bound; an empty one reads its next
// run from the store, from the bound and never from the beginning, so a tombstone
// is walked over about once. A count of zero makes a window complete without a
// read. A run may be needed in the middle of a transaction, when the store lacks
// the changes so far; the window remembers those until the commit and merges
// them in.
//
// Second, the topic record has the heads of its lists as of the commit. A
// restarted node, and a View, start from there.
//
// Third, list entries, origins and ids are deleted by SingleDelete, which meets
// its Set in the first flush or compaction and vanishes with it: a job that
// lives for less than a memtable leaves nothing behind. SingleDelete demands that
// a key is not set twice without a deletion between. That holds: seqs are never
// reused, a place is taken before it is put again, an id is free before it is
// given, no entry is applied twice, and nothing else writes to a live store. The
// store reports a breach, which ends the process; Check finds one in the tests.
//
// Windows, the heap of topics by next due instant, and the records of recently
// used jobs (recent.go) are bounded and are caches only: dropping any of them
// changes no result.
//
// # Time
//
// NextDue is the one question of a timer, the Advance operation its one verb.
// Advance is bounded and shares its bound among the topics that are due. A topic
// without jobs is kept for an hour, with its totals, then an Advance drops it:
// its end stands in the same heap as the due jobs. So does the end of a pause,
// until which Reserve passes a topic over; a paused topic is kept.
//
// # Limits
//
// A topic's settings may bound its reserved jobs and the rate at which jobs are
// handed out (limit.go). Reserve passes over a topic that has reached one, as it
// does over a paused one. The rate is a token bucket in integers (bucket.go), kept
// in the topic's record and brought up to the clock whenever the topic changes.
// When ready jobs wait for a token, the token's instant stands in the heap.
//
// # Deviations that are meant
//
// Apply commits early, between entries, at a Mark (whose View must show that
// very entry) and beyond commitBytes (a huge batch stalls the store).
package fsm
