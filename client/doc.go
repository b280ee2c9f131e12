// Package client is the Go client of Tarry, over HTTP.
//
// A Client knows several nodes and uses one that responds; any node serves any request.
// It retries a call when that is safe: when nothing was sent or nothing was done, and,
// for idempotent calls, when the outcome is unknown. Adds are idempotent because each
// carries an id; the client gives an add without one a random id before the first
// attempt. It asks the leader first, which replies name, and learns the other nodes of the
// cluster. It starts no goroutine of its own; a Worker runs a function for each job.
//
// Start at New. The calls on jobs are methods of Client; the others are grouped by what they
// are about: c.Topics(), c.Schedules(), c.Cluster(), c.Node(), c.Keys(), c.Backups(), c.Tokens()
// and c.Namespaces().
//
// What a call takes and what it returns are values. A pointer is a field that may be absent, or
// a thing with an identity: a Client, a Worker, an Error. A list that may be long is an
// iter.Seq2, which reads it page by page and whose last pair has the error if there is one;
// Collect gathers it.
//
// Each error of a call is an *Error. errors.Is with a Code, such as CodeNotFound, tells which.
//
// call.go decides which calls are retried, and when; nodes.go which node is asked. The package
// knows the HTTP API (docs/http-api.md) and imports no other package of the project: it is a
// module of its own.
package client
