package statemachine

import (
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/fsm"
)

// CheckStart proves that a machine and its log fit together; the node calls it
// before it starts Raft. The log must reach back to where the state ends: a state
// that is behind the log's first entry lacks entries that nobody has any more, and
// Raft would go on without them or panic. It refuses then, with an error that says
// what to do.
//
// A log that the state has overtaken is dropped, without a refusal: a crash right
// after a snapshot was installed leaves it behind. Everything up to the state's
// index is in the state, and entries beyond one that contradicts it were never
// committed.
func CheckStart(m *fsm.Machine, logs raft.LogStore) error {
	a := m.Applied()
	if a.Index > 0 {
		if _, err := metaOf(a); err != nil {
			return err
		}
	}
	first, err := logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("check the log: %w", err)
	}
	last, err := logs.LastIndex()
	if err != nil {
		return fmt.Errorf("check the log: %w", err)
	}
	switch {
	case last == 0:
		return nil
	case first > a.Index+1:
		return fmt.Errorf("the state has come to entry %d, but the log begins with entry %d: what lies between is lost; move the data directory away, and the node will rejoin as a new member", a.Index, first)
	case last < a.Index:
		return dropLog(logs, first, last)
	case a.Index < first:
		return nil // the log begins with the next entry
	}
	var e raft.Log
	if err := logs.GetLog(a.Index, &e); err != nil {
		return fmt.Errorf("check the log: read entry %d: %w", a.Index, err)
	}
	if e.Term != a.Term {
		return dropLog(logs, first, last)
	}
	return nil
}

func dropLog(logs raft.LogStore, first, last uint64) error {
	if err := logs.DeleteRange(first, last); err != nil {
		return fmt.Errorf("drop the log that a snapshot has replaced: %w", err)
	}
	return nil
}
