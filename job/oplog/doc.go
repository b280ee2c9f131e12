// Package oplog is the language of the log: which operations there are, the rules that each
// must keep, and how entries are made of them and read.
//
// Start at the table in operation.go. It has one row an operation; package fsm has the only
// other one, with what each does. rules.go and rules_*.go check what needs neither the clock
// nor the state, by the limits of a cluster version. entry.go writes entries, reader.go reads
// them, and schema.go refuses what a newer release has added. It knows no state and no clock,
// and the values in operations only by the rules of package job.
package oplog
