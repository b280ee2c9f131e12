package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/alarm"
	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderprobe"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/logstore"
	"tarry/cluster/noderpc"
	"tarry/cluster/router"
	"tarry/cluster/statemachine"
	"tarry/cluster/topicmetrics"
	"tarry/cluster/waits"
	"tarry/fsm"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/timer"
)

var _ router.Group = (*Shard)(nil)

// Shard is everything that belongs to one Raft group on one node. Its exported
// methods may be called from many goroutines.
type Shard struct {
	job.Reads // its own Read

	cfg     shardConfig
	log     *slog.Logger
	metrics *shardMetrics
	// registry adds the label shard to the metrics of what belongs to one Raft group.
	registry prometheus.Registerer
	topics   *topicmetrics.Metrics

	stores       *logstore.Stores
	machine      *fsm.Machine
	adapter      *statemachine.Adapter
	raft         *raft.Raft
	raftSettings sync.Mutex // held while settings of the running Raft change
	localAddr    string     // the address at which other nodes reach this one

	leaders   *leaderrpc.Watch
	toLeader  leaderrpc.Router[noderpc.NodeClient] // also when that is this node
	prober    *leaderprobe.Prober
	transfers transfers

	// writes
	opLimit    timeLimit
	batcher    *groupcommit.Batcher
	rateQuotas rateQuotas
	committer  *groupcommit.Committer
	// reads
	confirmations *confirmations // that this node still leads
	progress      *progress
	replay        *replay
	liveness      *liveness
	marks         *marks
	rates         *rates.Recorder
	timeouts      atomic.Pointer[func([]job.Timeout)] // see ObserveTimeouts
	// waiting reserves
	waits *waits.Client

	// For the leader. leadership is set while this node is the established leader.
	leadership atomic.Pointer[leadership]
	timer      *timer.Timer
	schedules  *timer.Timer
	clock      clock
	stamps     stamps // of the entries that the committer proposes

	// Each holds at most one pending wake-up.
	toMigrate chan struct{} // the cluster version was raised
	tight     chan struct{} // the disk has become low

	ctx    context.Context // ends when the shard stops
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines that end with ctx; only they may add to it, others call spawn
	ending sync.Mutex     // held while ctx ends, and by spawn
}

// openShard opens the stores of a shard and reads them. It writes nothing: start does.
func openShard(cfg shardConfig) (*Shard, error) {
	ctx, cancel := context.WithCancel(context.Background())
	registry := prometheus.WrapRegistererWith(prometheus.Labels{"shard": strconv.FormatUint(uint64(cfg.Number), 10)}, cfg.Registry)
	s := &Shard{
		cfg: cfg, log: cfg.Logger.With("shard", cfg.Number),
		registry: registry, metrics: newShardMetrics(registry),
		leaders:   leaderrpc.NewWatch(time.Now()),
		marks:     newMarks(),
		rates:     rates.NewRecorder(),
		toMigrate: make(chan struct{}, 1),
		tight:     make(chan struct{}, 1),
		ctx:       ctx, cancel: cancel,
	}
	s.Reads = job.Reads{Reader: s}
	s.clock.most, s.clock.wentOff = cfg.MaxClockOffset, cfg.Host.ClockWentOff
	s.toLeader.Self, s.toLeader.Leader, s.toLeader.Client = cfg.ServerID, s.leaders.Get, cfg.Host.Peer
	s.opLimit.limit = cfg.OpTimeout
	s.rateQuotas.topicOf = s.topicOfSchedule
	s.batcher = groupcommit.New(s.route, s.metrics.batch, alarm.New)
	s.committer = groupcommit.NewCommitter(groupcommit.CommitterOptions{
		Apply: func(entry []byte, timeout time.Duration) raft.ApplyFuture { return s.raft.Apply(entry, timeout) },
		Now:   func() (time.Time, uint64) { return s.stamps.next(s.now) }, Version: func() uint32 { return s.machine.Version() }, Observe: s.committed, Heard: s.heard,
	})
	s.confirmations = newConfirmations(s.confirmLeadership)
	s.prober = leaderprobe.New(leaderprobe.Config{
		ServerID: raft.ServerID(cfg.ServerID), Group: cfg.Number, Heartbeat: cfg.Heartbeat, Election: cfg.Election, Lease: cfg.Lease,
		Reload: s.reloadRaft, Logger: s.log,
	})
	s.waits = waits.NewClient(waits.Options{
		Shard: cfg.Number, Self: cfg.ServerID, HoldTime: cfg.HoldTime, Leader: s.leaders.Get, Here: s.waitQueue, GiveBack: s.giveBack,
		Dial: func(ctx context.Context, serverID, addr string) (waits.Peer, error) {
			return cfg.Host.Peer(ctx, serverID, addr)
		},
	})
	s.topics = topicmetrics.New(topicmetrics.Options{
		Topics: cfg.MetricsTopics, Now: s.queueTime,
		State: func() topicmetrics.State { return s.machine.View() },
		Leads: func() bool { return s.leadership.Load() != nil },
	})
	s.timer = timer.New(s)
	s.schedules = timer.New(scheduler{s})
	if err := s.openStores(); err != nil {
		cancel()
		return nil, errors.Join(err, s.closeStores())
	}
	s.marks.reach(s.machine.Applied().Index)
	return s, nil
}

// start starts Raft over t and the shard's goroutines. It does not wait for a leader.
func (s *Shard) start(t raft.Transport) error {
	s.localAddr = string(t.LocalAddr())
	if err := s.startRaft(t); err != nil {
		return err
	}
	s.liveness = newLiveness(s)
	s.registry.MustRegister(newShardCollector(s), newNamespaceCollector(s), s.topics)
	s.work.Go(s.watchLeader)
	s.work.Go(func() {
		s.batcher.Run(s.ctx)
		s.committer.Close()
	})
	s.work.Go(s.committer.Run)
	s.work.Go(func() { s.confirmations.run(s.ctx) })
	s.work.Go(s.leadLoop)
	s.work.Go(s.sizeTrailingLogs)
	s.work.Go(func() { s.prober.Run(s.ctx, s.raft, t) })
	return nil
}

// spawn runs f in a goroutine that stop waits for. It returns false if the shard stops: f is not
// executed then.
func (s *Shard) spawn(f func()) bool {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// stop stops the shard. Waiters end, operations in flight get their outcomes, Raft
// stops, and the stores close. It blocks.
func (s *Shard) stop() error {
	s.ending.Lock()
	s.cancel()
	s.ending.Unlock()
	s.waits.Close()
	// Raft is the last. While it runs it completes every future; without a quorum when
	// its leader lease ends. Futures that are pending when it shuts down never complete.
	s.work.Wait()
	var err error
	if s.raft != nil {
		err = s.raft.Shutdown().Error()
	}
	s.marks.close()
	if cerr := s.closeStores(); err == nil {
		err = cerr
	}
	return err
}
