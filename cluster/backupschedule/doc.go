// Package backupschedule makes the backups of a schedule on the leader, as files of one
// directory, or objects in one bucket.
//
//	scheduler.go  when a backup is made, and what is known about it
//	chain.go      which backup an incremental one builds on
//	place.go      where backups are: what is known of them, and what is too many
//	directory.go  as files of a directory
//	bucket.go     as objects of a store
//	collector.go  metrics
//
// An instant of the schedule is done when the place has a complete backup of it or of a later
// one, or another node that is alive has one in its own. If the node that made it is down, the next
// leader makes it again, because nobody knows whether that node comes back. Of several instants
// that were missed only the last one is made up.
//
// With Config.FullEvery the backups between whole ones are incremental: each builds on the newest
// before it, if this node made that of the store that it still has. Otherwise it is whole.
//
// A backup has its name once it was synced and read back. Only files whose name and header say
// that they are scheduled backups of this cluster are ever removed.
package backupschedule
