package statemachine

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/fsm"
)

// keyTerm is Raft's, in its stable store.
const keyTerm = "CurrentTerm"

// ErrDoubtful is wrapped by the errors of a node that must not start on what is
// in its data directory.
var ErrDoubtful = errors.New("the data directory is not to be trusted")

// CheckStart proves that a machine, its log and its votes fit together; the node
// calls it before it starts Raft. The log must reach back to where the state ends:
// a state that is behind the log's first entry lacks entries that nobody has any
// more, and Raft would go on without them or panic. The votes must be as young as
// log and state: with older ones the node could vote twice in a term. Every entry
// that Raft will read must be readable. It refuses otherwise, with an error that
// wraps ErrDoubtful.
//
// A log that the state has overtaken is dropped, without a refusal: a crash right
// after a snapshot was installed leaves it behind. Everything up to the state's
// index is in the state, and entries beyond one that contradicts it were never
// committed.
func CheckStart(m *fsm.Machine, logs raft.LogStore, votes raft.StableStore) error {
	a := m.Applied()
	if a.Index > 0 {
		if _, err := metaOf(a); err != nil {
			return fmt.Errorf("%w: %w", ErrDoubtful, err)
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
		return fmt.Errorf("%w: the state has come to entry %d, but the log begins with entry %d: what lies between is lost", ErrDoubtful, a.Index, first)
	}
	if last < first {
		return fmt.Errorf("%w: the log ends with entry %d, before its first, %d: its end is lost", ErrDoubtful, last, first)
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
			return 0, fmt.Errorf("%w: check the log up to entry %d: %w", ErrDoubtful, last, err)
		}
		if e.Term < term {
			return 0, fmt.Errorf("%w: entry %d of the log has term %d, after one of term %d", ErrDoubtful, i, e.Term, term)
		}
		term = e.Term
	}
	return term, nil
}

// checkVotes: Raft makes a term durable before it takes an entry of that term.
func checkVotes(votes raft.StableStore, state, log uint64) error {
	term, err := Term(votes)
	if err != nil {
		return err
	}
	if newest := max(state, log); term < newest {
		return fmt.Errorf("%w: its votes have come to term %d, but log and state hold entries of term %d: the votes are lost or of an older copy", ErrDoubtful, term, newest)
	}
	return nil
}

// Term is the term that votes have come to; 0 before the first.
func Term(votes raft.StableStore) (uint64, error) {
	term, err := votes.GetUint64([]byte(keyTerm))
	if err != nil && err.Error() != "not found" { // as Raft does: the stores share no error
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
