package powerloss

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"tarry/fsm"
	"tarry/fsm/check"
)

// ledger is the history that all nodes must apply: the entries that the first of them has
// applied, with a digest of the state after each entry.
type ledger struct {
	mu      sync.Mutex
	entries []*raft.Log
	digests []string // of the state after each entry, as far as requested
	state   *fsm.Machine
	wrong   error // the first contradiction
}

func newLedger() (*ledger, error) {
	state, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	return &ledger{state: state}, err
}

func (l *ledger) find(index uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, index, func(e *raft.Log, i uint64) int { return cmp.Compare(e.Index, i) })
}

// applied records what a node is about to apply.
func (l *ledger) applied(id raft.ServerID, logs []*raft.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range logs {
		at, known := l.find(e.Index)
		switch {
		case !known && at < len(l.entries):
			l.fail(fmt.Errorf("node %s applies entry %d, which nobody else has applied, though entry %d was", id, e.Index, l.entries[at].Index))
		case !known:
			l.entries = append(l.entries, &raft.Log{Index: e.Index, Term: e.Term, Type: e.Type, Data: bytes.Clone(e.Data)})
		case l.entries[at].Term != e.Term || !bytes.Equal(l.entries[at].Data, e.Data):
			l.fail(fmt.Errorf("node %s applies another entry %d (term %d) than was applied before (term %d)", id, e.Index, e.Term, l.entries[at].Term))
		}
	}
}

func (l *ledger) fail(err error) {
	if l.wrong == nil {
		l.wrong = err
	}
}

func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong
}

// term returns the term of an applied entry; 0: it was not applied.
func (l *ledger) term(index uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.find(index); known {
		return l.entries[at].Term
	}
	return 0
}

// digestAt returns the digest of the history up to index.
func (l *ledger) digestAt(index uint64) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count, known := l.find(index)
	if known {
		count++
	}
	if len(l.digests) == 0 {
		d, err := digest(l.state)
		if err != nil {
			return "", err
		}
		l.digests = append(l.digests, d)
	}
	for n := len(l.digests) - 1; n < count; n++ {
		e := l.entries[n]
		_, _, err := l.state.Apply([]fsm.Entry{{Index: e.Index, Term: e.Term, Data: e.Data, Configuration: e.Type == raft.LogConfiguration}}, false)
		if err != nil {
			return "", err
		}
		d, err := digest(l.state)
		if err != nil {
			return "", err
		}
		l.digests = append(l.digests, d)
	}
	return l.digests[count], nil
}

func digest(m *fsm.Machine) (string, error) {
	v := m.View()
	defer v.Close()
	return check.Digest(v, nil)
}

// checkState returns an error unless a state is the history up to its applied index.
func (l *ledger) checkState(id raft.ServerID, m *fsm.Machine) error {
	at := m.Applied().Index
	got, err := digest(m)
	if err != nil {
		return err
	}
	want, err := l.digestAt(at)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("node %s: the state at entry %d is not the history up to there", id, at)
	}
	v := m.View()
	defer v.Close()
	return check.Records(v, nil)
}
