package membership

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestAddsNeedRoomOnAMajority(t *testing.T) {
	well, low := Condition{DiskFree: 9 << 30}, Condition{DiskLow: true, DiskFree: 3 << 20}
	for _, c := range []struct {
		name    string
		voters  []raft.ServerID
		known   map[raft.ServerID]Condition
		refused bool
	}{
		{"one node with room", []raft.ServerID{"a.1"}, map[raft.ServerID]Condition{"a.1": well}, false},
		{"one node without", []raft.ServerID{"a.1"}, map[raft.ServerID]Condition{"a.1": low}, true},
		{"one of three is low", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Condition{"a.1": low, "b.1": well, "c.1": well}, false},
		{"two of three are low", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Condition{"a.1": low, "b.1": low, "c.1": well}, true},
		{"one is low and one silent", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Condition{"a.1": low, "b.1": well}, true},
		{"one is silent", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Condition{"a.1": well, "b.1": well}, false},
		{"two are silent, as at the start of a reign", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Condition{"a.1": well}, false},
		{"only a non-voter is low", []raft.ServerID{"a.1"}, map[raft.ServerID]Condition{"a.1": well, "b.1": low}, false},
	} {
		why := noRoom(c.voters, c.known)
		require.Equal(t, c.refused, why != "", "%s: %s", c.name, why)
	}
	require.Equal(t, "the disk is low on a (3 MiB free), b (3 MiB free); adds need room on 2 voters",
		noRoom([]raft.ServerID{"b.1", "a.1", "c.1"}, map[raft.ServerID]Condition{"a.1": low, "b.1": low, "c.1": well}))
}

func TestLeadershipMovesOnlyToABetterDisk(t *testing.T) {
	at := func(d time.Duration) Condition { return Condition{LogWrite: d} }
	low := Condition{DiskLow: true, LogWrite: time.Millisecond}
	for _, c := range []struct {
		name  string
		known map[raft.ServerID]Condition
		want  raft.ServerID
	}{
		{"all well", map[raft.ServerID]Condition{"self": at(time.Millisecond), "b": at(time.Microsecond)}, ""},
		{"slow, the fastest is taken", map[raft.ServerID]Condition{"self": at(2 * time.Second), "b": at(100 * time.Millisecond), "c": at(time.Millisecond)}, "c"},
		{"all slow", map[raft.ServerID]Condition{"self": at(2 * time.Second), "b": at(time.Second), "c": at(3 * time.Second)}, ""},
		{"slow beside one of which nothing is known", map[raft.ServerID]Condition{"self": at(2 * time.Second)}, ""},
		{"slow beside one that wrote nothing", map[raft.ServerID]Condition{"self": at(2 * time.Second), "b": at(0)}, ""},
		{"slow beside one that is low", map[raft.ServerID]Condition{"self": at(2 * time.Second), "b": low}, ""},
		{"low", map[raft.ServerID]Condition{"self": low, "b": at(2 * time.Second), "c": low}, "b"},
		{"all low", map[raft.ServerID]Condition{"self": low, "b": low, "c": low}, ""},
		{"faster, but not fit to lead", map[raft.ServerID]Condition{"self": at(2 * time.Second), "d": at(time.Millisecond)}, ""},
	} {
		to, why := better("self", []raft.ServerID{"self", "b", "c"}, c.known)
		require.Equal(t, c.want, to, "%s: %s", c.name, why)
		require.Equal(t, to != "", why != "", c.name)
	}
}

func TestALeaderWithASlowDiskGivesWayOnceAndThenAllIsQuiet(t *testing.T) {
	w := newTown(t)
	w.startTrio()
	slow := w.leader()
	slow.condition.Store(&Condition{LogWrite: 3 * time.Second})
	eventually(t, "another node leads", func() bool { return !slow.leads() && w.leader() != slow })
	term := w.leader().raft.CurrentTerm()

	// When all are as slow, nobody is better, so the term stays. Looks go on all
	// the while: a low disk is noticed.
	for _, n := range w.nodes {
		n.condition.Store(&Condition{LogWrite: 3 * time.Second})
	}
	leader := w.leader()
	leader.condition.Store(&Condition{LogWrite: 3 * time.Second, DiskLow: true})
	for _, n := range w.nodes {
		if n != leader {
			n.condition.Store(&Condition{LogWrite: 3 * time.Second, DiskLow: true})
		}
	}
	eventually(t, "adds are refused", func() bool { return w.leader().AddsRefused() != "" })
	require.Equal(t, term, w.leader().raft.CurrentTerm())
	h, err := w.leader().Health(context.Background())
	require.NoError(t, err)
	require.False(t, h.Healthy)
	require.Len(t, h.Reasons, 7, "three low disks, three slow ones, adds refused: %v", h.Reasons)
}

func TestALeaderWithALowDiskGivesWayAndAddsGoOn(t *testing.T) {
	w := newTown(t)
	w.startTrio()
	low := w.leader()
	low.condition.Store(&Condition{DiskLow: true})
	low.ConditionChanged()
	eventually(t, "another node leads", func() bool { return !low.leads() && w.leader() != low })
	require.Empty(t, w.leader().AddsRefused())

	for _, n := range w.nodes {
		n.condition.Store(&Condition{DiskLow: true})
	}
	eventually(t, "adds are refused", func() bool { return w.leader().AddsRefused() != "" })
	low.condition.Store(nil)
	w.leader().condition.Store(nil)
	eventually(t, "adds go on", func() bool { return w.leader().AddsRefused() == "" })
}
