// Package beanstalk serves the beanstalkd protocol, as beanstalkd 1.13 behaves on
// the wire, over the queue that the HTTP API uses. A tube is a topic, a beanstalkd
// id is a job's seq, buried is dead.
//
// It knows package api's Queue and Inspector, and nothing of Raft or storage.
// What belongs to a connection lives here, in this process: the tubes it uses and
// watches, and the jobs it has reserved, which go back when it closes. What
// belongs to a job is the cluster's.
//
// Start at server.go for the life of a server and at conn.go for that of a
// connection: one goroutine reads a command (input.go, parse.go), executes it
// (change.go, reserve.go, look.go, stats.go), and goes on to the next. Package
// conformance has the tests that a real beanstalkd passes as well.
package beanstalk
