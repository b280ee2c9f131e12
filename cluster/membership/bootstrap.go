package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

// A promise lasts much longer than its proposer may use it. The proposer counts from
// before it asked, the holder from when it answered, so their clocks need only run at
// about the same speed.
const (
	promiseFor = 15 * time.Second
	proposeFor = 5 * time.Second
)

// promise is this node's promise to be in one proposer's first configuration.
type promise struct {
	mu    sync.Mutex
	to    string // server id of the proposer
	until time.Time
}

// give promises this node to a proposer unless another holds the promise.
func (p *promise) give(to string, now time.Time) (holder string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to != "" && p.to != to && now.Before(p.until) {
		return p.to, false
	}
	p.to, p.until = to, now.Add(promiseFor)
	return to, true
}

// findCluster runs on a node without Raft state until it has some: either this
// node makes the first configuration, or another node's leader takes it in.
func (m *Membership) findCluster(ctx context.Context) {
	said := ""
	for !m.hasState() {
		why, err := m.tryBootstrap(ctx)
		if err != nil {
			m.cfg.Logger.Error("could not start a cluster", "error", err)
		}
		if why != said && why != "" {
			m.cfg.Logger.Info("in no cluster yet", "waiting_for", why)
			said = why
		}
		// The jitter keeps nodes that were started together from asking each
		// other at the same instants forever.
		t := time.NewTimer(m.cfg.Timing.Poll/2 + rand.N(m.cfg.Timing.Poll))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.toStarter:
			t.Stop()
			// Changes come in bursts; one look soon after the first covers all.
			if !sleep.For(ctx, m.cfg.Timing.Poll/10) {
				return
			}
		case <-t.C:
		}
	}
}

// tryBootstrap makes one attempt. It returns what the node waits for, or an
// empty string when it has started a cluster.
func (m *Membership) tryBootstrap(ctx context.Context) (why string, err error) {
	if m.cfg.Expect == 1 && len(m.seeds.list()) == 0 && m.ClusterID() == "" {
		return "", m.bootstrap([]gossip.Meta{m.meta()})
	}
	if why := m.lookAround(ctx); why != "" {
		return why, nil
	}
	members, why := proposal(m.meta(), m.members())
	if why != "" {
		return why, nil
	}
	began := time.Now()
	if why := m.collectPromises(ctx, members); why != "" {
		return why, nil
	}
	if time.Since(began) >= proposeFor {
		return "promises, which took too long to collect", nil
	}
	return "", m.bootstrap(members)
}

// lookAround asks every live node for its status. When any is in a cluster, or may be,
// this process never starts one: that cluster will add it. A node that does not answer
// delays the decision. It returns what this node waits for; empty: nothing.
func (m *Membership) lookAround(ctx context.Context) (why string) {
	others := m.others()
	answers := m.askAll(ctx, others)
	var silent []string
	var unfit, refused error
	for i, a := range answers {
		switch {
		case a == nil:
			silent = append(silent, others[i].NodeID)
			continue
		case a.AskerConfigured:
			m.admitted.Store(true)
		}
		if a.ClusterId != "" || a.HasState {
			m.joining.Store(true)
		}
		switch {
		case a.AskerRemovedMs != 0:
			refused = wasRemoved(m.cfg.NodeID, a.AskerRemovedMs)
		case a.AskerUninvited && refused == nil:
			refused = errUninvited
		}
		if err := m.cfg.Runs.Check(a.ClusterVersion); err != nil {
			unfit = fmt.Errorf("the cluster of %s does not take this node in: %w", others[i].NodeID, err)
		}
		if err := m.checkShards(a); err != nil {
			unfit = fmt.Errorf("the same number of shards everywhere: %w", err)
		}
	}
	m.recordRefusal(refused)
	switch {
	case refused != nil:
		return "an operator: " + refused.Error()
	case unfit != nil:
		return unfit.Error()
	case m.ClusterID() != "":
		m.joining.Store(true)
		return fmt.Sprintf("the leader of cluster %s to add this node", m.ClusterID())
	case m.joining.Load():
		return "the leader of the cluster that other nodes are in to add this node"
	case m.cfg.Expect == 0:
		return "a node that is in a cluster to answer"
	case len(silent) > 0:
		return "an answer from " + strings.Join(silent, ", ")
	}
	return ""
}

// proposal is the first configuration that self should propose, given the live
// nodes, self included: the nodes with the smallest ids, as many as expected.
// Otherwise why says what this node waits for.
func proposal(self gossip.Meta, live []gossip.Member) (members []gossip.Meta, why string) {
	nodeIDs := make(map[string]bool)
	for _, n := range live {
		switch {
		case n.Expect == 0:
			continue // only ever joins
		case n.Expect != self.Expect:
			return nil, fmt.Sprintf("the same bootstrap-expect everywhere: it is %d on %s and %d on %s",
				self.Expect, self.NodeID, n.Expect, n.NodeID)
		case n.ClusterID != "":
			return nil, fmt.Sprintf("the leader of cluster %s, of which %s is a member, to add this node", n.ClusterID, n.NodeID)
		case n.Protocol != self.Protocol:
			return nil, fmt.Sprintf("nodes of one release: %s speaks protocol %d, %s protocol %d", self.NodeID, self.Protocol, n.NodeID, n.Protocol)
		case nodeIDs[n.NodeID]:
			return nil, fmt.Sprintf("one of two nodes with the id %s to go away", n.NodeID)
		}
		nodeIDs[n.NodeID] = true
		members = append(members, n.Meta)
	}
	if missing := int(self.Expect) - len(members); missing > 0 {
		return nil, fmt.Sprintf("%d more of %d nodes", missing, self.Expect)
	}
	slices.SortFunc(members, func(a, b gossip.Meta) int { return strings.Compare(a.NodeID, b.NodeID) })
	members = members[:self.Expect]
	if members[0].ServerID != self.ServerID {
		return nil, fmt.Sprintf("%s, which has the smallest node id, to start the cluster", members[0].NodeID)
	}
	return members, ""
}

// collectPromises asks this node first and then the others: a node that has
// promised itself away must not propose.
func (m *Membership) collectPromises(ctx context.Context, members []gossip.Meta) (why string) {
	req := &memberpb.PromiseRequest{ServerId: m.cfg.ServerID, Expect: uint32(m.cfg.Expect)}
	for _, n := range members {
		req.Members = append(req.Members, n.ServerID)
	}
	if reason := m.grantPromise(req, time.Now()); reason != "" {
		return reason
	}
	for _, n := range members {
		if n.ServerID == m.cfg.ServerID {
			continue
		}
		resp, err := m.askPromise(ctx, n, req)
		if err != nil {
			return fmt.Sprintf("a promise from %s: %v", n.NodeID, err)
		}
		if !resp.Granted {
			return fmt.Sprintf("a promise from %s: %s", n.NodeID, resp.Reason)
		}
	}
	return ""
}

func (m *Membership) askPromise(ctx context.Context, n gossip.Meta, req *memberpb.PromiseRequest) (*memberpb.PromiseResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return nil, err
	}
	return c.Promise(ctx, req)
}

// grantPromise decides on a proposer's request. It returns why it is refused; empty:
// it is granted.
func (m *Membership) grantPromise(req *memberpb.PromiseRequest, now time.Time) (reason string) {
	switch {
	case m.hasState():
		return "it has Raft state"
	case m.ClusterID() != "":
		return "it waits to be taken into cluster " + m.ClusterID()
	case m.joining.Load():
		return "it has met nodes that are in a cluster and waits to be taken in"
	case req.Expect == 0 || int(req.Expect) != m.cfg.Expect:
		return fmt.Sprintf("it expects %d nodes, the proposer %d", m.cfg.Expect, req.Expect)
	case len(req.Members) != m.cfg.Expect || !slices.Contains(req.Members, m.cfg.ServerID):
		return "the configuration proposed does not list it"
	}
	if holder, ok := m.promise.give(req.ServerId, now); !ok {
		return "it has promised itself to " + raftconfig.NodeID(holder)
	}
	if req.ServerId != m.cfg.ServerID {
		m.admitted.Store(true) // the proposer will ask for a vote
	}
	return ""
}

func (m *Membership) bootstrap(members []gossip.Meta) error {
	var c raft.Configuration
	for _, n := range members {
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(n.ServerID), Address: raft.ServerAddress(n.ClusterAddr),
		})
	}
	err := m.raft.Load().BootstrapCluster(c).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil // state came from a leader in the meantime
	}
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	m.cfg.Logger.Info("started a new cluster", "voters", nodeIDs(c.Servers))
	return nil
}

func nodeIDs(servers []raft.Server) []string {
	out := make([]string, 0, len(servers))
	for _, s := range servers {
		out = append(out, raftconfig.NodeID(s.ID))
	}
	slices.Sort(out)
	return out
}
