package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"tarry/cluster/diskspace"
	"tarry/cluster/membership"
	"tarry/cluster/noderpc"
	"tarry/cluster/transport"
	"tarry/job"
	"tarry/job/jobpb"
)

// Node is one running node. It implements api.Queue, api.Inspector and
// api.Operator.
type Node struct {
	*Shard
	cfg      Config
	log      *slog.Logger
	hush     hush
	data     *dataDir
	mux      *transport.Mux
	peers    *peers
	rpc      *grpc.Server
	trans    *raft.NetworkTransport
	members  *membership.Membership
	registry *prometheus.Registry

	disk   *diskspace.Watch
	ctx    context.Context // ends when the node stops
	cancel context.CancelFunc

	raftRuns atomic.Bool
	started  bool // membership runs
	draining atomic.Bool
	stopped  sync.Once
	work     sync.WaitGroup
}

// Start opens the data directory and starts the node. It returns as soon as the
// node runs; Readiness tells when it can serve. On an error nothing is left
// running.
func Start(cfg Config) (*Node, error) {
	if cfg.wall == nil {
		cfg.wall = wallClock
	}
	cfg.MaxClockOffset = cmp.Or(cfg.MaxClockOffset, membership.DefaultMaxClockOffset)
	n := &Node{cfg: cfg, registry: prometheus.NewRegistry()}
	n.log = n.hush.logger(cfg.Logger).With("node", cfg.NodeID)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.start(); err != nil {
		return nil, n.whenFull(errors.Join(err, n.release()))
	}
	return n, nil
}

func (n *Node) start() (err error) {
	if n.data, err = openDataDir(n.cfg.DataDir, n.cfg.NodeID); err != nil {
		return err
	}
	n.disk = diskspace.New(diskspace.Options{
		Dir: n.cfg.DataDir, Mark: n.cfg.DiskLowWater, Logger: n.log, Changed: n.diskChanged, Measure: n.cfg.measureDisk,
	})
	serverID := n.data.id.serverID()
	if n.Shard, err = openShard(shardConfig{
		Timing: cmp.Or(n.cfg.timing, DefaultTiming()), Number: 0, ServerID: serverID, NodeID: n.cfg.NodeID,
		Dir: filepath.Join(n.cfg.DataDir, shardDir(0)), Cache: n.cfg.CacheBytes, Tables: n.cfg.OpenFiles.Tables,
		Logger: n.log, Registry: n.registry, Peer: n.peer, Lead: n.lead,
		Fatal:          func(err error) { n.cfg.Fatal(n.whenFull(err)) },
		ClusterChanged: func() { n.members.ClusterIDChanged() },
		AddsRefused:    func() string { return n.members.AddsRefused() }, Disk: n.disk.State,
		GaveWay: func() uint64 { return n.members.GaveWay() },
		Wall:    n.cfg.wall, MaxClockOffset: n.cfg.MaxClockOffset,
		ConfirmClock:  func(ctx context.Context) error { return n.members.ConfirmClock(ctx) },
		ClockWentOff:  func() { n.members.ConditionChanged() },
		ClockOffsets:  func() map[string]time.Duration { return n.members.ClockOffsets() },
		ConfirmLeader: func(ctx context.Context) (uint64, error) { return n.members.ConfirmLeader(ctx) },
		wrapLog:       n.cfg.wrapLog, files: n.cfg.files,
	}); err != nil {
		return err
	}
	if err := n.listen(); err != nil {
		return err
	}
	return n.joinUp(serverID)
}

func (n *Node) listen() error {
	advertised, err := advertise(n.cfg.AdvertiseHost, n.cfg.ClusterAddr)
	if err != nil {
		return fmt.Errorf("cluster address: %w", err)
	}
	if n.mux, err = transport.Listen(transport.Options{
		Bind: n.cfg.ClusterAddr, Advertise: advertised, ServerID: n.data.id.serverID(), ClusterID: n.clusterID, Logger: n.log, MaxConns: n.cfg.OpenFiles.Peers,
	}); err != nil {
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	n.peers = newPeers(n.mux.DialRPC)
	return nil
}

// joinUp starts what needs each other: Raft asks membership for addresses, and
// membership's service runs on the port that Raft uses.
func (n *Node) joinUp(serverID string) error {
	hasState, err := n.Shard.hasState()
	if err != nil {
		return fmt.Errorf("look for Raft's state: %w", err)
	}
	if n.members, err = membership.New(membership.Config{
		NodeID: n.cfg.NodeID, ServerID: serverID,
		ClusterAddr: n.mux.Addr().String(), HTTPAddr: n.cfg.HTTPAdvertise,
		GossipBind: n.cfg.GossipAddr, AdvertiseHost: n.cfg.AdvertiseHost,
		Join: n.cfg.Join, Expect: n.cfg.BootstrapExpect, Version: n.cfg.Version,
		HasState: hasState, Logger: n.log,
		ClusterID: n.clusterID, Forgotten: n.machine.Forgotten,
		ProposeClusterID: n.proposeClusterID, ProposeForget: n.proposeForget, ProposeClockReset: n.proposeClockReset,
		Runs: job.ReleaseVersions(), HoldVersion: n.cfg.HoldVersion, ClusterVersion: n.machine.Version, ProposeVersion: n.proposeVersion,
		Dial: n.peers.get, Condition: n.condition,
		MaxClockOffset: n.cfg.MaxClockOffset, Now: n.cfg.wall, ClusterClock: n.Shard.Now, ClockConfirmed: n.Shard.clockConfirmed,
		Doubt:  func(err error) { n.cfg.Fatal(fmt.Errorf("%w; %s", err, wayOut(n.cfg.DataDir))) },
		Timing: n.cfg.membership,
	}); err != nil {
		return err
	}
	n.serve() // nodes that start together answer each other's question
	if hasState {
		servers, stand, err := n.Shard.stand()
		if err != nil {
			return err
		}
		if err := n.members.CheckReceipts(n.ctx, servers, stand); err != nil {
			return fmt.Errorf("%w; %s", err, wayOut(n.cfg.DataDir))
		}
	}
	n.trans = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: watchedLayer{n.members.Gate(n.mux.Raft(0)), n.Shard.lineBroke}, MaxPool: 4, Timeout: transport.RaftTimeout,
		Logger: newRaftLogger(n.log),
	})
	trans := boundAppends(n.members.Witness(n.trans))
	if n.cfg.wrapTransport != nil {
		trans = n.cfg.wrapTransport(trans)
	}
	if err := n.Shard.start(trans); err != nil {
		return err
	}
	n.raftRuns.Store(true)
	if err := n.members.Start(n.Shard.raft); err != nil {
		return fmt.Errorf("start discovery: %w", err)
	}
	n.started = true
	n.work.Go(func() { n.disk.Run(n.ctx) })
	return nil
}

// serve answers other nodes.
func (n *Node) serve() {
	n.rpc = newRPCServer(admission{member: n.members.Configured})
	noderpc.RegisterNodeServer(n.rpc, &service{shard: n.shardNumber})
	n.members.Register(n.rpc)
	n.work.Go(func() {
		if err := n.rpc.Serve(n.mux.RPC()); err != nil && !errors.Is(err, grpc.ErrServerStopped) && !errors.Is(err, net.ErrClosed) {
			n.log.Error("the service for other nodes ended", "error", err)
		}
	})
}

// lead is the node's part in leading its shard.
func (n *Node) lead(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	if n.cfg.Lead != nil {
		work.Go(func() { n.cfg.Lead(ctx, n) })
	}
	if err := n.members.Lead(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("membership stopped leading", "error", err)
	}
}

func (n *Node) shardNumber(number uint32) *Shard {
	if number != 0 || !n.raftRuns.Load() {
		return nil
	}
	return n.Shard
}

func (n *Node) peer(ctx context.Context, serverID, addr string) (noderpc.NodeClient, error) {
	c, err := n.peers.get(ctx, serverID, addr)
	if err != nil {
		return nil, err
	}
	return noderpc.NewNodeClient(c), nil
}

// The facts of the cluster live in the state machine of the first shard.

func (n *Node) clusterID() string { return n.machine.ClusterID() }

func (n *Node) proposeClusterID(ctx context.Context, id string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id}}})
}

func (n *Node) proposeForget(ctx context.Context, serverID string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: serverID}}})
}

func (n *Node) proposeVersion(ctx context.Context, to uint32) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: to}}})
}

// proposeClockReset sets the queue's clock back.
func (n *Node) proposeClockReset(ctx context.Context, to time.Time) error {
	op := &jobpb.ResetClock{ToMs: to.UnixMilli(), Epoch: n.machine.Applied().ClockEpoch}
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: op}})
}

func (n *Node) doOne(ctx context.Context, op *jobpb.Op) error {
	rs, err := n.Do(ctx, []*jobpb.Op{op})
	if err != nil {
		return err
	}
	return job.ResultError(rs[0])
}

// Metrics are the node's, for /metrics.
func (n *Node) Metrics() *prometheus.Registry { return n.registry }

// Drain prepares the node's end: it reports itself not ready, answers waiting
// reserves, and hands leadership over. It blocks until that is done or ctx ends.
// It never leaves the cluster.
func (n *Node) Drain(ctx context.Context) {
	if n.draining.Swap(true) {
		return
	}
	n.Shard.drain()
	if n.Shard.raft.State() != raft.Leader || n.onlyVoter() {
		return
	}
	done := make(chan error, 1)
	go func() { done <- n.Shard.transfer() }() // ends when Raft stops, at the latest
	select {
	case err := <-done:
		if err != nil {
			n.log.Warn("could not hand leadership over before stopping", "error", err)
		}
	case <-ctx.Done():
		n.log.Warn("could not hand leadership over before stopping", "error", ctx.Err())
	}
}

func (n *Node) onlyVoter() bool {
	f := n.Shard.raft.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	voters := 0
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters <= 1
}

// Stop ends the node and waits for everything it started.
func (n *Node) Stop() (err error) {
	n.stopped.Do(func() { err = n.release() })
	return err
}

// release undoes Start, from the last step to the first; steps that were not
// taken are skipped.
func (n *Node) release() error {
	var errs []error
	n.cancel()
	if n.started {
		errs = append(errs, n.members.Stop())
	}
	if n.rpc != nil {
		n.rpc.Stop()
	}
	if n.Shard != nil {
		errs = append(errs, n.Shard.stop())
	}
	if n.trans != nil {
		errs = append(errs, n.trans.Close())
		n.trans.CloseStreams() // Close leaves pooled connections open
	}
	if n.peers != nil {
		n.peers.close()
	}
	if n.mux != nil {
		errs = append(errs, n.mux.Close())
	}
	n.work.Wait()
	if n.data != nil {
		errs = append(errs, n.data.close())
	}
	n.hush.end()
	return errors.Join(errs...)
}

// advertise puts the host by which others reach this node before the port it
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

// nodeID is the part of a Raft server id that operators know.
func nodeID(serverID string) string {
	if i := strings.LastIndexByte(serverID, '.'); i > 0 {
		return serverID[:i]
	}
	return serverID
}
