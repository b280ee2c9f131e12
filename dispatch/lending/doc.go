// Package lending lets a waiter of any node get a job of any node, where several nodes lead groups.
//
// A node is the home of the waiters of its clients, and the supplier of the jobs of the groups that
// it leads. A lend is a call: a supplier with more jobs than waiters asks the homes that have told it
// their interest in the topic (a want); a home lends the waiters that idle there, and each lend ends by
// itself, with jobs or without. Nothing polls, and a waiter is in one place only. An idle waiter is at
// home, so a change of leaders moves no waiter.
//
// A Lender is a node's part of that, in both roles. It is a state machine without goroutines, clock or
// lock: events come as calls, and what follows from them goes to a Room, which is the dispatcher.
// The tests of this package explore all orders of the events of small clusters with this same code:
// explore_test.go searches, world_test.go has the rest of the cluster, events_test.go what may happen.
// Start at Lender.Settle.
//
// What must hold between two nodes: the messages of one stream arrive in order and once, or the stream
// breaks; each end then reports it, after which no message of that stream arrives.
package lending
