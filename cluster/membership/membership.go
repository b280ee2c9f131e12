package membership

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"tarry/cluster/clockguard"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
)

// Membership is one node's part in its cluster. The order of calls: New; Register on the gRPC
// server; Admission around the layer that Raft's transport listens on, and ServerAddr
// as its address provider; Start with the running Raft; Lead whenever this node is
// the established leader; Stop before Raft is shut down. All other methods may be
// called from many goroutines at once after Start.
type Membership struct {
	cfg    Config
	raft   atomic.Pointer[raft.Raft]
	clocks *clockguard.Guard
	groups []*Group // the data groups; none with one shard
	rounds rounds

	// Gossip.
	poolMu  sync.Mutex // held while the pool is replaced
	pool    atomic.Pointer[gossip.Pool]
	epoch   atomic.Uint64 // of this run of the pool
	seeds   seeds
	joins   chan struct{} // holds a token while an operator's join is under way
	foreign atomic.Pointer[foreignError]
	// overruled is set by gossip; see objectAnew.
	overruled atomic.Bool
	// foreignAt is when foreign was last met, in Unix nanoseconds.
	foreignAt atomic.Int64
	// foreignLogged is the last refusal that was logged; of the watch goroutine.
	foreignLogged foreignError

	// How a node without state comes into a cluster.
	binding   clusterBinding
	promise   promise
	joining   atomic.Bool            // set once: a cluster exists, so never bootstrap
	admitted  atomic.Bool            // set once: a cluster asked for this server id
	removed   atomic.Bool            // set once: this server id was removed for good
	refusal   atomic.Pointer[string] // why no cluster takes this node in before an operator acts; nil: none refuses it
	vouching  vouching
	replies   replies
	raftConns raftConns
	// refused is why adds are to be refused, as the leader of group 0 has said last.
	refused atomic.Pointer[refusedAdds]

	// The leader's part.
	leadership       atomic.Pointer[leadership] // nil: this node does not lead
	transferAttempts atomic.Uint64
	// changing holds a token while the leader decides on a change of the
	// configuration and makes it; a channel, so that waiting ends with a context.
	changing chan struct{}
	// reconcileLogged is the last pass's error as it was logged; of Lead.
	reconcileLogged string

	// newerKeys is the id of a server with newer gossip keys than this node's; nil: none is
	// known.
	newerKeys atomic.Pointer[string]
	fetches   fetches // of watch

	// Wake-ups of goroutines; each has room for one.
	toLeader    chan struct{} // gossip changed
	toStarter   chan struct{} // gossip changed
	toWatcher   chan struct{} // the gossip record changed
	toFollower  chan struct{} // the leader changed
	toEvaluator chan struct{} // a disk or the clock changed

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Membership, error) {
	if cfg.AdvertiseHost == "" {
		cfg.AdvertiseHost = hostOf(cfg.ClusterAddr)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Shards = max(cfg.Shards, 1)
	cfg.MaxClockOffset = cmp.Or(cfg.MaxClockOffset, clockguard.DefaultMaxOffset)
	m := &Membership{
		cfg:         cfg,
		seeds:       seeds{addrs: slices.Clone(cfg.Join)},
		changing:    make(chan struct{}, 1),
		joins:       make(chan struct{}, 1),
		toLeader:    make(chan struct{}, 1),
		toStarter:   make(chan struct{}, 1),
		toWatcher:   make(chan struct{}, 1),
		toFollower:  make(chan struct{}, 1),
		toEvaluator: make(chan struct{}, 1),
	}
	m.clocks = m.newClockGuard()
	return m, nil
}

// Register adds the calls between nodes to a gRPC server.
func (m *Membership) Register(s grpc.ServiceRegistrar) {
	memberpb.RegisterMembershipServer(s, &server{m: m})
}

// Start begins to gossip, to look for the other nodes and, when this node has no
// state, for a cluster. It waits for no other node; it blocks only until the
// advertised name resolves, for 10 seconds at most.
func (m *Membership) Start(r *raft.Raft) error {
	m.raft.Store(r)
	ctx, cancel := context.WithCancel(context.Background())
	if err := m.openPool(ctx); err != nil {
		cancel()
		return err
	}
	m.cancel = cancel
	m.wg.Go(func() { m.watch(ctx) })
	m.wg.Go(func() { m.followLeader(ctx) })
	if !m.cfg.HasState {
		m.wg.Go(func() { m.findCluster(ctx) })
	}
	return nil
}

// Stop leaves the gossip and waits for every goroutine. It changes nothing in
// the cluster. Lead must have returned.
func (m *Membership) Stop() error {
	if m.cancel == nil {
		return nil
	}
	m.cancel()
	m.wg.Wait()
	m.poolMu.Lock()
	defer m.poolMu.Unlock()
	if p := m.pool.Swap(nil); p != nil {
		return p.Close()
	}
	return nil
}

// hasState reports whether Raft on this node has voted, logged or restored anything.
func (m *Membership) hasState() bool {
	if m.cfg.HasState {
		return true
	}
	r := m.raft.Load()
	return r != nil && (r.LastIndex() > 0 || r.CurrentTerm() > 0)
}

// AcceptsRaft reports whether Raft messages from other nodes may reach this node.
// It is false on a node without state until a cluster has asked for this very server
// id, and true from then on. While it is false Raft connections are refused
// (Admission). Connections for an earlier incarnation at the same address, whose votes
// and log are gone, name that and are always refused (transport).
func (m *Membership) AcceptsRaft() bool { return m.admitted.Load() || m.hasState() }

// Removed reports whether this node's server id was removed from the cluster for good.
func (m *Membership) Removed() bool {
	return m.removed.Load() || m.cfg.Facts.Forgotten(m.cfg.ServerID)
}

// poke leaves a wake-up in c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
