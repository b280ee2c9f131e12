// Package access checks at a node's ports what the callers may do. The state machine decides
// about every operation when it applies it; Queue refuses early what it would refuse, and alone
// decides about reads, which are not in the log.
//
// Identity (identity.go) tells who a request is from by its token, Checks (checks.go) decides by
// the state of tokens that the node has, counts what is denied and records it in the audit log,
// Queue (queue.go, reads.go) is a queue on which each caller sees and does what it may, and
// Watch (watch.go) ends what waits when its token does not allow it any more.
//
// The principal of a call, and what the audit log says of it, are in its context (Request). A
// context without one is of nobody.
package access
