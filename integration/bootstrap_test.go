package integration

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/internal/testseed"
)

// startInRace starts nodes in an order and at distances that the seed draws. Some
// are killed on the way, and wiped if they may have been in no cluster yet.
func (c *cluster) startInRace(r *rand.Rand, nodes []*localcluster.Node, kills int) {
	l := &load{t: c.t}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for i, n := range nodes {
		require.NoError(c.t, n.Start())
		l.wait(time.Duration(r.Int64N(int64(time.Second))))
		if i < kills {
			require.NoError(c.t, n.Kill())
			if r.IntN(2) == 0 {
				require.NoError(c.t, n.Wipe())
			}
			require.NoError(c.t, n.Start())
		}
	}
}

func TestBootstrapRaces(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name         string
		nodes, kills int
	}{
		{"three at once", 3, 0},
		{"five at once", 5, 0},
		{"one of three killed on the way", 3, 1},
		{"two of five killed on the way", 5, 2},
	} {
		t.Run(s.name, func(t *testing.T) {
			seed := testseed.New()
			t.Logf("order and kills come from seed %d", seed)
			c := newCluster(t, s.nodes)
			c.startInRace(rand.New(rand.NewPCG(seed, 0)), c.Nodes(), s.kills)
			c.waitReady(c.Nodes()...)
			var ids []string
			for _, n := range c.Nodes() {
				ids = append(ids, n.ID)
			}
			for _, n := range c.Nodes() {
				c.waitVoters(n, ids...)
			}
			c.requireEqualDigests(c.leader(), s.nodes)
		})
	}
}

// A wrong address must not make one cluster of two, nor take a node of one into
// the other.
func TestTwoClustersThatMeetStayTwo(t *testing.T) {
	t.Parallel()
	a, b := startCluster(t, 3), startCluster(t, 3)
	// At once: a cluster that has no id yet must not take the call for its own.
	b.until(func() error {
		status, answer := try(t, b.Nodes()[0].HTTP, "/v1/cluster/join", object{"addresses": []string{a.Nodes()[0].Gossip}})
		if status == http.StatusServiceUnavailable {
			return fmt.Errorf("not yet: %v", answer)
		}
		require.Equal(t, http.StatusConflict, status, "%v", answer)
		return nil
	})
	post(t, b.leader().HTTP, "/v1/jobs", object{"topic": "of-b", "delay": 3600, "body": 1})
	for _, c := range []*cluster{a, b} {
		for _, n := range c.Nodes() {
			c.waitVoters(n, "n1", "n2", "n3")
		}
		c.requireEqualDigests(c.leader(), 3)
	}
	require.Empty(t, a.topics())
	require.Equal(t, []string{"of-b"}, b.topics())
}

func (c *cluster) topics() []string {
	var answer struct{ Topics []struct{ Topic string } }
	require.NoError(c.t, c.Get(c.t.Context(), c.leader(), "/v1/topics", &answer))
	var names []string
	for _, topic := range answer.Topics {
		names = append(names, topic.Topic)
	}
	return names
}
