// Package beanstalk serves the beanstalkd protocol, as beanstalkd 1.13 behaves on
// the wire, over the queue that the HTTP API uses. A tube is a topic, a beanstalkd
// id is a job's seq, buried is dead.
//
// It uses package api's Queue, and does not depend on Raft or storage. This
// process holds the state of a connection: the tubes it uses and watches, and the jobs it
// has reserved, which are released when it closes. The cluster holds the state of jobs.
//
// Start at server.go for the life of a server and at conn.go for that of a connection:
// one goroutine reads a command (input.go, parse.go), executes it (change.go, reserve.go,
// inspect.go, stats.go), and continues with the next. identity.go says who a client is, and
// authorize.go what each command needs. Package conformance contains the
// tests, which a real beanstalkd passes too.
package beanstalk
