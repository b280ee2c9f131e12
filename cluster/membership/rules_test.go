package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"tarry/cluster/ackguard"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

func TestRemovalArithmetic(t *testing.T) {
	for _, c := range []struct {
		voters, dead, nonvoters, leaving string
		want                             string // empty: allowed
	}{
		{voters: "1 2 3", leaving: "1"},
		{voters: "1 2 3", dead: "3", leaving: "3"},
		{voters: "1 2 3", dead: "3", leaving: "2", want: "removing n2 leaves 2 voters of which 1 is alive; 2 are needed"},
		{voters: "1 2", leaving: "2"},
		{voters: "1 2", dead: "2", leaving: "2"},
		{voters: "1 2", dead: "2", leaving: "1", want: "removing n1 leaves 1 voter of which 0 are alive; 1 is needed"},
		{voters: "1", leaving: "1", want: "n1 is the last voter; a cluster needs at least one"},
		{voters: "1", nonvoters: "2", leaving: "1", want: "n1 is the last voter; a cluster needs at least one"},
		{voters: "1 2 3 4 5", dead: "4 5", leaving: "5"},
		{voters: "1 2 3 4 5", dead: "4 5", leaving: "3", want: "removing n3 leaves 4 voters of which 2 are alive; 3 are needed"},
		{voters: "1 2 3 4", dead: "4", leaving: "3"},
		{voters: "1 2 3 4", dead: "3 4", leaving: "2", want: "removing n2 leaves 3 voters of which 1 is alive; 2 are needed"},
		{voters: "1 2 3", dead: "3", nonvoters: "4", leaving: "4"},
	} {
		t.Run(fmt.Sprintf("%s of %s without %s", c.leaving, c.voters, c.dead), func(t *testing.T) {
			conf, alive := raft.Configuration{}, map[raft.ServerID]bool{}
			add := func(list string, s raft.ServerSuffrage) {
				for id := range strings.FieldsSeq(list) {
					server := raft.ServerID("n" + id + ".x")
					conf.Servers = append(conf.Servers, raft.Server{ID: server, Suffrage: s})
					alive[server] = !strings.Contains(c.dead, id)
				}
			}
			add(c.voters, raft.Voter)
			add(c.nonvoters, raft.Nonvoter)
			err := checkRemoval(conf, alive, raft.ServerID("n"+c.leaving+".x"))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.Equal(t, job.CodeQuorumWouldFail, code(err))
		})
	}
}

func TestProposal(t *testing.T) {
	n := func(id string, expect uint32, change ...func(*gossip.Meta)) gossip.Member {
		m := gossip.Member{Meta: gossip.Meta{NodeID: id, ServerID: id + ".x", Expect: expect, Protocol: protocol}}
		for _, f := range change {
			f(&m.Meta)
		}
		return m
	}
	in := func(cluster string) func(*gossip.Meta) { return func(m *gossip.Meta) { m.ClusterID = cluster } }
	twin := func(m *gossip.Meta) { m.ServerID += "2" }
	newer := func(m *gossip.Meta) { m.Protocol++ }
	for _, c := range []struct {
		name string
		live []gossip.Member // the first is self
		want string          // members, or what is waited for
	}{
		{"exactly as many", []gossip.Member{n("a", 3), n("b", 3), n("c", 3)}, "a b c"},
		{"the smallest of more", []gossip.Member{n("a", 3), n("d", 3), n("c", 3), n("b", 3)}, "a b c"},
		{"joiners do not count", []gossip.Member{n("a", 2), n("b", 0), n("c", 2)}, "a c"},
		{"too few", []gossip.Member{n("a", 3), n("b", 3), n("c", 0)}, "1 more of 3 nodes"},
		{"not the smallest", []gossip.Member{n("b", 2), n("a", 2)}, "a, which has the smallest node id"},
		{"left out", []gossip.Member{n("c", 2), n("a", 2), n("b", 2)}, "a, which has the smallest node id"},
		{"other expectations", []gossip.Member{n("a", 2), n("b", 2), n("c", 3)}, "bootstrap-expect everywhere: it is 2 on a and 3 on c"},
		{"a member of a cluster", []gossip.Member{n("a", 2), n("b", 2, in("x"))}, "the leader of cluster x"},
		{"one id twice", []gossip.Member{n("a", 2), n("b", 2), n("b", 2, twin)}, "two nodes with the id b"},
		{"another release", []gossip.Member{n("a", 2), n("b", 2, newer)}, "nodes of one release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			members, why := proposal(c.live[0].Meta, c.live)
			if members == nil {
				require.Contains(t, why, c.want)
				return
			}
			var ids []string
			for _, m := range members {
				ids = append(ids, m.NodeID)
			}
			require.Equal(t, c.want, strings.Join(ids, " "))
			require.Empty(t, why)
		})
	}
}

// bare returns a node that is configured but not started.
func bare(t testing.TB, change ...func(*Config)) *Membership {
	c := Config{
		NodeID: "n1", ServerID: "n1.x", ClusterAddr: "localhost:7301", HTTPAddr: "localhost:7300",
		GossipBind: "127.0.0.1:0", Expect: 3, Logger: slog.New(slog.DiscardHandler),
		Facts: &fsm{version: 1}, Decisions: decisions(func(string) error { return nil }), Clocks: wallClocks{}, Condition: condition{new(node)},
		Acks: ackguard.Guards{ackguard.New(ackguard.Config{ServerID: "n1.x", Logger: slog.New(slog.DiscardHandler), OnRollback: func(error) {}})},
		Dial: func(context.Context, string, string) (*grpc.ClientConn, error) { return nil, errors.New("no network") },
	}
	for _, f := range change {
		f(&c)
	}
	m, err := New(c)
	require.NoError(t, err)
	return m
}

func TestANodePromisesItselfToOneProposerAtATime(t *testing.T) {
	m := bare(t)
	ask := func(proposer string, at time.Time) string {
		return m.grantPromise(&memberpb.PromiseRequest{ServerId: proposer, Expect: 3, Members: []string{proposer, "n1.x", "n3.x"}}, at)
	}
	start := time.Now()
	require.Empty(t, ask("a.1", start))
	require.True(t, m.AcceptsRaft(), "the proposer must be able to ask for a vote")
	require.Contains(t, ask("b.1", start.Add(promiseFor-1)), "promised itself to a")
	require.Empty(t, ask("a.1", start.Add(promiseFor-1)), "the holder may renew")
	require.Contains(t, ask("b.1", start.Add(promiseFor)), "promised itself to a")
	require.Empty(t, ask("b.1", start.Add(2*promiseFor)), "a promise expires")
	require.Less(t, proposeFor, promiseFor, "a promise must outlive its use")
}

func TestANodeThatCannotStartAClusterPromisesNothing(t *testing.T) {
	good := &memberpb.PromiseRequest{ServerId: "a.1", Expect: 3, Members: []string{"a.1", "n1.x", "n3.x"}}
	for want, m := range map[string]*Membership{
		"it has Raft state": bare(t, func(c *Config) { c.HasState = true }),
		"cluster x":         bare(t, func(c *Config) { c.Facts = &fsm{cluster: "x"} }),
		"it expects 5":      bare(t, func(c *Config) { c.Expect = 5 }),
		"it expects 0":      bare(t, func(c *Config) { c.Expect = 0 }),
	} {
		require.Contains(t, m.grantPromise(good, time.Now()), want)
		require.Equal(t, m.cfg.HasState, m.AcceptsRaft())
	}
	m := bare(t)
	require.Contains(t, m.grantPromise(&memberpb.PromiseRequest{ServerId: "a.1", Expect: 3, Members: []string{"a.1", "b.1", "c.1"}}, time.Now()), "does not list it")
	m.joining.Store(true)
	require.Contains(t, m.grantPromise(good, time.Now()), "in a cluster")
	m = bare(t)
	m.binding.bind("y", time.Now())
	require.Contains(t, m.grantPromise(good, time.Now()), "cluster y")
}

func TestANodeBindsItselfToTheFirstClusterItDiscovers(t *testing.T) {
	m := bare(t)
	receive := func(cluster string) error {
		return m.admit(gossip.Meta{NodeID: "z", ServerID: "z.1", ClusterID: cluster})
	}
	require.NoError(t, receive(""))
	require.Empty(t, m.ClusterID())
	require.NoError(t, receive("x"))
	require.Equal(t, "x", m.ClusterID())
	require.ErrorContains(t, receive("y"), "node z belongs to cluster y, this node to cluster x")
	require.NoError(t, receive(""), "a node in no cluster may join any")

	now := time.Now()
	require.False(t, m.binding.lapse(now))
	require.True(t, m.binding.lapse(now.Add(2*bindFor)))
	require.NoError(t, receive("y"))

	inOne := bare(t, func(c *Config) { c.Facts = &fsm{cluster: "x"}; c.HasState = true })
	require.Error(t, inOne.admit(gossip.Meta{NodeID: "z", ServerID: "z.1", ClusterID: "y"}))
	unnamed := bare(t, func(c *Config) { c.HasState = true })
	require.NoError(t, unnamed.admit(gossip.Meta{NodeID: "z", ServerID: "z.1", ClusterID: "y"}))
	require.Empty(t, unnamed.ClusterID(), "a node with state gets its id from the log only")
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.NodeID = "" }, "node id has 0 bytes; it takes 1 to 64"},
		{func(c *Config) { c.NodeID = strings.Repeat("n", 65) }, "node id has 65 bytes"},
		{func(c *Config) { c.ServerID = "n2.x" }, "server id"},
		{func(c *Config) { c.ServerID = "n1" }, "server id"},
		{func(c *Config) { c.ClusterAddr = ":7301" }, "advertised cluster address"},
		{func(c *Config) { c.HTTPAddr = "" }, "advertised HTTP address"},
		{func(c *Config) { c.Join = []string{"n2"} }, `join address "n2" is not host:port`},
		{func(c *Config) { c.Expect = -1 }, "bootstrap-expect is -1"},
		{func(c *Config) { c.Expect = 10 }, "between 0 and 9"},
		{func(c *Config) { c.Expect, c.Join = 1, []string{"n2:7302"} }, "beside the one to join"},
		{func(c *Config) { c.Dial = nil }, "a part of the node"},
		{func(c *Config) { c.Acks = nil }, "a part of the node"},
		{func(c *Config) { c.Version = strings.Repeat("v", 500) }, "the limit is 512"},
	} {
		cfg := bare(t).cfg
		c.change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, c.want)
	}
}

func TestGossipRestartsWhenTheAdvertisedHostHasANewAddress(t *testing.T) {
	m := bare(t, func(c *Config) { c.AdvertiseHost = "127.0.0.1" })
	ctx := context.Background()
	require.NoError(t, m.openPool(ctx))
	before, epoch := m.pool.Load(), m.epoch.Load()
	m.followAdvertisedIP(ctx)
	require.Same(t, before, m.pool.Load(), "nothing moved")
	m.cfg.AdvertiseHost = "127.0.0.2"
	m.followAdvertisedIP(ctx)
	defer m.pool.Load().Close()
	require.Equal(t, "127.0.0.2", m.pool.Load().IP().String())
	require.Greater(t, m.epoch.Load(), epoch, "it is another run for the others")
}
