package job

import "time"

// ScheduledBackups lists the backups that the cluster has made by itself, as its nodes see them.
type ScheduledBackups struct {
	Backups []ScheduledBackup // the newest first
	Nodes   []NodeBackups     // of all members
}

// ScheduledBackup is a backup in the directory of one node or of several: they may share it.
type ScheduledBackup struct {
	Name    string
	Index   uint64
	Instant time.Time // of the schedule
	Taken   time.Time // by the clock of the node that made it; zero: its header cannot be read
	Bytes   int64
	Problem string   // why it cannot be restored; empty: none is known, and it was read back when it was made
	Nodes   []string // in whose directory it is
}

// NodeBackups is what one node replied about its scheduled backups.
type NodeBackups struct {
	ID        string
	Scheduled bool   // it has a schedule
	More      uint64 // older backups in its directory that are not listed
	Error     string // why it did not reply, or why it cannot use its directory
}
