// Package leaderrpc sends a request to the leader, from any node.
//
// Every request goes through Call (call.go). It finds the leader and makes the request
// there, in this process or over a connection to that node: in frames (frames.go) if the
// calls are frequent, otherwise with gRPC (conns.go). It returns
// the leader's own reply or error unchanged. When the connection fails, the outcome
// depends on whether the request may have been applied:
//
//   - It was not sent, or the node does not lead: nothing was applied. Call tries the
//     next leader until the deadline, and then fails with not_applied.
//   - It was sent, and it is a read: Call sends it again, because a read may be
//     repeated.
//   - It was sent, it is a write, and there was no reply: it fails with unknown.
//
// A batch of operations makes one such attempt, Ask. The batcher repeats it, together
// with the operations that have arrived in the meantime.
//
// Failures have one encoding, Failure in failure.proto. Handlers return Go errors and
// callers get Go errors; NewServer and Conns translate on the wire (failure.go).
//
// The package knows the errors of package job and nothing of operations, Raft or the
// services that use it.
package leaderrpc
