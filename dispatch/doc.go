// Package dispatch hands ready jobs to waiting consumers. It runs on the leader.
//
// A waiter is one reserve that waits, wherever its client is connected. The
// Dispatcher keeps waiters in memory, in the order of their arrival, and learns
// from the state machine how many jobs of each topic are ready. Only when a
// waiter can get a job does it propose a Reserve, so that empty reserves never
// enter the log, and it proposes all that it can at once, so that they share an
// entry. A Dispatcher lives for one term of leadership: when it is stopped its
// waiters are told to register with the next leader. Start at Dispatcher.Add.
//
// It knows topics, counts and operations; nothing of Raft, storage or HTTP.
package dispatch
