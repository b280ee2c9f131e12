package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"tarry/cluster/backupschedule"
	"tarry/cluster/clockguard"
	"tarry/cluster/datadir"
	"tarry/cluster/diskspace"
	"tarry/cluster/events"
	"tarry/cluster/framerpc"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership"
	"tarry/cluster/noderpc"
	"tarry/cluster/nodetls"
	"tarry/cluster/standby"
	"tarry/cluster/transport"
	"tarry/cluster/waits"
	"tarry/fsm/store"
	"tarry/job"
)

// Node is one running node. It implements api.Operator; its Queue serves clients.
type Node struct {
	group                     // the config group, whose state has the cluster's id, version and members
	groups      []*group      // all, by their numbers: that one, and those of the shards if they are several
	cache       *store.Cache  // of the groups' states if there are several
	sharded     *shardedQueue // nil with one shard
	clusterNews chan struct{} // a wake-up: the cluster's id or its forgotten members have changed
	cfg         Config
	log         *slog.Logger
	cutoff      logCutoff
	events      *events.Log
	data        *datadir.Dir
	mux         *transport.Mux
	conns       *leaderrpc.Conns
	rpc         *grpc.Server // of membership, for members
	openRPC     *grpc.Server // of membership, for others
	frames      *leaderrpc.Frames
	calls       *framerpc.Server // of the groups
	members     *membership.Membership
	registry    *prometheus.Registry

	disk   *diskspace.Watch
	ctx    context.Context // ends when the node stops
	cancel context.CancelFunc

	raftRuns atomic.Bool
	started  bool         // membership runs
	draining *waits.Drain // it is about to stop, or an operator has drained it
	stopping atomic.Bool  // then draining has no end
	drainMu  sync.Mutex   // of changes of draining and stopping, and of what goes with them
	// lastTransfer is when the drained node last tried to give leadership away.
	lastTransfer time.Time
	// operatorDrains holds a token while an operator's call drains the node or ends that.
	operatorDrains chan struct{}
	// backingUp holds a token while a backup is made: its checkpoint keeps files that
	// would be deleted.
	backingUp chan struct{}
	// restoring holds a token while a backup is received that is to replace the state.
	restoring chan struct{}
	// logReaders holds a token for each stream of the log.
	logReaders chan struct{}
	follower   *standby.Follower
	backups    *backupschedule.Scheduler // nil without a schedule
	scheduled  sync.WaitGroup            // of backups
	// leaderAddress is what LeaderAddress last found.
	leaderAddress atomic.Pointer[leaderAddress]
	stopped       sync.Once
	work          sync.WaitGroup
}

// Start opens the data directory and starts the node. It returns as soon as the
// node runs; Readiness reports whether it can serve. After an error nothing is left
// running.
func Start(cfg Config) (*Node, error) {
	if cfg.wall == nil {
		cfg.wall = wallClock
	}
	cfg.MaxClockOffset = cmp.Or(cfg.MaxClockOffset, clockguard.DefaultMaxOffset)
	n := &Node{cfg: cfg, registry: prometheus.NewRegistry(), events: events.NewLog(), clusterNews: make(chan struct{}, 1), draining: waits.NewDrain(), operatorDrains: make(chan struct{}, 1), backingUp: make(chan struct{}, 1), restoring: make(chan struct{}, 1), logReaders: make(chan struct{}, maxLogReaders)}
	n.log = n.events.Logger(n.cutoff.logger(cfg.Logger)).With("node", cfg.NodeID)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.start(); err != nil {
		return nil, datadir.WithRoom(errors.Join(err, n.release()), cfg.DataDir)
	}
	return n, nil
}

// start executes the steps of Start in order. release undoes those that were executed.
func (n *Node) start() error {
	for _, step := range []func() error{
		n.openDir,
		n.openGroups,
		n.listen,
		n.makeMembers, // Raft gets addresses from it
		n.serve,       // before checkAcks: nodes that start together ask each other
		n.checkAcks,   // asks other nodes
		n.startRaft,
		n.joinMembers,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	n.registry.MustRegister(newNodeCollector(n), backupschedule.Collector(n.backups))
	n.work.Go(func() { n.disk.Run(n.ctx) })
	if n.backups != nil {
		n.scheduled.Go(func() { n.backups.Run(n.ctx) })
	}
	return nil
}

func (n *Node) openDir() (err error) {
	if n.data, err = datadir.Open(n.cfg.DataDir, n.cfg.NodeID, string(n.cfg.LogStore)); err != nil {
		return err
	}
	n.disk = diskspace.New(diskspace.Options{
		Dir: n.cfg.DataDir, Mark: n.cfg.DiskLowWater, Logger: n.log, Changed: n.diskChanged, Measure: n.cfg.measureDisk,
	})
	return nil
}

func (n *Node) listen() error {
	advertised, err := advertise(n.cfg.AdvertiseHost, n.cfg.ClusterAddr)
	if err != nil {
		return fmt.Errorf("cluster address: %w", err)
	}
	if n.mux, err = transport.Listen(transport.Options{
		Bind: n.cfg.ClusterAddr, Advertise: advertised, ServerID: n.data.ServerID(), ClusterID: n.clusterID, TLS: n.cfg.TLS, Logger: n.log, MaxConns: n.cfg.OpenFiles.Peers,
	}); err != nil {
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	n.conns, n.frames = leaderrpc.NewConns(n.mux.DialRPC), leaderrpc.NewFrames(n.mux.DialFrames)
	return nil
}

func (n *Node) makeMembers() (err error) {
	n.backups = n.newBackups()
	if err = n.checkInvitation(); err != nil {
		return err
	}
	n.members, err = membership.New(membership.Config{
		NodeID: n.cfg.NodeID, ServerID: n.data.ServerID(),
		ClusterAddr: n.mux.Addr().String(), HTTPAddr: n.cfg.HTTPAdvertise,
		GossipBind: n.cfg.GossipAddr, AdvertiseHost: n.cfg.AdvertiseHost,
		Join: n.cfg.Join, Expect: n.cfg.BootstrapExpect, Version: n.cfg.Version,
		HasState: n.hasState, Shards: n.shards(), Committed: n.shard.committedConfiguration, CatchUp: n.catchUp, Logger: n.log,
		Facts: n.shard.machine, Decisions: decisions{n.shard, n.shards()}, Clocks: clocks{n.shard}, Condition: condition{n}, Backups: n.backupDir(),
		Invitation: n.invitation(), InvitationUsed: n.cfg.InvitationUsed,
		Runs: job.ReleaseVersions(), NonVoter: n.cfg.NonVoter, HoldVersion: n.cfg.HoldVersion,
		Dial: n.conns.Get, Acks: n.guards(), MaxClockOffset: n.cfg.MaxClockOffset,
		GossipKeys: n.cfg.GossipKeys, GossipVerify: n.cfg.GossipVerify, SecureCalls: n.cfg.TLS.Mode == nodetls.Require,
		Timing: n.cfg.membership,
	})
	if err != nil {
		return err
	}
	n.joinGroups()
	n.follower = n.newFollower()
	return nil
}

func (n *Node) joinMembers() error {
	if err := n.members.Start(n.shard.raft); err != nil {
		return fmt.Errorf("start discovery: %w", err)
	}
	n.started = true
	return nil
}

// serve starts to serve the calls of other nodes.
func (n *Node) serve() error {
	admit := admission{member: n.members.Configured}.check
	n.rpc, n.openRPC, n.calls = leaderrpc.NewServer(admit), leaderrpc.NewStrangerServer(admit), leaderrpc.NewFrameServer(admit)
	n.members.Register(n.rpc)
	n.members.Register(n.openRPC)
	noderpc.RegisterNodeServer(n.calls, &service{shard: n.shardOf, standby: n.standbyAsLeader})
	members, strangers := splitCallers(n.mux.RPC(), admission{member: n.members.Configured}.isMember, n.work.Go)
	n.work.Go(func() { n.serveCalls(n.rpc.Serve, members) })
	n.work.Go(func() { n.serveCalls(n.openRPC.Serve, strangers) })
	n.work.Go(func() { n.serveCalls(n.calls.Serve, n.mux.Frames()) })
	return nil
}

func (n *Node) serveCalls(serve func(net.Listener) error, l net.Listener) {
	if err := serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) && !errors.Is(err, net.ErrClosed) {
		n.log.Error("the service for other nodes ended", "error", err)
	}
}

// Metrics returns the node's metrics, for /metrics.
func (n *Node) Metrics() *prometheus.Registry { return n.registry }

// Stop stops the node and waits for everything that it started.
func (n *Node) Stop() (err error) {
	n.stopped.Do(func() { err = n.release() })
	return err
}

// release undoes the steps of Start in reverse order. It skips steps that were not
// executed.
func (n *Node) release() error {
	var errs []error
	n.cancel()
	n.scheduled.Wait() // before the stores close
	if b := n.cfg.Backups; b != nil && b.Bucket != nil {
		b.Bucket.Close()
	}
	if n.started {
		errs = append(errs, n.members.Stop())
	}
	if n.rpc != nil {
		n.rpc.Stop()
		n.openRPC.Stop()
		n.calls.Stop()
	}
	errs = append(errs, n.stopGroups()...)
	if n.conns != nil {
		n.conns.Close()
		n.frames.Close()
	}
	if n.mux != nil {
		errs = append(errs, n.mux.Close())
	}
	n.work.Wait()
	if n.data != nil {
		errs = append(errs, n.data.Close())
	}
	n.cutoff.end()
	return errors.Join(errs...)
}

// advertise joins the host by which others reach this node and the port that it
// listens on.
func advertise(host, bind string) (string, error) {
	bound, port, err := net.SplitHostPort(bind)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = bound
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%q cannot be reached by other nodes; name this node with --advertise-host", host)
	}
	return net.JoinHostPort(host, port), nil
}
