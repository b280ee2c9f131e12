// Package workload puts a cluster under the kind of load that finds faults:
// producers that retry with the same id, deletes, consumers that finish, overrun
// their time to run, release, touch, bury and hang up, editors that change jobs
// while they wait, a target that jobs are posted to. Every call, and every post,
// goes into a history.Recorder.
//
// It speaks plain HTTP by net/http, and beanstalkd's protocol by a few lines of its
// own. It shares no code with the server or its Go client, so that a
// misunderstanding between those two cannot hide here. Run loads until its context
// ends; Drain then finishes whatever is left.
//
// Start with Run in run.go; call.go turns HTTP answers into outcomes, tube.go
// beanstalkd's replies, target.go takes posts.
package workload
