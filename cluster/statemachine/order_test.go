package statemachine

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// gatedFSM holds up Raft between a snapshot that was persisted and its record, and reports
// when a leader's state is installed.
type gatedFSM struct {
	*Adapter
	persisted, gate, restoring, restored chan struct{}
}

func (f *gatedFSM) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.Adapter.Snapshot()
	return gatedSnapshot{s, f}, err
}

func (f *gatedFSM) Restore(r io.ReadCloser) error {
	signal(f.restoring)
	defer signal(f.restored)
	return f.Adapter.Restore(r)
}

type gatedSnapshot struct {
	raft.FSMSnapshot
	f *gatedFSM
}

func (s gatedSnapshot) Persist(to raft.SnapshotSink) error {
	err := s.FSMSnapshot.Persist(to)
	signal(s.f.persisted)
	<-s.f.gate
	return err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func lastSnapshot(t *testing.T, n *node) uint64 {
	index, err := strconv.ParseUint(n.raft.Stats()["last_snapshot_index"], 10, 64)
	require.NoError(t, err)
	return index
}

// A node takes a snapshot of its own while a leader's newer state arrives. Whatever Raft does
// first, it takes the newer one for the start of its log.
func TestASnapshotUnderWayDoesNotHideAnInstalledState(t *testing.T) {
	g := newGroup(t)
	g.add(t, "before", 3)
	g.agree(t)
	lead := g.leader(t)
	rest := group{}
	var behind *node
	for _, n := range g {
		if n != lead && behind == nil {
			behind = n
			continue
		}
		rest = append(rest, n)
	}
	behind.stop()
	f := &gatedFSM{persisted: make(chan struct{}, 1), gate: make(chan struct{}), restoring: make(chan struct{}, 1), restored: make(chan struct{}, 1)}
	behind.snap = 1 << 20 // it takes none by itself
	behind.wrap = func(a *Adapter) raft.FSM { f.Adapter = a; return f }
	behind.start()
	g.connect()
	rest.add(t, "more", 1)
	eventually(t, "the follower has something to take a snapshot of", func() bool { return behind.raft.AppliedIndex() == rest.leader(t).raft.AppliedIndex() })
	g.isolate(behind)
	snapshot := behind.raft.Snapshot()
	<-f.persisted
	rest.add(t, "meanwhile", 60)
	last := behind.raft.LastIndex()
	eventually(t, "the log is truncated beyond the follower", func() bool { return firstIndex(rest.leader(t)) > last+1 })
	g.connect()
	<-f.restoring
	select {
	case <-f.restored: // what must not happen: now the older one is recorded last
		eventually(t, "the installed state is recorded", func() bool { return lastSnapshot(t, behind) > last })
		close(f.gate)
		_ = snapshot.Error()
		require.Greater(t, lastSnapshot(t, behind), last, "Raft has gone back to the older state")
	case <-time.After(100 * time.Millisecond):
		close(f.gate)
		_ = snapshot.Error() // either outcome will do
	}
	eventually(t, "the state is installed", func() bool { return behind.machine.Applied().Index > last })
	installed := behind.machine.DurableIndex()
	eventually(t, "it is recorded", func() bool { return lastSnapshot(t, behind) >= installed })
	g.agree(t)
}
