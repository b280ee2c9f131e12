//go:build !chaos

package statemachine

import (
	"tarry/fsm"
	"tarry/job/jobpb"
)

// mutant is empty: only a build with the tag chaos can break a promise (mutant.go).
type mutant struct{}

func newMutant() *mutant { return nil }

func (*mutant) apply(machine *fsm.Machine, entries []fsm.Entry, serving bool) ([][]*jobpb.Result, fsm.Changes, error) {
	return machine.Apply(entries, serving)
}
