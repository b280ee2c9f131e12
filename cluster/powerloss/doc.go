// Package powerloss holds a test: a Raft group of three nodes in this process,
// with the log store, the adapter and the state machine that a server has, loses
// power again and again. It has no other code.
//
// Each node has one disk in memory that knows what was synced (disk_test.go). A
// power loss stops a node before some write and keeps of the rest what a real
// disk might: every synced byte, and any choice of the blocks and names that were
// not. One node, two or all three lose power at once, also while they recover.
//
// What must hold (ledger_test.go): nodes apply one history; a recovered state is
// that history up to some entry, proven by digest; every acknowledged write is on
// a majority of the disks after each loss, and in the state at the end; and every
// start succeeds by itself. A node may end its process for one reason, a snapshot
// over a log that goes beyond it, and is started again.
//
// Time is virtual (testing/synctest), so an election costs nothing. A seed sets
// the schedule; goroutines still interleave as they like, so a seed repeats a
// schedule and not every step of a run. Each seed is a test of its own; one that
// fails says how it is repeated, and -v names the seeds of a crash. Memory does not
// grow with the seeds: some 80 MiB.
//
//	go test ./cluster/powerloss -timeout 30m -powerloss.rounds 2000
//	go test ./cluster/powerloss -run Nothing -powerloss.seed 17 -powerloss.rounds 1
package powerloss
