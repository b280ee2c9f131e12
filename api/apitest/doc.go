// Package apitest is an in-process queue for tests of the HTTP API, the Go client and the
// commands. It runs the real state machine on an in-memory file system, without a Raft
// log or other nodes. Tests can make it fail.
//
// Start with Queue in queue.go; Operator in operator.go stands in for a cluster.
package apitest
