package statemachine

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/cluster/logstore"
	"tarry/fsm"
	"tarry/fsm/check"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// patience ends a wait for what never happens; it is long for busy machines.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is one member of a Raft group in this process. Its disks outlive it.
type node struct {
	t    *testing.T
	id   raft.ServerID
	fs   vfs.FS                  // of the machine
	dir  string                  // of the log
	snap uint64                  // snapshot threshold
	wrap func(*Adapter) raft.FSM // nil: the adapter itself

	stores  *logstore.Stores
	machine *fsm.Machine
	adapter *Adapter
	raft    *raft.Raft
	trans   *raft.InmemTransport
}

func newNode(t *testing.T, id raft.ServerID) *node {
	return &node{t: t, id: id, fs: vfs.NewMem(), dir: t.TempDir(), snap: 8}
}

func (n *node) fatal(err error) { n.t.Errorf("node %s: fatal: %v", n.id, err) }

// open opens the disks.
func (n *node) open() {
	var err error
	n.stores, err = logstore.Open(n.dir, logstore.Options{Fatal: n.fatal})
	require.NoError(n.t, err)
	n.machine, err = fsm.Open("state", fsm.Options{FS: n.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20, OnFatal: n.fatal})
	require.NoError(n.t, err)
}

func (n *node) closeDisks() {
	require.NoError(n.t, n.machine.Close())
	require.NoError(n.t, n.stores.Close())
}

func (n *node) start() {
	n.open()
	require.NoError(n.t, CheckStart(n.machine, n.stores.Log, n.stores.Stable))
	n.adapter = New(n.machine, Options{Fatal: n.fatal, Log: n.stores.Log})
	n.adapter.SetServing(true)
	c := raft.DefaultConfig()
	c.LocalID = n.id
	// A shorter lease ends while a busy machine does not run the leader.
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 2*time.Second, 2*time.Second, 1500*time.Millisecond
	c.CommitTimeout = 5 * time.Millisecond
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 20*time.Millisecond, n.snap, 4
	c.NoSnapshotRestoreOnStart = true
	c.NoLegacyTelemetry = true
	c.Logger = hclog.NewNullLogger()
	cache, err := raft.NewLogCache(64, strictLog{n.stores.Log.(raft.MonotonicLogStore), n.stores.Log})
	require.NoError(n.t, err)
	_, n.trans = raft.NewInmemTransportWithTimeout(raft.ServerAddress(n.id), 2*time.Second)
	var machine raft.FSM = n.adapter
	if n.wrap != nil {
		machine = n.wrap(n.adapter)
	}
	n.raft, err = raft.NewRaft(c, machine, cache, n.stores.Stable, n.adapter.Snapshots(), n.trans)
	require.NoError(n.t, err)
}

// strictLog reads nothing that was truncated. The log itself still finds truncated
// entries as long as their segment exists, so that with few entries no follower
// would ever be too far behind.
type strictLog struct {
	raft.MonotonicLogStore
	raft.LogStore
}

func (l strictLog) GetLog(index uint64, entry *raft.Log) error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	if index < first {
		return raft.ErrLogNotFound
	}
	return l.LogStore.GetLog(index, entry)
}

func (n *node) stop() {
	require.NoError(n.t, n.raft.Shutdown().Error())
	require.NoError(n.t, n.trans.Close())
	n.closeDisks()
}

func (n *node) digest() string {
	v := n.machine.View()
	defer v.Close()
	require.NoError(n.t, check.Records(v, nil))
	d, err := check.Digest(v, nil)
	require.NoError(n.t, err)
	return d
}

// add proposes one job and returns its result.
func (n *node) add(id string) (*jobpb.Result, error) {
	data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, time.Now().UnixMilli()), &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{
		Id: id, Topic: "orders", Body: []byte("body of " + id), TtrMs: 1000,
	}}})
	require.NoError(n.t, err)
	f := n.raft.Apply(data, patience)
	if err := f.Error(); err != nil {
		return nil, err
	}
	return f.Response().([]*jobpb.Result)[0], nil
}

type group []*node

func newGroup(t *testing.T) group {
	var g group
	var c raft.Configuration
	for i := range 3 {
		n := newNode(t, raft.ServerID(fmt.Sprintf("n%d", i)))
		g = append(g, n)
		c.Servers = append(c.Servers, raft.Server{ID: n.id, Address: raft.ServerAddress(n.id)})
		n.start()
	}
	g.connect()
	require.NoError(t, g[0].raft.BootstrapCluster(c).Error())
	first := g[0].trans // its node stands for election now, and not after the heartbeat timeout
	first.Connect(first.LocalAddr(), first)
	stand := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	require.NoError(t, first.TimeoutNow(g[0].id, first.LocalAddr(), stand, &raft.TimeoutNowResponse{}))
	t.Cleanup(func() {
		for _, n := range g {
			if n.raft.State() != raft.Shutdown {
				n.stop()
			}
		}
	})
	return g
}

func (g group) connect() {
	for _, a := range g {
		for _, b := range g {
			if a != b {
				a.trans.Connect(b.trans.LocalAddr(), b.trans)
			}
		}
	}
}

// isolate cuts a node off from the others.
func (g group) isolate(n *node) {
	n.trans.DisconnectAll()
	for _, other := range g {
		if other != n {
			other.trans.Disconnect(n.trans.LocalAddr())
		}
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, 5*time.Millisecond, what)
}

// leader waits until one of the nodes leads.
func (g group) leader(t *testing.T) (l *node) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		for _, n := range g {
			if n.raft.State() == raft.Leader && n.raft.VerifyLeader().Error() == nil {
				l = n
				return true
			}
		}
		return false
	})
	return l
}

// add adds jobs through the leader. It adds a job again after an unknown outcome.
func (g group) add(t *testing.T, prefix string, count int) {
	t.Helper()
	for i := range count {
		eventually(t, "a job is added", func() bool {
			r, err := g.leader(t).add(fmt.Sprintf("%s-%d", prefix, i))
			return err == nil && r.Code == jobpb.Code_OK
		})
	}
}

// agree waits until all nodes have applied the same index and compares states.
func (g group) agree(t *testing.T) {
	t.Helper()
	require.NoError(t, g.leader(t).raft.Barrier(patience).Error())
	last := g.leader(t).raft.LastIndex()
	eventually(t, "all nodes apply everything", func() bool {
		for _, n := range g {
			if n.raft.AppliedIndex() < last {
				return false
			}
		}
		return true
	})
	var want string
	for _, n := range g {
		require.NoError(t, n.raft.Snapshot().Error()) // after everything that is queued
		if want == "" {
			want = n.digest()
		}
		require.Equal(t, want, n.digest(), n.id)
	}
}

func firstIndex(n *node) uint64 {
	first, err := n.stores.Log.FirstIndex()
	require.NoError(n.t, err)
	return first
}

func TestFollowerThatIsFarBehindGetsTheState(t *testing.T) {
	g := newGroup(t)
	g.add(t, "before", 20)
	lead := g.leader(t)
	var behind *node
	for _, n := range g {
		if n != lead {
			behind = n
		}
	}
	rest := group{}
	for _, n := range g {
		if n != behind {
			rest = append(rest, n)
		}
	}
	g.isolate(behind)
	rest.add(t, "meanwhile", 60)
	last := behind.raft.LastIndex()
	eventually(t, "the log is truncated beyond the follower", func() bool {
		return firstIndex(rest.leader(t)) > last+1
	})
	g.connect()
	g.agree(t)
	names, err := behind.fs.List("state")
	require.NoError(t, err)
	require.NotContains(t, names, "gen-000001", "the state was replaced")
	for _, n := range g {
		// The leader removes its checkpoint after the follower has replied.
		eventually(t, "CURRENT and one generation, no checkpoint", func() bool {
			names, err := n.fs.List("state")
			return err == nil && len(names) == 2
		})
	}
	g.add(t, "after", 20)
	g.agree(t)

	// It restarts from the received state.
	behind.stop()
	rest.add(t, "stopped", 3)
	behind.start()
	g.connect()
	g.agree(t)
}

func TestResultsAreBuiltOnlyWhileServing(t *testing.T) {
	g := newGroup(t)
	lead := g.leader(t)
	r, err := lead.add("a")
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_OK, r.Code)
	lead.adapter.SetServing(false)
	data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, 1), &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}})
	require.NoError(t, err)
	f := lead.raft.Apply(data, patience)
	require.NoError(t, f.Error())
	require.Empty(t, f.Response().([]*jobpb.Result))
}
