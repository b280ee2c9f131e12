package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// resolveFor is how long Start waits until the node's own name resolves; a
// name service may publish it a moment after the process starts.
const resolveFor = 10 * time.Second

// Membership is one node's part in its cluster. Its life: New, Register on the
// gRPC server, Gate around the layer that Raft's transport listens on and ServerAddr
// as its address provider, Start with the running
// Raft, Lead whenever this node is the established leader, Stop before Raft is
// shut down. All other methods may be called from many goroutines at once after
// Start.
type Membership struct {
	cfg  Config
	raft atomic.Pointer[raft.Raft]

	poolMu sync.Mutex // held while the pool is replaced
	pool   atomic.Pointer[gossip.Pool]
	epoch  atomic.Uint64

	receipts      receipts
	clocks        clockReadings
	clocksMu      sync.Mutex
	clocksSaid    string // what was logged of the clocks last
	reconcileSaid string // the last pass's error as it was logged; of Lead
	keptBecause   string // why leadership was not given away, as it was logged last
	clockTold     atomic.Pointer[clockTold]
	leaderAcks    leaderAcks
	affiliation   affiliation
	promise       promise
	foreign       atomic.Pointer[foreignError] // the last refusal, for Join to report
	foreignSaid   foreignError                 // the last refusal that was logged; of the watch goroutine
	joining       atomic.Bool                  // set once: a cluster exists, so never bootstrap
	admitted      atomic.Bool                  // set once: a cluster asked for this server id
	gaveWay       atomic.Uint64
	removed       atomic.Bool // set once: this server id was removed for good

	seedsMu sync.Mutex
	seeds   []string

	// changing holds a token while the leader decides on a change of the
	// configuration and makes it; a channel, so that waiting ends with a context.
	changing chan struct{}
	joins    chan struct{} // holds a token while an operator's join is under way
	reign    atomic.Pointer[reign]

	toLeader  chan struct{} // gossip changed; one pending wake-up says it all
	toStarter chan struct{}
	toWatcher chan struct{}
	toJudge   chan struct{} // a disk's condition changed

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
	if cfg.Condition == nil {
		cfg.Condition = func() Condition { return Condition{} }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ClusterClock == nil {
		cfg.ClusterClock = cfg.Now
	}
	if cfg.ClockConfirmed == nil {
		cfg.ClockConfirmed = func(time.Time, time.Time) {}
	}
	cfg.MaxClockOffset = cmp.Or(cfg.MaxClockOffset, DefaultMaxClockOffset)
	return &Membership{
		cfg:       cfg,
		seeds:     append([]string(nil), cfg.Join...),
		changing:  make(chan struct{}, 1),
		joins:     make(chan struct{}, 1),
		toLeader:  make(chan struct{}, 1),
		toStarter: make(chan struct{}, 1),
		toWatcher: make(chan struct{}, 1),
		toJudge:   make(chan struct{}, 1),
	}, nil
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

func (m *Membership) openPool(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	m.poolMu.Lock()
	defer m.poolMu.Unlock()
	for {
		m.epoch.Store(uint64(time.Now().UnixNano()))
		p, err := gossip.Open(ctx, gossip.Options{
			Bind: m.cfg.GossipBind, AdvertiseHost: m.cfg.AdvertiseHost,
			Meta: m.meta, Admit: m.admit, Changed: m.gossipChanged,
			Logger: m.cfg.Logger.With("part", "gossip"), Tune: m.cfg.tuneGossip,
		})
		if err == nil {
			m.pool.Store(p)
			return nil
		}
		var unresolved *net.DNSError
		if !errors.As(err, &unresolved) || pause(ctx, 500*time.Millisecond) != nil {
			return err
		}
	}
}

// meta is this node's gossip record as of now.
func (m *Membership) meta() gossip.Meta {
	meta := m.cfg.meta()
	meta.ClusterID = m.ClusterID()
	meta.Epoch = m.epoch.Load()
	meta.Fresh = !m.hasState()
	return meta
}

func (m *Membership) gossipChanged() {
	poke(m.toLeader)
	poke(m.toStarter)
}

// ClusterIDChanged tells that the state machine has learned the cluster's id, so
// that the gossip carries it at once. It does not block. Without it the change
// is noticed within seconds.
func (m *Membership) ClusterIDChanged() { poke(m.toWatcher) }

// hasState says that Raft on this node has voted, logged or restored anything.
func (m *Membership) hasState() bool {
	if m.cfg.HasState {
		return true
	}
	r := m.raft.Load()
	return r != nil && (r.LastIndex() > 0 || r.CurrentTerm() > 0)
}

// AcceptsRaft says whether Raft messages from other nodes may reach this node.
// It is false on a node without state until a cluster has asked for this very
// server id, and true from then on. Raft connections are refused while it is
// false (Gate). Those that are meant for an earlier incarnation at the same address,
// whose votes and log are gone, name that and are always refused (transport).
func (m *Membership) AcceptsRaft() bool { return m.admitted.Load() || m.hasState() }

// Removed says that this node's server id was removed from the cluster for good.
func (m *Membership) Removed() bool {
	return m.removed.Load() || m.cfg.Forgotten(m.cfg.ServerID)
}

// Peer is what is known of a node from its gossip.
type Peer struct {
	NodeID, ServerID      string
	ClusterAddr, HTTPAddr string
	Version               string
}

// Leader gives the node that this one believes to be the leader.
func (m *Membership) Leader() (Peer, bool) {
	r := m.raft.Load()
	if r == nil {
		return Peer{}, false
	}
	addr, id := r.LeaderWithID()
	if id == "" {
		return Peer{}, false
	}
	if p, ok := m.PeerByServerID(string(id)); ok {
		return p, true
	}
	return Peer{NodeID: nodeIDOf(string(id)), ServerID: string(id), ClusterAddr: string(addr)}, true
}

// PeerByServerID finds a live node, this one included.
func (m *Membership) PeerByServerID(serverID string) (Peer, bool) {
	if serverID == m.cfg.ServerID {
		return peerOf(m.cfg.meta()), true
	}
	n, ok := m.find(serverID)
	return peerOf(n.Meta), ok
}

func (m *Membership) find(serverID string) (gossip.Member, bool) {
	p := m.pool.Load()
	if p == nil {
		return gossip.Member{}, false
	}
	return p.Find(serverID)
}

func peerOf(n gossip.Meta) Peer {
	return Peer{NodeID: n.NodeID, ServerID: n.ServerID, ClusterAddr: n.ClusterAddr, HTTPAddr: n.HTTPAddr, Version: n.Version}
}

// ServerAddr is where to reach a server now: what it says of itself, else what
// Raft's configuration says. It never blocks.
func (m *Membership) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if p, ok := m.PeerByServerID(string(id)); ok {
		return raft.ServerAddress(p.ClusterAddr), nil
	}
	for _, s := range m.configuration().Servers {
		if s.ID == id {
			return s.Address, nil
		}
	}
	return "", fmt.Errorf("server %s is neither alive nor in the configuration", id)
}

// GossipAddr is the host:port by which others may join this node.
func (m *Membership) GossipAddr() string {
	n, _ := m.find(m.cfg.ServerID)
	return n.GossipAddr
}

// members lists the live nodes that may belong to this node's cluster, itself
// included.
func (m *Membership) members() []gossip.Member {
	p := m.pool.Load()
	if p == nil {
		return nil
	}
	ours := m.ClusterID()
	all := p.Members()
	out := all[:0]
	for _, n := range all {
		// Gossip refuses foreigners, but it may have met them before it knew.
		if ours == "" || n.ClusterID == "" || n.ClusterID == ours || n.ServerID == m.cfg.ServerID {
			out = append(out, n)
		}
	}
	return out
}

// others is members without this node.
func (m *Membership) others() []gossip.Member {
	all := m.members()
	out := all[:0]
	for _, n := range all {
		if n.ServerID != m.cfg.ServerID {
			out = append(out, n)
		}
	}
	return out
}

// configuration is Raft's latest configuration on this node, committed or not.
func (m *Membership) configuration() raft.Configuration {
	c, _ := m.configurationAt()
	return c
}

func (m *Membership) configurationAt() (raft.Configuration, uint64) {
	r := m.raft.Load()
	if r == nil {
		return raft.Configuration{}, 0
	}
	f := r.GetConfiguration() // answered from memory
	if f.Error() != nil {
		return raft.Configuration{}, 0
	}
	return f.Configuration(), f.Index()
}

// Join makes this node gossip with the nodes at addrs (host:port of their gossip)
// and remember them. It blocks for some seconds an address at most. A node that
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
		// Without an id of its own it could not tell a foreign cluster.
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
		m.addSeeds(addrs)
		return nil
	}
	if f := m.foreign.Load(); f != nil {
		return job.Errorf(job.CodeConflict, "%s belongs to cluster %s, node %s there to cluster %s; clusters cannot be merged: to move this node, "+
			"remove it from its cluster, stop it, move its data directory away and start it with --join", m.cfg.NodeID, f.ours, f.nodeID, f.theirs)
	}
	m.cfg.Logger.Warn("no node answered a join", "addresses", addrs, "error", err)
	// What was dialed is the caller's choice. Neither the answer nor its time tells
	// whether a port there is open, and there is one such question at a time.
	select {
	case <-answer.C:
	case <-ctx.Done():
	}
	return job.NotApplied("the node could not join: no node answered there; do nodes run there, and are these their gossip addresses? This node's log says more")
}

// beginChange waits for the right to change the configuration. The caller calls
// end when it is done, unless there is an error.
func (m *Membership) beginChange(ctx context.Context) (end func(), err error) {
	select {
	case m.changing <- struct{}{}:
		return func() { <-m.changing }, nil
	case <-ctx.Done():
		return nil, job.NotApplied("another change of the cluster's members did not end in time: %w", ctx.Err())
	}
}

// poke leaves a wake-up in c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, and returns an error only when ctx ended first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
