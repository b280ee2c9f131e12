// Package job holds what all packages of Tarry share: what a job is, the
// operations on it, their limits, and the failures a client can see.
//
// The operations and results themselves are Protocol Buffers messages in
// job/jobpb, one representation from the HTTP handler to the log, so that an
// operation is encoded once. This package adds what a schema cannot say: the rules of
// each operation that need neither clock nor state (CheckOp in check.go), the limits
// by which they judge at each cluster version (limits.go, limits_version.go), names and
// fences (names.go), the entry format (entry.go) and typed failures (error.go).
//
// It knows nothing of storage, Raft or HTTP, reads no clock and starts nothing.
package job
