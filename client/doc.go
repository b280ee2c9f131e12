// Package client is the Go client of Tarry, over HTTP.
//
// A Client knows several nodes and uses one that responds; any node serves any request.
// It retries a call when that is safe: when nothing was sent or nothing was done, and,
// for idempotent calls, when the outcome is unknown. Adds are idempotent because each
// carries an id; the client gives an add without one a random id before the first
// attempt. It asks the leader first, which replies name, and learns the other nodes of the
// cluster. It starts no goroutine of its own; a Worker runs a function for each job.
//
// Start at New. jobs.go has the calls on jobs; lists, sweeps, settings, schedules, the
// cluster and streams have a file each. call.go decides which calls are retried, and
// when; nodes.go which node is asked. The package knows the HTTP API (docs/http-api.md) and
// imports no other package of the project: it is a module of its own.
package client
