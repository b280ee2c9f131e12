// Package powerloss holds a test: a Raft group of three nodes in this process,
// with the log store, the adapter and the state machine that a server has, loses
// power again and again. It has no other code.
//
// Each node has one disk in memory that records what was synced (disk_test.go). A
// power loss stops a node before some write. The disk keeps what a real one might:
// every synced byte, and any subset of the blocks and names that were not synced. One
// node, two or all three lose power at once, also while they recover.
//
// What must hold (ledger_test.go): nodes apply one history; a recovered state is
// that history up to some entry, proven by digest; every acknowledged write is on
// a majority of the disks after each loss, and in the state at the end; and every
// start succeeds without an operator. A node may end its process for one reason, a
// snapshot over a log that goes beyond it; then it restarts. In a third of the runs the log is
// truncated all the time, so that followers get the whole state again and again.
//
// Time is virtual (testing/synctest), so waiting for an election takes no real time. A
// seed determines the schedule of power losses, but not how goroutines interleave, so
// it does not repeat every step of a run. Each seed is a test of its own. A failing one
// prints how to repeat it; -v prints the seeds of a crash. Memory use is about 80 MiB,
// however many seeds there are.
//
//	go test ./cluster/powerloss -timeout 30m -powerloss.rounds 2000
//	go test ./cluster/powerloss -run Nothing -powerloss.seed 17 -powerloss.rounds 1
package powerloss
