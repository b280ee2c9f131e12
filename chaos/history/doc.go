// Package history records what clients did to a queue and judges it.
//
// Every call is one Op with the instants of its start and end and its outcome:
// ok, fail (certainly not done) or unknown (nobody can tell; it stays open to the
// end). Check reads a whole history, taken after a full drain, and looks for
// violations in three ways:
//
//   - the rules of the invariants I1 to I8, one by one, which name what is broken
//     (check.go, story.go, lease.go, wait.go), and more: "batch", calls that do several
//     things do all or none (batch.go); "revision", a condition lets one change
//     through (revision.go); "credit" of streams, "limit" and "pause" of topics
//     (limit.go); "expiry" and "spread" (expiry.go, spread.go); "late" and "token", who may
//     finish a job (late.go, lease.go); "schedule", one job
//     a run (schedule.go), alone where it is to be (alone.go); "push", what posts say
//     and what becomes of them (post.go), which are deliveries like others, too;
//   - the counters of topics, I10 (counts.go);
//   - an order of the calls on each job that explains every answer, searched for
//     by Porcupine (life.go, life_change.go, sweep.go, kick.go). What it finds is called "life".
//
// That all nodes have one state (I9) is asked of the nodes, and that an
// acknowledged write is on the disks of a majority (I11) is for the tests of power
// loss: clients see neither.
//
// It knows only what clients saw: it imports no room of the server, so a fault
// there cannot hide here. Start with Op in op.go, then Check in check.go.
package history
