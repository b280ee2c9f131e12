// Package job defines what all packages of Tarry share: jobs, the operations on them,
// limits, and the errors that clients see.
//
// Operations and results are Protocol Buffers messages in job/jobpb. They are the same
// from the HTTP handler to the log, so an operation is encoded once. This package adds the
// rules of each operation that need neither clock nor state (CheckOp in check.go), the
// limits at each cluster version (limits.go, limits_version.go), ids and tokens
// (names.go), the format of log entries (entry.go) and typed errors (error.go).
//
// It does not depend on storage, Raft or HTTP, reads no clock and starts no goroutine.
package job
