// Package logtail keeps the last lines of a log in memory, so that a node can show them when
// somebody asks what happened and the supervisor's log is out of reach. It knows nothing of what
// the lines say. Start with Tail.
package logtail
