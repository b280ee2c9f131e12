// Package workload puts a cluster under the kind of load that finds faults:
// producers that retry with the same id, deletes, consumers that finish (some with their
// next reserve), overrun their lease, release, touch, bury and disconnect, editors that change waiting jobs, a
// target that jobs are posted to. Every call and every post is recorded in a
// history.Recorder.
//
// It uses net/http, and implements beanstalkd's protocol itself. It shares no code with
// the server or its Go client, so it cannot share a defect with them. Run generates load
// until its context ends. Then Drain finishes all remaining jobs.
//
// Start with Run in run.go; call.go turns HTTP answers into outcomes, tube.go
// beanstalkd's replies, target.go takes posts.
package workload
