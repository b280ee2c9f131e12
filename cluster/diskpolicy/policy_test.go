package diskpolicy

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestAddsNeedSpaceOnAMajority(t *testing.T) {
	well, low := Health{Free: 9 << 30}, Health{Low: true, Free: 3 << 20}
	for _, c := range []struct {
		name    string
		voters  []raft.ServerID
		known   map[raft.ServerID]Health
		refused bool
	}{
		{"one node with room", []raft.ServerID{"a.1"}, map[raft.ServerID]Health{"a.1": well}, false},
		{"one node without", []raft.ServerID{"a.1"}, map[raft.ServerID]Health{"a.1": low}, true},
		{"one of three is low", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Health{"a.1": low, "b.1": well, "c.1": well}, false},
		{"two of three are low", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Health{"a.1": low, "b.1": low, "c.1": well}, true},
		{"one is low and one silent", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Health{"a.1": low, "b.1": well}, true},
		{"one is silent", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Health{"a.1": well, "b.1": well}, false},
		{"two are silent, as when a leader is new", []raft.ServerID{"a.1", "b.1", "c.1"}, map[raft.ServerID]Health{"a.1": well}, false},
		{"only a non-voter is low", []raft.ServerID{"a.1"}, map[raft.ServerID]Health{"a.1": well, "b.1": low}, false},
	} {
		why := notEnoughSpace(c.voters, c.known)
		require.Equal(t, c.refused, why != "", "%s: %s", c.name, why)
	}
	require.Equal(t, "the disk is low on a (3 MiB free), b (3 MiB free); adds need free space on 2 voters",
		notEnoughSpace([]raft.ServerID{"b.1", "a.1", "c.1"}, map[raft.ServerID]Health{"a.1": low, "b.1": low, "c.1": well}))
}

func TestLeadershipMovesOnlyToABetterDisk(t *testing.T) {
	at := func(d time.Duration) Health { return Health{LogWrite: d} }
	low := Health{Low: true, LogWrite: time.Millisecond}
	for _, c := range []struct {
		name  string
		known map[raft.ServerID]Health
		want  raft.ServerID
	}{
		{"all well", map[raft.ServerID]Health{"self": at(time.Millisecond), "b": at(time.Microsecond)}, ""},
		{"slow, the fastest is taken", map[raft.ServerID]Health{"self": at(2 * time.Second), "b": at(100 * time.Millisecond), "c": at(time.Millisecond)}, "c"},
		{"all slow", map[raft.ServerID]Health{"self": at(2 * time.Second), "b": at(time.Second), "c": at(3 * time.Second)}, ""},
		{"slow beside one of which nothing is known", map[raft.ServerID]Health{"self": at(2 * time.Second)}, ""},
		{"slow beside one that wrote nothing", map[raft.ServerID]Health{"self": at(2 * time.Second), "b": at(0)}, ""},
		{"slow beside one that is low", map[raft.ServerID]Health{"self": at(2 * time.Second), "b": low}, ""},
		{"low", map[raft.ServerID]Health{"self": low, "b": at(2 * time.Second), "c": low}, "b"},
		{"all low", map[raft.ServerID]Health{"self": low, "b": low, "c": low}, ""},
		{"faster, but not fit to lead", map[raft.ServerID]Health{"self": at(2 * time.Second), "d": at(time.Millisecond)}, ""},
	} {
		to, why := better("self", []raft.ServerID{"self", "b", "c"}, c.known)
		require.Equal(t, c.want, to, "%s: %s", c.name, why)
		require.Equal(t, to != "", why != "", c.name)
	}
}

func TestAReasonMustLastAndALeaderLeadsForAWhile(t *testing.T) {
	own := Health{LogWrite: 2 * time.Second}
	start := time.Now()
	p := New(Config{ServerID: "a.1", Own: func() Health { return own }, KeepFor: time.Hour, MinLead: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)}, start)
	voters := []raft.ServerID{"a.1", "b.1", "c.1"}
	look := func(at time.Duration) raft.ServerID {
		p.Record("b.1", Health{LogWrite: time.Millisecond}, start.Add(at))
		to, why := p.BetterLeader(voters, start.Add(at))
		require.Equal(t, to != "", why != "")
		return to
	}
	for _, at := range []time.Duration{0, 2, 4, 29} {
		require.Empty(t, look(at*time.Second), "it leads for too short a time")
	}
	require.EqualValues(t, "b.1", look(30*time.Second))
	require.Empty(t, look(59*time.Second), "it has just tried")
	require.Empty(t, look(60*time.Second), "twice in a row")
	own.LogWrite = time.Millisecond
	require.Empty(t, look(70*time.Second), "the reason is gone")
	own.LogWrite = time.Second
	require.Empty(t, look(72*time.Second))
	require.Empty(t, look(74*time.Second))
	require.EqualValues(t, "b.1", look(76*time.Second))

	// The last report of a node that is silent for long does not count.
	require.Empty(t, p.AddsRefused())
	own.Low = true
	p.Evaluate(voters, start.Add(80*time.Second))
	require.Contains(t, p.AddsRefused(), "the disk is low on a")
	require.Len(t, p.Problems(start.Add(80*time.Second)), 3, "low, slow, and adds refused")
	p.Record("c.1", Health{}, start.Add(80*time.Second))
	p.Evaluate(voters, start.Add(80*time.Second))
	require.Empty(t, p.AddsRefused())
	p.Evaluate(voters, start.Add(3*time.Hour))
	require.NotEmpty(t, p.AddsRefused())
}
