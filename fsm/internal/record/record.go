// Package record is what the state machine has on disk: keys, records and their codecs, and
// reads of them. It knows their bytes and what follows from one record alone, and no
// operation. Start with keys.go, then job.go.
//
// keys.go lists the keyspaces. A job is two records: its spec, with the body, which is
// written once, and its status, which is absent until the first change after the add
// (job.go). Each job is also in exactly one list of its topic (lists.go):
//
//	delayed   by due instant
//	ready     by (priority, due instant, seq)
//	reserved  by the end of the reservation
//	dead      in the order of dying
//	ended     by the end of the retention
//
// A ready job of a topic with a time of expiry is in a second list, by due instant, and a
// waiting job with an expiry of its own in another, by that instant.
//
// A finished or deleted job leaves nothing, unless its topic has a retention. Then it
// moves to the list of ended jobs until the end of the retention. Such topics also keep a
// history of each job, at the end of its status (history.go).
//
// A job of a topic that indexes headers has an entry for each of them that it has with a
// value (headers.go). How many delayed jobs of each topic, and of all together, are due in
// each minute has a record for each day and topic (due_counts.go). A dead job is also in
// the group of those of its topic with the same reason, which has a count, as have all jobs
// with that reason (dead_groups.go).
//
// Settings of topics have a keyspace of their own: they outlive the topic. Topic records
// have the counts, the totals and the heads of the lists, so no operation counts jobs or
// searches for a head.
package record

import (
	"errors"
	"fmt"
	"slices"
)

// ErrShort is returned when a record ends before its last field.
var ErrShort = errors.New("record is too short")

// checkVersion returns an error if this release cannot read the record.
func checkVersion(what string, b []byte, known ...byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%s is empty: %w", what, ErrShort)
	}
	if !slices.Contains(known, b[0]) {
		return fmt.Errorf(
			"%s has format version %d, this release knows only %d: it was written by another release; run that one", what, b[0], known[0])
	}
	return nil
}
