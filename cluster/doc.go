// Package cluster is a node of Tarry: it replicates the state machine with Raft, and every
// node serves every request.
//
// A Node owns what belongs to the process (data directory, cluster port, membership)
// and a Shard, which is everything that belongs to one Raft group: Raft, the state
// machine, and on the leader the timer and the dispatcher. Start at Start in node.go,
// then openShard and Shard.start in shard.go. leadership.go starts what runs only while
// a node leads.
//
// A write: Shard.Do (propose.go) frames operations and gives them to groupcommit; on the
// leader a batch becomes one Raft entry, on a follower one message to the leader
// (service.go is its other end). What an entry changed arrives in changes.go.
// A waiting reserve: reserve.go, then waits, which registers it with the leader's
// dispatcher; one that finishes jobs first: finish_reserve.go. A read: read.go. Every request to the leader goes through leaderrpc, which
// also determines the outcome when a connection fails.
//
// The packages below it, each of which knows less than the node does:
//
//	groupcommit   many requests in few entries of the log
//	waits         reserves that wait, on any node, for the leader's jobs
//	leaderrpc     requests to the leader, and one encoding of failures
//	noderpc       the messages of the calls about queues
//	transport     one TCP port for all that nodes send each other
//	leaderprobe   whether the leader's process still runs
//	raftconfig    who votes, how many are a quorum
//	ackguard      a node that lost what it acknowledged does not vote
//	clockguard    a node whose clock is wrong does not lead
//	diskpolicy    what a leader does about low and slow disks
//	membership    discovery, bootstrap, joins and removals, health
//	topicmetrics  metrics of topics, for a bounded number of them
//	logstore      the Raft log on disk, fail-stop
//	statemachine  the adapter between Raft and fsm; snapshots
//	datadir       which node a data directory belongs to; its lock
//	diskspace     the free space of its disk
//	backupschedule the backups that the leader makes by itself
package cluster
