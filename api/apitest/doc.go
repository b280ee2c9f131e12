// Package apitest is a queue of one process for tests of what stands in front of
// a queue: the HTTP API, the Go client and the commands. It is the real state
// machine with its files in memory, without the log and the other nodes, and can
// be told to fail.
//
// Start with Queue in queue.go; Operator in operator.go stands in for a cluster.
package apitest
