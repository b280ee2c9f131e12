package statemachine

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/fsm"
)

// keyTerm is Raft's, in its stable store.
const keyTerm = "CurrentTerm"

// ErrUntrustedData is wrapped by the errors of a node that must not start with the
// content of its data directory.
var ErrUntrustedData = errors.New("the data directory cannot be used")

// CheckStart verifies that a machine, its log and its votes fit together. The node
// calls it before it starts Raft. Otherwise it returns an error that wraps
// ErrUntrustedData.
//
//   - The log must begin no later than just after the state's last entry. Otherwise
//     entries are missing, and Raft would continue without them or panic.
//   - The votes must be as new as log and state. With older ones the node could vote
//     twice in a term.
//   - Every entry that Raft will read must be readable.
//
// A log that the state has superseded is dropped without an error. It remains when the
// process crashes right after a snapshot was installed. Everything up to the state's
// index is in the state, and entries after one that contradicts it were never
// committed.
func CheckStart(m *fsm.Machine, logs raft.LogStore, votes raft.StableStore) error {
	a := m.Applied()
	if a.Index > 0 {
		if _, err := metaOf(a); err != nil {
			return fmt.Errorf("%w: %w", ErrUntrustedData, err)
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
	if last > 0 && first > a.Index+1 {
		return fmt.Errorf("%w: the state ends with entry %d, but the log begins with entry %d: the entries in between are lost", ErrUntrustedData, a.Index, first)
	}
	if last < first {
		return fmt.Errorf("%w: the log ends with entry %d, before its first, %d: its end is lost", ErrUntrustedData, last, first)
	}
	ends, err := checkEntries(logs, max(first, a.Index+1), last)
	if err != nil {
		return err
	}
	if err := checkVotes(votes, a.Term, ends); err != nil {
		return err
	}
	switch {
	case last == 0:
		return nil
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

// checkEntries reads the entries that Raft is going to read, and returns the term
// of the log's last one; 0 for none.
func checkEntries(logs raft.LogStore, from, last uint64) (term uint64, err error) {
	if last == 0 {
		return 0, nil
	}
	for i := min(from, last); i <= last; i++ {
		var e raft.Log
		if err := logs.GetLog(i, &e); err != nil {
			return 0, fmt.Errorf("%w: check the log up to entry %d: %w", ErrUntrustedData, last, err)
		}
		if e.Term < term {
			return 0, fmt.Errorf("%w: entry %d of the log has term %d, after one of term %d", ErrUntrustedData, i, e.Term, term)
		}
		term = e.Term
	}
	return term, nil
}

// checkVotes returns an error if the votes are older than log and state. Raft makes a term
// durable before it stores an entry of that term.
func checkVotes(votes raft.StableStore, state, log uint64) error {
	term, err := Term(votes)
	if err != nil {
		return err
	}
	if newest := max(state, log); term < newest {
		return fmt.Errorf("%w: its votes have come to term %d, but log and state hold entries of term %d: the votes are lost or of an older copy", ErrUntrustedData, term, newest)
	}
	return nil
}

// Term returns the latest term in the stable store; 0: there is none.
func Term(votes raft.StableStore) (uint64, error) {
	term, err := votes.GetUint64([]byte(keyTerm))
	if err != nil && err.Error() != "not found" { // like Raft, because the stores share no error
		return 0, fmt.Errorf("read Raft's term: %w", err)
	}
	return term, nil
}

func dropLog(logs raft.LogStore, first, last uint64) error {
	if err := logs.DeleteRange(first, last); err != nil {
		return fmt.Errorf("drop the log that a snapshot has replaced: %w", err)
	}
	return nil
}
