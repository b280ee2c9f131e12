// Package fsm is the replicated state of one Raft group: jobs, topics, their order
// and counts, on Pebble. A Machine takes committed log entries (Apply) and returns
// results; a view.View reads a consistent state. Start with apply.go, then tx.go, then
// the file of an operation: operations.go is the table of them.
//
// It imports no other package of the project except the job types, auth and the packages
// below it. It reads no clock, no network and no random source. Each entry has the leader's
// time, and the FSM clock is the largest time so far, until ResetClock sets it back
// (clock.go). The same entries give the same results and the same check.Digest on
// every node, however they are divided into batches and whenever the node restarts.
//
//	internal/record   what is on disk: keys, records and reads of them
//	internal/window   the head of a list, in memory
//	view              what readers see
//	check             whether all records agree, and a digest of them
//	store             the files below: generations, flushes, archives
//
// What is left here changes the state: the machine (machine.go, apply.go, tx.go, memory.go),
// whole states (snapshot.go, new_cluster.go, replace.go), and a file for each subject, with
// its operations, each the x.name(op, r) that operations.go calls, the rules that they
// follow, and what they keep in memory.
//
// # Tests
//
// Scripts show what operations and rules do: testdata/scripts/attempts.txt shows
// what happens at the sixteenth timeout. A script has commands, each followed by its
// output; script_test.go lists the commands. Each script also runs on a machine that
// restarts and applies the log in other batches; the digest must be the same.
//
//	go test ./fsm -run TestScripts                       all of them
//	go test ./fsm -run TestScripts/attempts/sixteenth    one part of one
//	go test ./fsm -run TestScripts -rewrite              write their output, then read the diff
//
// The model (model_test.go) is a naive state machine, with which random_test.go compares this one. A
// failure is run again by -fsm.seed; it reports the last entries (random_log_test.go).
//
// # What is on disk
//
// Package record lists the keyspaces, the records and the lists of jobs.
//
// An add is two puts, three with a producer's id. When a delayed job falls due
// only its place moves from one list to another; its phase is PhaseWaiting before and
// after (record.ListOf). Topic records have the counts, the totals and the heads of the lists,
// so no operation counts jobs or searches for a head.
//
// # Durability
//
// The Raft log is the write-ahead log. Every batch holds whole entries and the
// index of the last one, and is committed without waiting for the disk; only the
// cluster's id is flushed at once. After a crash the store holds the state at some
// earlier entry, and the index of that entry; Raft applies the later ones again. MarkDurable waits until everything is on disk: after
// it Raft may truncate its log. The store has no write-ahead log of its own, so after the
// end of a process, unless Close returned, as after a power failure, it holds what its
// memtables held when they were last flushed.
//
// Failures are final. After any error every later Apply fails, because memory may
// be ahead of the store; the owner ends the process. Unknown operations, entry
// versions and record versions are such errors too: a node that skipped one
// would differ from the others forever.
//
// # Queues on an LSM tree
//
// A queue deletes where it reads, which leaves tombstones where it reads next. Three
// mechanisms keep the cost of a job constant (BenchmarkDrainTopic).
//
// First, windows: the applying goroutine keeps the head of each list in memory (package
// window).
//
// Second, the topic record has the heads of its lists as of the commit. A
// restarted node, and a View, start from there.
//
// Third, list entries, specs and ids are deleted by SingleDelete, which cancels out
// with its Set in the first flush or compaction that has both. A job that is added and
// deleted within one memtable leaves nothing. SingleDelete requires that
// a key is not set twice without a deletion between. That holds: seqs are never
// reused, a place is removed before it is put again, an id is free before it is
// given, no entry is applied twice, and nothing else writes to a live store. The
// store reports a violation, which ends the process; Check detects one in the tests.
//
// Windows, the heap of topics by next due instant, and the records of recently
// used jobs (memory.go) are bounded and are caches only: dropping any of them
// changes no result.
//
// # Time
//
// The leader's timer reads NextDue and proposes an Advance at that instant. The work of
// an Advance is bounded and shared among the topics that are due. A topic without jobs
// is kept for an hour, with its totals; then an Advance drops it. That instant is in the
// same heap as the due jobs, and so is the end of a pause. Reserve skips a paused topic,
// and a paused topic is not dropped.
//
// An AdvanceAt is committed before its instant and kept until then: it has no effect on
// anything else, and nothing else on it. It takes effect before the first entry that has its
// time or a later one, or is of another term; so its place among the operations depends on
// the log alone. The leader may let it take effect sooner (TakeEffect): at the instant, once
// no entry with an earlier time can follow.
//
// # Limits
//
// A topic's settings may bound its reserved jobs and the rate at which jobs are
// handed out (limits.go). Reserve skips a topic that has reached a limit, as it
// skips a paused one. The rate is a token bucket in integers (internal/record/rate.go). It is
// in the topic's record and is refilled up to the clock whenever the topic changes.
// When ready jobs wait for a token, the token's instant is in the heap.
//
// # Shards
//
// In a cluster with several shards each group has a machine. It gives the numbers of its shard
// alone, and refuses what is about jobs of another (sharding.go). In a cluster with one shard nothing
// of that has an effect.
//
// # Deliberate exceptions
//
// Apply commits early, between entries, at a Mark (whose View must show that
// very entry) and beyond commitBytes (a huge batch stalls the store).
package fsm
