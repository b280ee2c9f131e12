// Package api serves the HTTP API of a node, in JSON.
//
// It turns a request into operations on jobs (package job), passes them to a Queue, and
// turns the results into a response. The package validates all input. Decoding (package wire) rejects
// malformed JSON, wrong types, unknown field names, bad query strings and fields that
// exclude each other. oplog.CheckOp validates every operation (check in jobs.go) before it
// goes to the Queue. So the packages below need not know JSON, HTTP or defaults. The
// package depends on the Queue and Operator interfaces that it declares (queue.go), and
// not on what implements them. It starts no goroutine of its own.
//
// Start at the table of calls in package wire (calls.go) and that of their handlers in routes.go,
// then read the file of a call:
//
//   - jobs: jobs.go (add, get, delete), batch.go (many at once, and import),
//     change.go (finish, release, touch, bury, kick, move), update.go (PATCH),
//     reserve.go, stream.go, refill.go, list.go, history.go
//   - topics: topics.go (counts, rates, pause), forecast.go, sweep.go (kick, purge, move; bulk.go runs their steps, and
//     changes the jobs that a query finds), dead.go, settings.go, push.go
//   - schedules.go; tokens.go; namespaces.go
//   - the cluster and the node: cluster.go, node.go, standby.go, backup.go
//   - the dashboard (package ui): dashboard.go
//   - POST /, for clients of an older protocol: command.go
//
// How a call runs: package httpx limits what a client may use and rejects requests for other
// hosts, cors.go those of pages of other origins. handler.go routes a call, authorize.go finds out
// whether its caller may make it, call.go holds the request and its response, request.go reads
// and package wire decodes the body, encode.go writes JSON, and errors.go writes errors.
//
// docs/http-reference.md describes every call; a test compares it with the routes and runs its examples.
package api
