// Package fsm is the replicated state of one shard: jobs, topics, their order
// and counts, on Pebble. A Machine takes committed log entries (Apply) and returns
// results; a View reads a consistent state. Start with apply.go, then tx.go, then
// the file of an operation.
//
// It imports no other package of the project except the job types, auth and fsm/store. It
// reads no clock, no network and no random source. Each entry has the leader's time,
// and the FSM clock is the largest time so far, until ResetClock sets it back
// (op_reset_clock.go). The same entries give the same results and the same Digest on
// every node, however they are divided into batches and whenever the node restarts.
//
// # Files
//
// The machine:
//
//	machine.go             Machine: open, close, what other goroutines ask; MarkDurable
//	apply.go               Apply: entries to operations, the commit, what changed
//	operations.go          the table of operations: what each does, and who may by the state
//	tx.go                  tx: the changes of the entries under way; moving a job between lists
//	memory.go              what the applying goroutine keeps in memory
//	topic.go               topic: its record and list heads in memory
//	uses.go                how much of the limits of the cluster is in use
//	options.go             Options
//	database.go            the open store and the views that read from it
//	snapshot.go            Stream, Receive, Install: a whole state to and from another node
//	new_cluster.go         EnterCluster: a restored state, or that of the last node
//	check_dir.go           CheckDir: all of a state on disk that nothing uses, without a change to it
//	replace.go             Stage: a backup becomes a state that can replace the live one
//	version.go             the cluster version, and raising it
//	version_next.go        what the next release adds, in builds for tests of upgrades
//	version_next_off.go    the same for every other build: nothing
//	watch.go               Watch: which reservations have ended
//	store/                 the files below: generations, flushes, archives
//
// Operations, each the x.name(op, r) that operations.go calls:
//
//	op_add.go              add a job with an id that is free
//	op_add_existing.go     add a job with an id that is taken: if_exists
//	op_import_job.go       add a job as it was elsewhere: with its attempts, waiting or dead
//	op_atomic_add.go       finish a job and add others, all or nothing
//	op_reserve.go          hand out the first ready jobs, or one by its id
//	op_finish.go           finish, also late
//	op_release.go          release a reserved job: ready, delayed or dead
//	op_release_topic.go    release reserved jobs of a topic, by their consumer
//	op_touch.go            restart a reservation's time to run
//	op_bury.go             make a reserved job dead
//	op_delete.go           delete
//	op_update.go           change a job
//	op_kick.go             bring dead jobs back, delayed ones forward
//	op_move.go             move jobs to another topic
//	op_purge.go            delete the jobs of a list
//	op_sweep.go            the filtered walk of kick and purge, in pieces
//	op_pause.go            pause a topic
//	op_settings.go         change a topic's settings
//	op_index_headers.go    bring the header index up to date with them
//	op_schedule.go         put, delete and fire a schedule
//	op_advance.go          do what is due: jobs fall due, reservations and jobs expire
//	op_advance_at.go       the same at an instant for which it was committed ahead
//	op_reset_clock.go      set the clock back
//	op_migrate.go          rewrite records in the format of the cluster version
//	op_cluster.go          name the cluster; forget a member; remove and admit a node
//	op_admission.go        make, use and revoke invitations; set who may become a member
//	op_auth.go             put and delete a token of a client; set the mode
//	op_namespace.go        put and delete a namespace
//	op_replace.go          replace the state by one that arrives in parts
//	op_follow_log.go       apply entries of the primary's log, on a standby
//	op_promote_standby.go  end the mode of a standby
//
// Rules that several operations follow:
//
//	rule_ref.go            which job an operation means, and whether its token is valid
//	rule_timeout.go        a reservation expires: the job is ready again, delayed by its
//	                       backoff, or dead after the last attempt
//	rule_backoff.go        how long a job waits after a failed attempt
//	rule_delay.go          whether a job is delayed or ready, and until when
//	rule_expiry.go         a ready job that is not reserved in time is deleted or dies
//	rule_retention.go      what is kept of a job that has ended, and how long
//	rule_limits.go         how many jobs of a topic may be reserved at a time
//	rule_rate.go           the rate at which jobs are handed out: the token bucket
//	rule_filter.go         which jobs a filter selects
//	rule_push.go           which topics take jobs with a push_url
//	rule_auth.go           what the principal of an operation may do
//	rule_quota.go          what a namespace holds, and may hold
//	rule_standby.go        what a standby refuses
//
// Lists of jobs, and indexes in memory, which are caches only:
//
//	index_lists.go         the lists of a topic, and the states of their jobs
//	index_window.go        window: the head of a list, in memory
//	index_headers.go       the index by which jobs are found by their headers
//	index_due.go           topics by the instant at which they next need an Advance
//	index_due_counts.go    delayed jobs by the minute in which they are due
//	index_dead_groups.go   dead jobs by reason
//	index_schedules.go     schedules by their next instant
//	index_recent.go        records of recently used jobs
//
// Records on disk:
//
//	record.go              the version that each record begins with
//	record_job.go          a job: what was added (spec), and its present state (status)
//	record_job_codec.go    its two records
//	record_options.go      options that few jobs have: a backoff, headers, a push_url
//	record_topic.go        a topic
//	record_headers.go      the header index
//	record_due_counts.go   how many delayed jobs are due in each minute
//	record_dead_groups.go  dead jobs by reason, and how many
//	record_keys.go         all keys
//	record_meta.go         the applied index, the clock and counters, the durable mark
//	record_history.go      the history of a job
//	record_settings.go     settings of topics
//	record_token.go        tokens of clients and their settings
//	record_removed.go      nodes that were removed
//	record_admission.go    who may become a member
//	record_namespace.go    a namespace: its definition, and what it holds
//	record_standby.go      what a standby remembers of its primary
//	record_schedule.go     a schedule: its definition and its state
//	record_read.go         reading records, and walking over a list
//
// What readers see:
//
//	view.go                View: jobs, topics, totals
//	view_list.go           pages of jobs
//	view_by_id.go          jobs by a list of ids
//	view_forecast.go       how many jobs are due when
//	view_dead.go           of which reasons most jobs are dead
//	view_explain.go        why a job is not delivered yet, or was late
//	view_headers.go        jobs by header
//	view_schedules.go      schedules
//	view_tokens.go         tokens of clients
//	view_namespaces.go     namespaces
//	view_read.go           Read: all of them, as nodes ask each other
//	view_check.go          Check: every record is in exactly the lists where it belongs
//	view_check_headers.go  the same for the header index
//	view_check_due_counts.go  and for the counts of delayed jobs by minute
//	view_check_dead_groups.go  and for the dead jobs by reason
//	view_check_namespaces.go  and for what namespaces hold
//	lookups.go             looks up the keys of a check with iterators
//	view_digest.go         Digest: the same on all nodes
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
// model_*_test.go is a naive state machine, with which random_test.go compares this one. A
// failure is run again by -fsm.seed; it reports the last entries (random_log_test.go).
//
// # What is on disk
//
// record_keys.go lists the keyspaces. A job is two records: its spec, with the body,
// which is written once, and its status, which is absent until the first change after
// the add (record_job.go). Each job is also in exactly one list of its topic
// (index_lists.go):
//
//	delayed   by due instant
//	ready     by (priority, due instant, seq)
//	reserved  by the end of the reservation
//	dead      in the order of dying
//	ended     by the end of the retention
//
// A ready job of a topic with a time of expiry is in a second list, by due instant, and a
// waiting job with an expiry of its own in another, by that instant (rule_expiry.go).
//
// A finished or deleted job leaves nothing, unless its topic has a retention. Then it
// moves to the list of ended jobs, and an Advance removes it at the end of the
// retention. Its records and its id stay until then, and only readers and adds find it
// (rule_retention.go). Such topics also keep a history of each job, at the end of its
// status (record_history.go).
//
// A job of a topic that indexes headers has an entry for each of them that it has with a
// value, in a keyspace of its own (index_headers.go). Other topics pay nothing.
//
// How many delayed jobs of each topic, and of all together, are due in each minute has a
// record for each day and topic (index_due_counts.go).
//
// A dead job is also in the group of those of its topic with the same reason, which has a
// count, as have all jobs with that reason (index_dead_groups.go).
//
// Settings of topics have a keyspace of their own: they outlive the topic
// (record_settings.go).
//
// An add is two puts, three with a producer's id. When a delayed job falls due
// only its place moves from one list to another; its phase is phaseWaiting before and
// after (listOf). Topic records have the counts, the totals and the heads of the lists,
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
// # Queues on an LSM tree: windows
//
// A queue deletes where it reads. In an LSM tree each deletion leaves a tombstone
// until a compaction removes it. A search for the head of a long-used queue, from its
// beginning, passes all tombstones: the cost of a job grows with the number of jobs
// done. Three mechanisms keep the cost constant (BenchmarkDrainTopic).
//
// First, windows (index_window.go). The applying goroutine keeps the head of each list
// in memory: every place below a bound, and none above. What is inserted below
// the bound goes to memory and to the batch, the rest to the batch alone. A full
// window drops its later half and lowers the bound. An empty one reads its next
// run from the store, from the bound and never from the beginning, so each tombstone
// is passed about once. If the list's count is zero the window is complete without a
// read. A run may be needed in the middle of a transaction, when the store lacks
// the changes so far. Therefore the window keeps those until the commit and merges them
// with what it reads.
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
// used jobs (index_recent.go) are bounded and are caches only: dropping any of them
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
// handed out (rule_limits.go). Reserve skips a topic that has reached a limit, as it
// skips a paused one. The rate is a token bucket in integers (rule_rate.go). It is
// in the topic's record and is refilled up to the clock whenever the topic changes.
// When ready jobs wait for a token, the token's instant is in the heap.
//
// # Deliberate exceptions
//
// Apply commits early, between entries, at a Mark (whose View must show that
// very entry) and beyond commitBytes (a huge batch stalls the store).
package fsm
