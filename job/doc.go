// Package job defines what all packages of Tarry share: jobs, the operations on them,
// limits, and the errors that clients see.
//
// Operations and results are Protocol Buffers messages in job/jobpb. They are the same
// from the HTTP handler to the log, so an operation is encoded once; job/oplog has the table of
// operations and the format of entries. This package has the rules of the values that operations
// and settings consist of (check_*.go, settings.go), the limits at each cluster version
// (limits.go, limits_version.go), ids and tokens (names.go) and typed errors (error.go).
//
// It does not depend on storage, Raft or HTTP, reads no clock and starts no goroutine.
package job
