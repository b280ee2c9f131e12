// Package diskpolicy decides what a leader does about low and slow disks, its own
// and those of the voters.
//
//   - Adds are refused while no majority of the voters has enough free space
//     (AddsRefused). One small disk must not stop the queue.
//   - A leader whose disk is low or slow transfers leadership to a voter with a better
//     one (BetterLeader). The rules keep leadership from alternating.
//
// The package knows server ids and what nodes report of their disks. It makes no calls,
// transfers no leadership and has no goroutine. The leader calls it every two seconds.
// Start reading at policy.go.
package diskpolicy
