package report

// ScheduledBackups lists the backups that the cluster has made by itself, as its nodes see them.
type ScheduledBackups struct {
	Backups []*ScheduledBackup // the newest first
	Nodes   []*NodeBackups     // of all members
}
