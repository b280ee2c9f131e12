package membership

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestTheVersionIsRaisedToWhatAllMembersRun(t *testing.T) {
	runs := func(max uint32) offer { return offer{runs: job.Versions{Min: 1, Max: max}} }
	for name, tt := range map[string]struct {
		self   uint32
		others map[raft.ServerID]offer
		to     uint32
		waits  string
	}{
		"all run it":              {2, map[raft.ServerID]offer{"a.1": runs(2), "b.1": runs(2)}, 2, ""},
		"some run more":           {3, map[raft.ServerID]offer{"a.1": runs(2), "b.1": runs(4)}, 2, ""},
		"the leader is the older": {1, map[raft.ServerID]offer{"a.1": runs(2), "b.1": runs(2)}, 0, ""},
		"one is older":            {2, map[raft.ServerID]offer{"a.1": runs(2), "b.1": runs(1)}, 0, "version 2 waits for b, which runs only 1"},
		"one is silent":           {2, map[raft.ServerID]offer{"a.1": {}, "b.1": runs(2)}, 0, "version 2 waits for a, which does not answer"},
		"one holds it": {2, map[raft.ServerID]offer{"a.1": runs(2), "b.1": {runs: job.Versions{Min: 1, Max: 2}, hold: true}}, 0,
			"version 2 waits for b, which was started with --hold-version"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.others["self.1"] = runs(tt.self)
			to, why := raiseTo(1, job.Versions{Min: 1, Max: tt.self}, tt.others)
			require.Equal(t, tt.to, to)
			require.Equal(t, tt.waits, why)
		})
	}
}

// upgrade starts a node again with a release that runs versions up to max.
func (n *node) upgrade(max uint32) {
	n.stop()
	n.runs.Max = max
	n.start()
}

func (w *testCluster) versions(nodes ...*node) (all []uint32) {
	for _, n := range nodes {
		all = append(all, n.fsm.Version())
	}
	return all
}

func TestTheVersionFollowsTheLastMemberThatIsUpgraded(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	w.oneClusterID(nodes...)
	for _, n := range nodes[:2] {
		n.upgrade(2)
		w.voters("n1", "n2", "n3")
	}
	eventually(t, "health says what the version waits for", func() bool {
		h, err := nodes[0].Health(t.Context())
		// Only a leader of the newer release knows of it.
		return err == nil && (h.Upgrade == "version 2 waits for n3, which runs only 1" || nodes[2].leads())
	})
	require.Equal(t, []uint32{1, 1, 1}, w.versions(nodes...))

	nodes[2].holds = true
	nodes[2].upgrade(2)
	eventually(t, "a held version is not raised, and health says why", func() bool {
		h, err := nodes[0].Health(t.Context())
		return err == nil && strings.Contains(h.Upgrade, "n3, which was started with --hold-version")
	})
	require.Equal(t, []uint32{1, 1, 1}, w.versions(nodes...))

	nodes[2].holds = false
	nodes[2].upgrade(2)
	eventually(t, "all have version 2", func() bool {
		for _, v := range w.versions(nodes...) {
			if v != 2 {
				return false
			}
		}
		return true
	})
	eventually(t, "members show it", func() bool {
		members, err := nodes[1].Members(t.Context())
		for _, m := range members {
			if m.ClusterVersion != 2 || m.MinVersion != 1 || m.MaxVersion != 2 {
				return false
			}
		}
		return err == nil && len(members) == 3
	})
}

func TestANodeOfAnOlderReleaseCannotJoin(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	first := w.node("n1", 1)
	first.runs.Max = 2
	first.start()
	eventually(t, "the version is raised", func() bool { return first.fsm.Version() == 2 })

	old := w.node("n2", 0, first.gossipAddr())
	old.start()
	eventually(t, "the leader says why", func() bool {
		h, err := first.Health(t.Context())
		return err == nil && strings.Contains(strings.Join(h.Reasons, " "), "it cannot join: the cluster has version 2, but the node's release runs only 1; start a newer release")
	})
	eventually(t, "so does the node", func() bool {
		return strings.Contains(old.lookAround(t.Context()), "start a newer release")
	})
	require.Len(t, first.configuration().Servers, 1)

	old.upgrade(2)
	w.voters("n1", "n2")
}
