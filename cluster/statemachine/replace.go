package statemachine

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/fsm"
)

// A staged state is already where the machine needs it. So what Raft copies into its snapshot
// store, in the loop in which it does nothing else, is only the state's name: some bytes that no
// archive begins with. Raft chooses the index, empties its log, and sends the state to the
// followers as it sends any other.

// stagedPrefix begins the name of a staged state. An archive begins with other bytes.
const stagedPrefix = "TARRY staged "

// staged is a state that waits for its Raft snapshot.
type staged struct {
	name  string
	state *fsm.Staged
}

// Replacement is what raft.Restore takes.
type Replacement struct {
	Meta   *raft.SnapshotMeta
	Reader *bytes.Reader

	store *snapshots
}

// Replace returns what makes a staged state that of the group if it is passed to raft.Restore.
// Afterwards call End. One at a time.
func (a *Adapter) Replace(s *fsm.Staged) *Replacement {
	name := stagedPrefix + rand.Text()
	a.snapshots.mu.Lock()
	defer a.snapshots.mu.Unlock()
	a.snapshots.staged = &staged{name: name, state: s}
	return &Replacement{
		Meta:   &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Size: int64(len(name))},
		Reader: bytes.NewReader([]byte(name)), store: a.snapshots,
	}
}

// End reports whether Raft took the state. If not, the caller still has to abort it.
func (r *Replacement) End() (taken bool) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	taken = r.store.staged == nil
	r.store.staged = nil
	return taken
}

// takeStaged returns the staged state with the name; nil: it is none.
func (s *snapshots) takeStaged(name []byte) *fsm.Staged {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.staged == nil || s.staged.name != string(name) {
		return nil
	}
	state := s.staged.state
	s.staged = nil
	return state
}

// replace makes a staged state that of the machine. The log's entries before it are in Raft's
// way, as nothing of them is in the state; Raft removes them. A failure is fatal: Raft panics.
func (a *Adapter) replace(r *received) error {
	err := a.machine.Replace(r.staged, fsm.Applied{
		Index: r.meta.Index, Term: r.meta.Term, Configuration: raft.EncodeConfiguration(r.meta.Configuration), ConfigurationIndex: r.meta.ConfigurationIndex,
	})
	if err != nil {
		err = fmt.Errorf("replace the state by a backup: %w", err)
		a.o.Fatal(err)
		return err
	}
	a.replaced()
	return nil
}
