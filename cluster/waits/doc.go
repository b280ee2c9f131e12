// Package waits lets a reserve wait for jobs on any node. Jobs are handed out by the
// leader's dispatcher, so a reserve on another node waits there, and is registered with
// the leader.
//
// A Client has all waiting reserves of its node. When this node leads they wait in its
// dispatcher; otherwise they go to the leader over one stream (stream.go), whose other
// end is Serve (server.go). When leadership moves, the Client registers them with the
// next leader, and their consumers continue to wait. A job that reaches a reserve whose
// consumer has disconnected is released.
//
// Where several nodes lead groups, a waiter stays in the dispatcher of its node, and a Lender (lend.go)
// lends it to one other node at a time.
//
// The package knows waiters, the stream's messages, and who leads; nothing of Raft.
// Start at Client.Reserve.
package waits
