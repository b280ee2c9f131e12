// Package job holds the words that all rooms of Tarry share: what a job is, the
// operations on it, their limits, and the failures a client can see.
//
// The operations and results themselves are Protocol Buffers messages in
// job/jobpb, one representation from the HTTP handler to the log, so that an
// operation is encoded once. This package adds what a schema cannot say: limits
// (limits.go), checks of what a client sent (check.go), names and fences
// (names.go), the entry format (entry.go) and typed failures (error.go).
//
// It knows nothing of storage, Raft or HTTP, reads no clock and starts nothing.
package job
