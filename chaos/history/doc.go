// Package history records the calls of a queue's clients and checks them.
//
// Every call is one Op with the instants of its start and end and its outcome:
// ok, fail (certainly not done) or unknown (it may take effect at any later time).
// Check reads a whole history, which ends with a full drain, and looks for
// violations in three ways:
//
//   - the rules of the invariants I1 to I8, one by one, which name what is broken
//     (check.go, job_history.go, lease.go, late_reply.go, wait.go), and more: "overdue", due jobs
//     are handed out within a bound (overdue.go); "batch", calls that do several
//     things do all or none (batch.go); "revision", a condition lets one change
//     through (revision.go); "credit" of streams, "limit" and "pause" of topics
//     (limit.go), "quota" and "rate" of namespaces (quota.go); "import"
//     (lease.go); "expiry" and "spread" (expiry.go, spread.go); "late" and "token", who may
//     finish a job (late.go, lease.go); "schedule", one job
//     a run (schedule.go), alone where it is to be (alone.go); "push", what posts say
//     and what becomes of them (post.go), which are deliveries like others, too; "access", what
//     is done with a token that was revoked (credential.go);
//   - the counters of topics, I10 (counts.go);
//   - an order of the calls on each job that explains every answer, searched for
//     by Porcupine (job_model.go, job_model_change.go, sweep.go, kick.go). What it finds is called "life".
//
// Clients cannot see whether all nodes have one state (I9) or a complete backup can be verified
// ("backup"), which the chaos command asks the nodes, or whether an acknowledged write is on the disks of a majority (I11), which
// the tests of power loss check.
//
// It knows only what clients saw. It imports no package of the server, so it cannot
// share a defect with the server. Start with Op in op.go, then Check in check.go.
package history
