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

// RestoreOptions are the options of a restore into a running cluster.
type RestoreOptions struct {
	FromNow   bool   // every delay is longer by the time since the backup
	ResetAuth bool   // removes all tokens; otherwise those of the running cluster stay
	DryRun    bool   // only checks the backup and counts
	Cluster   string // the id that the cluster must have; empty: any
}

// Replaced is what a restore into a running cluster has done, or would do.
type Replaced struct {
	BackupCluster string    // the id of the cluster that was backed up
	BackupIndex   uint64    // of that cluster's log
	BackupTime    time.Time // by that cluster's clock
	Index         uint64    // of this cluster's log, from which on it has the backup's state; 0: dry run
	Shift         time.Duration
	Before, After JobCounts
	Tokens        int // of clients, afterwards
}

// JobCounts are the numbers of topics, and of jobs by state.
type JobCounts struct{ Topics, Delayed, Ready, Reserved, Dead, Retained uint64 }
