package api

import "maps"

// What OpenAPI says of a restore into the running cluster.
func init() {
	maps.Copy(fieldDocs, map[string]fieldDoc{
		"dry_run":               says("Whether nothing was changed."),
		"Restored.index":        says("The entry of the log from which on the cluster has the state of the backup; 0 for a dry run."),
		"backup_cluster":        says("The id of the cluster that was backed up."),
		"backup_index":          says("The entry of that cluster's log at which it was backed up."),
		"backup_at":             says("The time of that cluster's clock then."),
		"shift":                 says("By how much delays are longer."),
		"Restored.before":       says("What the cluster had."),
		"Restored.after":        says("What it has afterwards, with reservations ended."),
		"Restored.tokens":       says("How many tokens there are afterwards."),
		"RestoredCounts.topics": says("Topics."),
		"Query.from_now":        says("Whether every delay is longer by the time since the backup."),
		"Query.dry_run":         says("Only checks the backup and counts; nothing changes."),
		"restore.auth":          says("keep: the tokens of the running cluster stay; reset: there are none afterwards.").oneOf("keep", "reset"),
		"restore.cluster":       says("The id that the cluster must have, as a safeguard."),
	})
	maps.Copy(replies, map[string]string{
		"Restored":       "success:bool dry_run:bool index:int backup_cluster backup_index:int backup_at:time shift:seconds before:RestoredCounts after:RestoredCounts tokens:int",
		"RestoredCounts": "topics:int delayed:int ready:int reserved:int dead:int retained:int",
	})
}
