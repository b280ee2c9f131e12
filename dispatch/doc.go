// Package dispatch hands ready jobs to waiting consumers. It runs on the leader.
//
// A Waiter is one waiting reserve, on whichever node its client is connected. The
// Dispatcher keeps waiters in memory in order of arrival; the state machine reports how
// many jobs of each topic are ready. The Dispatcher proposes a Reserve only when a waiter
// can get a job, so empty reserves do not enter the log. It proposes all that it can at
// once, so they share a log entry. A Dispatcher exists for one leadership: Stop ends its
// waiters with ErrStopped, and they register with the next leader. Start at
// Dispatcher.Add.
//
// It knows topics, counts and operations, and does not depend on Raft, storage or HTTP.
package dispatch
