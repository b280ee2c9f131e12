// Package apitest is a queue in memory, for tests of what stands in front of a
// queue: the HTTP API, the Go client and the commands. It keeps the meaning of
// every operation in the plainest way, and can be told to fail. It is not for
// production: it scans, never forgets a topic and lives in one process.
package apitest
