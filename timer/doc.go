// Package timer wakes a shard when a job falls due.
//
// It asks the shard when the next job is due, and calls Advance at that time. It runs
// only on the leader, so a shard has one timer. It does not poll: it sleeps until the
// next due time, or until Notify reports an earlier one. Start at Timer.Run.
package timer
