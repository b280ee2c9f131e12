// Package client is the Go client of Tarry, over HTTP.
//
// A Client knows several nodes and talks to one that answers; any node serves
// any request. It tries again by itself when that cannot do harm: when nothing
// was sent or nothing was done, and, for calls that may be repeated, when the
// outcome is unknown. Adds may be repeated because each carries an id; an add
// without one is given a random id before it is first sent. It starts no
// goroutine of its own.
//
// Start at New; jobs.go has the calls on jobs, a file each has those on lists,
// sweeps, settings, schedules and the cluster, and streams. What is tried again and
// when is in call.go. The package knows the HTTP surface (docs/http-api.md) and
// no other room of the project.
package client
