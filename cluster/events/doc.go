// Package events remembers what happened to a cluster, as one node saw it: members that came
// and went, leaders, clocks, disks, versions, backups.
//
// An event is a line of the node's log whose message is in the table of this package, so the
// log and the events cannot differ, and a part of a node reports an event by logging it. A Log
// keeps the last 1000 events in memory, also those that the node's log level leaves out. If there
// are more, those of the kind with the most events go first. They begin with the start of the
// process.
package events
