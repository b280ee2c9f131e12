// Package dispatch hands ready jobs to waiting consumers. It runs on the leader.
//
// A Waiter is one waiting reserve, on whichever node its client is connected. Waiters
// keeps them in memory in order of arrival (demand); a Source has how many jobs of each topic
// are ready in one Raft group, as the group's state machine reports (supply). A Reserve is
// proposed only when a waiter can get a job, so empty reserves do not enter the log. All
// that can be proposed is proposed at once, so it shares a log entry. A Dispatcher is both,
// with one source. It exists for one leadership: Stop ends its
// waiters with ErrStopped, and they register with the next leader. Start at
// Waiters.Add.
//
// It knows topics, counts and operations, and does not depend on Raft, storage or HTTP.
package dispatch
