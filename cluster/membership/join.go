package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"tarry/job"
)

// seeds are the gossip addresses by which this node looks for others.
type seeds struct {
	mu    sync.Mutex
	addrs []string
}

func (s *seeds) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addrs)
}

// add adds addresses, as long as there are fewer than maxSeeds.
func (s *seeds) add(addrs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range addrs {
		if !slices.Contains(s.addrs, a) && len(s.addrs) < maxSeeds {
			s.addrs = append(s.addrs, a)
		}
	}
}

func checkSeed(addr string) error {
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
		return fmt.Errorf("join address %q is not host:port", addr)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1024 {
		return fmt.Errorf("join address %q: the port must be a number from 1024 to 65535, that of another node's --gossip-addr", addr)
	}
	return nil
}

// Join makes this node gossip with the nodes at addrs (host:port of their gossip)
// and remember them. It blocks for a few seconds for each address at most. A node that
// belongs to another cluster than they do gets CodeConflict. Why nobody answered is
// logged and not returned; see Timing.
func (m *Membership) Join(ctx context.Context, addrs []string) error {
	if len(addrs) == 0 || len(addrs) > maxSeeds {
		return job.Errorf(job.CodeInvalid, "join takes 1 to %d addresses; %d were given", maxSeeds, len(addrs)).In("addresses")
	}
	for _, a := range addrs {
		if err := checkSeed(a); err != nil {
			return job.Errorf(job.CodeInvalid, "%w", err).In("addresses")
		}
	}
	p := m.pool.Load()
	if p == nil {
		return job.NotApplied("this node is not gossiping: it is starting or stopping")
	}
	if m.hasState() && m.ClusterID() == "" {
		// Without an id of its own it could not recognise another cluster.
		return job.NotApplied("this node's cluster has no id yet; its leader is about to give it one")
	}
	select {
	case m.joins <- struct{}{}:
		defer func() { <-m.joins }()
	default:
		return job.NotApplied("another join of this node is under way; it takes %v at most", m.cfg.Timing.JoinAnswer)
	}
	answer := time.NewTimer(m.cfg.Timing.JoinAnswer)
	defer answer.Stop()
	m.foreign.Store(nil)
	joining, cancel := context.WithTimeout(ctx, m.cfg.Timing.JoinAnswer/2) // the last address has its own time
	defer cancel()
	n, err := p.Join(joining, addrs)
	if n > 0 {
		m.seeds.add(addrs)
		return nil
	}
	if f := m.foreign.Load(); f != nil {
		return job.Errorf(job.CodeConflict, "%s belongs to cluster %s, node %s there to cluster %s; clusters cannot be merged: to move this node, "+
			"remove it from its cluster, stop it, move its data directory away and start it with --join", m.cfg.NodeID, f.ours, f.nodeID, f.theirs)
	}
	m.cfg.Logger.Warn("no node answered a join", "addresses", addrs, "error", err)
	// The caller chose the dialed addresses. Neither the reply nor its time may reveal
	// whether a port there is open. There is one join at a time.
	select {
	case <-answer.C:
	case <-ctx.Done():
	}
	return job.NotApplied("the node could not join: no node answered there; do nodes run there, and are these their gossip addresses? This node's log says more")
}

// rejoin looks for members when fewer are alive than there should be. Gossip removes
// a dead node after half a minute, so without this the two sides of a long partition
// would never find each other again. It tries other addresses each time, for about
// Timing.Rejoin: forged gossip can have left hundreds at which no node is.
func (m *Membership) rejoin(ctx context.Context) {
	p := m.pool.Load()
	if p == nil || !m.missesMembers() {
		return
	}
	m.joinAll(ctx, p.Known())
	if f := m.foreign.Load(); f != nil && *f != m.foreignLogged {
		m.foreignLogged = *f // once for each
		m.cfg.Logger.Warn("refused to gossip with a node of another cluster", "other_node", f.nodeID, "its_cluster", f.theirs, "our_cluster", f.ours)
	}
}

// joinAll exchanges records with the seeds and the known addresses, for about Timing.Rejoin.
func (m *Membership) joinAll(ctx context.Context, known []string) {
	p, addrs := m.pool.Load(), m.seeds.list()
	if p == nil {
		return
	}
	rand.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	for _, a := range known {
		if a != m.GossipAddr() && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return
	}
	joining, cancel := context.WithTimeout(ctx, m.cfg.Timing.Rejoin)
	defer cancel()
	n, err := p.Join(joining, addrs)
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Debug("not every address to join answered", "answered", n, "error", err)
	}
}

func (m *Membership) missesMembers() bool {
	live := make(map[string]bool)
	for _, n := range m.members() {
		live[n.ServerID] = true
	}
	for _, s := range m.configuration().Servers {
		if !live[string(s.ID)] {
			return true
		}
	}
	return len(live) < max(len(m.seeds.list()), 2)
}
