// Package api is what clients speak to a node: HTTP with JSON.
//
// It turns a request into operations on jobs (package job), hands them to a
// Queue, and turns the results into an answer. Bad input ends here: everything
// that passes has been checked against the limits of package job, so that the
// rooms below need not know of JSON, HTTP or defaults. It knows the Queue and
// Operator interfaces that it declares (queue.go) and nothing of what is behind
// them. It starts no goroutine of its own.
//
// Start at New and the table in routes.go; one file holds one group of calls.
// docs/http-api.md describes every call; a test holds the two together.
package api
