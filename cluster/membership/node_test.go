package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"tarry/cluster/ackguard"
	"tarry/cluster/diskpolicy"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/raftconfig"
	"tarry/cluster/raftwire"
	"tarry/cluster/report"
	"tarry/cluster/transport"
	"tarry/internal/freeport"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that must happen; it is long because
// the machine may be busy: with a third of a core for a dozen nodes an election takes half a
// minute. Nothing is asserted about how long things take.
const patience = 3 * time.Minute

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, 20*time.Millisecond, what)
}

// testCluster is a cluster of nodes on loopback. In production Raft and RPC share a port. Here
// Raft listens on its own port, which is found by the cluster address.
type testCluster struct {
	t     *testing.T
	mu    sync.Mutex
	raft  map[string]string // cluster address to the Raft listener
	conns *leaderrpc.Conns
	nodes []*node

	elected  bool          // the first election has begun
	noProbes bool          // gossip reports every known node as alive for an hour
	rejoin   time.Duration // 0: a fifth of a second
	replace  time.Duration // 0: the default
}

func newConns() *leaderrpc.Conns {
	return leaderrpc.NewConns(func(ctx context.Context, _, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
}

func newTestCluster(t *testing.T) *testCluster {
	w := &testCluster{t: t, raft: make(map[string]string), conns: newConns()}
	t.Cleanup(func() {
		for _, n := range w.nodes {
			n.stop()
		}
		w.conns.Close()
	})
	return w
}

// node is a machine: its addresses and its disk outlive a run.
type node struct {
	cluster *testCluster
	id      string
	expect  int
	join    []string

	clusterAddr, gossipBind string
	incarnation             int
	disk                    *raft.InmemStore
	seenState               bool
	knows                   map[string]int64 // the removed nodes of its state at a start
	runs                    job.Versions     // of its release
	holds                   bool
	keysFile                string // of gossip keys; empty: none
	verify                  gossip.Verify
	plainCalls              bool // calls between nodes are not secure
	invitation              *invitation.Secret
	used                    atomic.Pointer[string] // the last invitation and its node, as this leader has reported

	diskHealth atomic.Pointer[diskpolicy.Health] // nil: a healthy disk
	trouble    atomic.Pointer[string]            // nil: none
	log        logLines

	*Membership
	conns  *leaderrpc.Conns // nil: those of the cluster
	acks   *ackguard.Guard
	raft   *raft.Raft
	fsm    *fsm
	layer  *layer
	trans  *ackguard.Transport
	grpc   *grpc.Server
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (w *testCluster) node(id string, expect int, join ...string) *node {
	n := &node{cluster: w, id: id, expect: expect, join: join, incarnation: 1, disk: raft.NewInmemStore(), runs: job.Versions{Min: 1, Max: 1}}
	n.clusterAddr = fmt.Sprintf("localhost:%d", freePort(w.t))
	n.gossipBind = fmt.Sprintf("127.0.0.1:%d", freePort(w.t))
	w.nodes = append(w.nodes, n)
	return n
}

func freePort(t *testing.T) int {
	p, err := freeport.Take()
	require.NoError(t, err)
	return p
}

func (n *node) serverID() string { return fmt.Sprintf("%s.%d", n.id, n.incarnation) }

func testLogger() *slog.Logger {
	if os.Getenv("MEMBERSHIP_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (n *node) config() Config {
	return Config{
		NodeID: n.id, ServerID: n.serverID(), ClusterAddr: n.clusterAddr, HTTPAddr: "localhost:7300",
		GossipBind: n.gossipBind, Join: n.join, Expect: n.expect, Version: "test",
		HasState: n.seenState, Logger: slog.New(slog.NewMultiHandler(testLogger().Handler(), n.log.handler())).With("on", n.serverID()),
		Facts: n.fsm, Decisions: decisions(n.propose), Clocks: wallClocks{}, Condition: condition{n},
		Invitation: n.ownInvitation(), InvitationUsed: func(id, node string) { n.used.Store(new(id + " " + node)) },
		Runs: n.runs, HoldVersion: n.holds,
		GossipKeys: n.gossipKeys(), GossipVerify: n.verify, SecureCalls: !n.plainCalls,
		Dial: cmp.Or(n.conns, n.cluster.conns).Get, Acks: ackguard.Guards{n.acks},
		Timing: Timing{
			Poll: 50 * time.Millisecond, Rejoin: cmp.Or(n.cluster.rejoin, 200*time.Millisecond), Reconcile: 500 * time.Millisecond,
			Health: 200 * time.Millisecond, Stabilize: 400 * time.Millisecond, MinLead: time.Second, JoinAnswer: time.Second,
			Replace: n.cluster.replace,
		},
		tuneGossip: func(c *memberlist.Config) {
			c.ProbeInterval, c.ProbeTimeout = 200*time.Millisecond, 100*time.Millisecond
			c.GossipInterval, c.SuspicionMult = 20*time.Millisecond, 3
			if n.cluster.noProbes {
				c.ProbeInterval = time.Hour
			}
		},
	}
}

// condition is a node's as its Membership sees it.
type condition struct{ n *node }

func (c condition) Disk() diskpolicy.Health {
	if h := c.n.diskHealth.Load(); h != nil {
		return *h
	}
	return diskpolicy.Health{LogWrite: time.Millisecond}
}

func (c condition) Trouble() string {
	if why := c.n.trouble.Load(); why != nil {
		return *why
	}
	return ""
}

func (condition) Drained() bool                        { return false }
func (condition) Problems(time.Time) []*report.Problem { return nil }

// wallClocks are the machine's.
type wallClocks struct{}

func (wallClocks) Wall() time.Time          { return time.Now() }
func (wallClocks) Queue() time.Time         { return time.Now() }
func (wallClocks) Confirmed(_, _ time.Time) {}

// decisions proposes commands of fsm.
type decisions func(cmd string) error

func (d decisions) Shown(context.Context) error                     { return nil }
func (d decisions) SetClusterID(_ context.Context, id string) error { return d("cluster " + id) }
func (d decisions) Admit(_ context.Context, node string) error      { return d("admit " + node) }
func (d decisions) RaiseVersion(_ context.Context, to uint32) error {
	return d(fmt.Sprint("version ", to))
}
func (d decisions) ResetClock(context.Context, time.Time) error { return nil }
func (d decisions) UseInvitation(_ context.Context, id, server string) error {
	return d("use " + id + " " + server)
}

func (d decisions) Forget(_ context.Context, id, node string) error {
	return errors.Join(d("forget "+id), d("remove "+node))
}

func (n *node) propose(cmd string) error {
	f := n.raft.Apply([]byte(cmd), time.Second)
	if err := f.Error(); err != nil {
		return err
	}
	err, _ := f.Response().(error)
	return err
}

func (n *node) start() {
	t := n.cluster.t
	t.Helper()
	n.fsm = &fsm{gone: make(map[string]bool), removed: maps.Clone(n.knows), version: 1}
	var err error
	n.acks = ackguard.New(ackguard.Config{ServerID: n.serverID(), Logger: testLogger(), OnRollback: func(err error) { t.Error(err) }})
	n.Membership, err = New(n.config())
	require.NoError(t, err)

	n.layer = n.cluster.listenRaft(t, n)
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.serverID())
	// These tests make one call at a time of one leader. A dozen nodes share the machine, with
	// other work, so a shorter lease ends while one does not run.
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 2*time.Second, 2*time.Second, 2*time.Second
	c.CommitTimeout = 10 * time.Millisecond
	c.ShutdownOnRemove = false
	c.Logger = hclog.NewNullLogger()
	n.trans = n.acks.Transport(raftwire.Config{Layer: n.Admission(n.layer), Pool: 2, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	n.raft, err = raft.NewRaft(c, n.fsm, n.disk, n.disk, raft.NewDiscardSnapshotStore(), n.trans)
	require.NoError(t, err)
	n.acks.Start(n.raft)

	l, err := net.Listen("tcp", strings.Replace(n.clusterAddr, "localhost", "127.0.0.1", 1))
	require.NoError(t, err)
	n.grpc = leaderrpc.NewServer(func(context.Context, string) error { return nil })
	n.Register(n.grpc)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.wg.Go(func() { n.grpc.Serve(l) })
	n.wg.Go(func() { n.lead(ctx) })
	require.NoError(t, n.Start(n.raft))
}

// lead does what a node does around leadership: a barrier, then Lead.
func (n *node) lead(ctx context.Context) {
	end := func() {}
	for {
		select {
		case <-ctx.Done():
			end()
			return
		case leads := <-n.raft.LeaderCh():
			end()
			end = func() {}
			if leads && n.raft.Barrier(5*time.Second).Error() == nil {
				end = n.beginLeadership(ctx)
			}
		}
	}
}

func (n *node) beginLeadership(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { n.Lead(ctx) })
	return func() { cancel(); wg.Wait() }
}

// stop ends the run. The disk stays.
func (n *node) stop() {
	if n.Membership == nil {
		return
	}
	n.seenState = n.hasState()
	n.cancel()
	n.layer.Close()
	n.grpc.Stop()
	n.wg.Wait()
	n.Stop()
	n.raft.Shutdown().Error()
	n.trans.Close()
	n.Membership = nil
}

// kill ends the run without a leave message.
func (n *node) kill() {
	n.Membership.poolMu.Lock()
	if p := n.Membership.pool.Swap(nil); p != nil {
		p.Crash()
	}
	n.Membership.poolMu.Unlock()
	n.stop()
}

// wipe loses the disk; the next run is another incarnation.
func (n *node) wipe() {
	n.disk, n.seenState = raft.NewInmemStore(), false
	n.incarnation++
}

func (n *node) gossipAddr() string { return n.gossipBind }

func (n *node) leads() bool {
	return n.Membership != nil && n.leadership.Load() != nil && n.raft.State() == raft.Leader
}

// leader waits until exactly one node leads, and returns it.
func (w *testCluster) leader() *node {
	w.t.Helper()
	var leader *node
	eventually(w.t, "one leader", func() bool {
		count := 0
		for _, n := range w.nodes {
			if n.leads() {
				leader, count = n, count+1
			}
		}
		if count == 0 && !w.elected && slices.ContainsFunc(w.nodes, (*node).standFirst) {
			w.elected = true
		}
		return count == 1
	})
	return leader
}

// standFirst makes a node that votes in a new cluster stand for election, instead of after the
// heartbeat timeout, and reports whether it does.
func (n *node) standFirst() bool {
	if n.Membership == nil || !n.hasState() || n.raft.CurrentTerm() > 1 {
		return false
	}
	id := raft.ServerID(n.serverID())
	return slices.Contains(raftconfig.Voters(n.configuration()), id) && n.trans.TimeoutNow(id, n.trans.LocalAddr(), &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id)},
	}, &raft.TimeoutNowResponse{}) == nil
}

// voters waits until the members that vote and are alive are exactly ids.
func (w *testCluster) voters(ids ...string) {
	w.t.Helper()
	want := strings.Join(ids, " ")
	got := ""
	defer func() {
		if w.t.Failed() {
			w.t.Logf("want voters %s, got %s", want, got)
		}
	}()
	eventually(w.t, "voters are "+want, func() bool {
		members, err := w.leader().Members(context.Background())
		if err != nil {
			return false
		}
		var list []string
		for _, m := range members {
			switch {
			case !m.Voter:
				list = append(list, m.Id+"(no voter)")
			case !m.Alive:
				list = append(list, m.Id+"(dead)")
			default:
				list = append(list, m.Id)
			}
		}
		got = strings.Join(list, " ")
		return got == want
	})
}

// fsm keeps the cluster's id, its version and the removed servers.
type fsm struct {
	mu      sync.Mutex
	cluster string
	version uint32
	gone    map[string]bool
	removed map[string]int64 // replaced, never changed
	admits  *jobpb.Admission // replaced, never changed
}

func (f *fsm) Follows() bool { return false }

func (f *fsm) ClusterID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cluster
}

func (f *fsm) Version() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

func (f *fsm) Forgotten(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone[id]
}

// forget makes this node alone believe that a server was removed.
func (f *fsm) forget(serverID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[serverID] = true
}

func (f *fsm) RemovedNodes() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removed
}

func (f *fsm) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch verb, id, _ := strings.Cut(string(l.Data), " "); {
	case verb == "invited" || verb == "invitation" || verb == "use":
		return f.changeAdmission(verb, id)
	case verb == "cluster" && f.cluster == "":
		f.cluster = id
	case verb == "version":
		to, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return err
		}
		f.version = max(f.version, uint32(to))
	case verb == "forget":
		f.gone[id] = true
	case verb == "remove" && id != "":
		f.removed = maps.Clone(f.removed)
		if f.removed == nil {
			f.removed = make(map[string]int64)
		}
		f.removed[id] = 1
	case verb == "admit" && f.removed[id] == 0:
		return job.Errorf(job.CodeNotFound, "node %s is not among the nodes that were removed", id)
	case verb == "admit":
		f.removed = maps.Clone(f.removed)
		delete(f.removed, id)
	}
	return nil
}

func (f *fsm) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("not in these tests") }
func (f *fsm) Restore(io.ReadCloser) error         { return errors.New("not in these tests") }

// layer is Raft's stream layer on its own port.
type layer struct {
	net.Listener
	cluster *testCluster
	node    *node

	arrived atomic.Int32 // connections
}

func (w *testCluster) listenRaft(t *testing.T, n *node) *layer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.raft[n.clusterAddr] = l.Addr().String()
	return &layer{Listener: l, cluster: w, node: n}
}

// Accept refuses a connection that is meant for another node, as production does: a node
// that has moved may have left its address to another one, whose replies must not count as
// its own. One for an earlier server of this node passes, and Admission refuses it.
func (l *layer) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.arrived.Add(1)
		var length [1]byte
		if _, err = io.ReadFull(c, length[:]); err != nil {
			c.Close()
			continue
		}
		ids := make([]byte, length[0])
		io.ReadFull(c, ids)
		to, caller, _ := strings.Cut(string(ids), " ")
		if node, _, _ := strings.Cut(to, "."); node != l.node.id {
			c.Close()
			continue
		}
		from, cluster, _ := strings.Cut(caller, " ")
		return calledConn{c, &transport.CallerAddr{Addr: c.RemoteAddr(), ServerID: from, ClusterID: cluster}}, nil
	}
}

// calledConn is an accepted connection with the caller's ids.
type calledConn struct {
	net.Conn
	caller *transport.CallerAddr
}

func (c calledConn) RemoteAddr() net.Addr { return c.caller }

func (l *layer) Addr() net.Addr { return name(l.node.clusterAddr) }

func (l *layer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to, addr := transport.SplitTarget(target)
	l.cluster.mu.Lock()
	real := l.cluster.raft[addr]
	l.cluster.mu.Unlock()
	if real == "" {
		return nil, fmt.Errorf("nothing listens at %s", addr)
	}
	c, err := net.DialTimeout("tcp", real, timeout)
	if err == nil {
		says := to + " " + l.node.serverID() + " " + l.node.fsm.ClusterID()
		_, err = c.Write(append([]byte{byte(len(says))}, says...))
	}
	return c, err
}

type name string

func (name) Network() string  { return "tcp" }
func (n name) String() string { return string(n) }

func code(err error) job.Code { return job.CodeOf(err) }
