package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/cluster/membership"
	"tarry/cluster/noderpc"
	"tarry/cluster/statemachine"
	"tarry/dispatch"
	"tarry/fsm"
	"tarry/internal/hook"
	"tarry/timer"
)

// shardConfig is what a Shard needs of its node.
type shardConfig struct {
	Timing
	Number   uint32
	ServerID string // Raft id of this node
	NodeID   string
	Dir      string
	Cache    int64
	Tables   int // open at one time
	Logger   *slog.Logger
	Registry prometheus.Registerer
	Fatal    func(error)
	// Peer returns a client to a server at a cluster address.
	Peer func(ctx context.Context, serverID, addr string) (noderpc.NodeClient, error)
	// ClusterChanged is told that the cluster's id or its forgotten members
	// changed. It must not block.
	ClusterChanged func()
	// AddsRefused says on the leader why adds are refused now; empty: they are
	// taken. Disk is what was last seen of the disk below Dir. Both are cheap.
	AddsRefused func() string
	Disk        func() diskspace.State
	GaveWay     func() uint64 // see membership.Membership
	// Wall is this node's clock; ConfirmClock asks the voters whether it is right,
	// and is an error unless it is within MaxClockOffset, or none can say.
	Wall           func() time.Time
	ConfirmClock   func(ctx context.Context) error
	MaxClockOffset time.Duration
	// ClockWentOff is told that Wall has gone off what the voters said. It must not
	// block. ClockOffsets is membership.Membership's.
	ClockWentOff func()
	ClockOffsets func() map[string]time.Duration
	// ConfirmLeader reports in which term this node leads; see
	// membership.Membership.
	ConfirmLeader func(ctx context.Context) (term uint64, err error)
	// Lead runs while this node is the established leader, until ctx ends.
	Lead func(ctx context.Context)

	wrapLog func(raft.LogStore) raft.LogStore // see Config
	files   files
}

// Shard is everything that belongs to one Raft group on one node. Its exported
// methods may be called from many goroutines.
type Shard struct {
	cfg     shardConfig
	log     *slog.Logger
	stores  *logstore.Stores
	machine *fsm.Machine
	adapter *statemachine.Adapter
	raft    *raft.Raft
	metrics *shardMetrics

	leaders *leaderWatch
	batcher *batcher
	commits chan commit
	// leadership confirms, for reads, that this node still leads.
	leadership  *confirmations
	readRetries retries
	progress    *progress
	marks       *marks
	timer       *timer.Timer
	schedules   *timer.Timer
	clock       clock
	transfers   transfers

	raftSettings sync.Mutex // held while settings of the running Raft change

	localAddr string // by which other nodes know this one

	toMigrate chan struct{} // the cluster version was raised; likewise

	tight  chan struct{} // the disk has become low; one pending wake-up says it all
	broken chan struct{} // a connection of another node's Raft ended; likewise

	drainOnce sync.Once
	draining  chan struct{} // closed when the node is about to stop

	// term is set while this node is the established leader.
	term atomic.Pointer[term]

	streamMu sync.Mutex
	stream   *waitStream // to the leader, when that is another node
	streamTo leader

	ctx    context.Context // ends when the shard stops
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines that end with ctx
}

// term is what lives for one established leadership.
type term struct {
	number     uint64          // Raft's
	ctx        context.Context // ends with the leadership
	dispatcher *dispatch.Dispatcher
}

// openShard opens the stores of a shard. It reads only; start begins its work.
func openShard(cfg shardConfig) (*Shard, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Shard{
		cfg: cfg, log: cfg.Logger.With("shard", cfg.Number),
		metrics:   newShardMetrics(cfg.Registry),
		leaders:   newLeaderWatch(time.Now()),
		commits:   make(chan commit, maxInFlight),
		marks:     newMarks(),
		draining:  make(chan struct{}),
		toMigrate: make(chan struct{}, 1),
		tight:     make(chan struct{}, 1),
		broken:    make(chan struct{}, 1),
		ctx:       ctx, cancel: cancel,
	}
	s.clock.most, s.clock.wentOff = cfg.MaxClockOffset, cfg.ClockWentOff
	s.batcher = newBatcher(s.route, s.metrics.batch)
	s.leadership = newConfirmations(s.confirmLeadership)
	s.timer = timer.New(s)
	s.schedules = timer.New(scheduler{s})
	if err := s.openStores(); err != nil {
		cancel()
		return nil, errors.Join(err, s.closeStores())
	}
	return s, nil
}

func (s *Shard) openStores() (err error) {
	defer func() { err = withWayOut(err, s.cfg.Dir) }()
	if err := errors.Join(makeDir(s.cfg.Dir), syncAbove(s.cfg.Dir)); err != nil {
		return fmt.Errorf("shard directory: %w", err)
	}
	if err := claim(s.cfg.Dir, s.cfg.ServerID); err != nil {
		return err
	}
	if s.stores, err = logstore.Open(filepath.Join(s.cfg.Dir, "raft"), logstore.Options{
		Fatal: s.fatal, Logger: newRaftLogger(s.log), Wrap: s.cfg.wrapLog, SegmentBytes: s.cfg.files.segmentBytes,
	}); err != nil {
		return fmt.Errorf("open the Raft log: %w", err)
	}
	if s.machine, err = fsm.Open(filepath.Join(s.cfg.Dir, "fsm"), fsm.Options{
		Shard: s.cfg.Number, CacheBytes: s.cfg.Cache, OpenTables: s.cfg.Tables, OnFatal: s.fatal, Point: hook.Point,
		FS: s.cfg.files.state, MemTableBytes: s.cfg.files.memTableBytes,
	}); err != nil {
		return fmt.Errorf("open the state machine: %w", err)
	}
	if err := statemachine.CheckStart(s.machine, s.stores.Log, s.stores.Stable); err != nil {
		return err
	}
	s.progress = &progress{applied: func() uint64 { return s.machine.Applied().Index }, entry: s.stores.Log.GetLog}
	s.adapter = statemachine.New(s.machine, statemachine.Options{OnChanges: s.changed, Fatal: s.fatal, Log: s.stores.Log})
	return nil
}

// fatal ends the process; for damaged files it says what can be done.
func (s *Shard) fatal(err error) {
	if errors.Is(err, logstore.ErrDamaged) || fsm.Damaged(err) {
		err = withWayOut(err, s.cfg.Dir)
	}
	s.cfg.Fatal(err)
}

// hasState reports whether Raft has ever run on these stores.
func (s *Shard) hasState() (bool, error) {
	return raft.HasExistingState(s.stores.Log, s.stores.Stable, s.adapter.Snapshots())
}

// stand is where log, votes and state have come to, and the servers of the last
// configuration in the state. For before Raft starts.
func (s *Shard) stand() ([]raft.Server, membership.Stand, error) {
	applied := s.machine.Applied()
	last, err := s.stores.Log.LastIndex()
	if err != nil {
		return nil, membership.Stand{}, fmt.Errorf("read the log: %w", err)
	}
	term, err := statemachine.Term(s.stores.Stable)
	if err != nil {
		return nil, membership.Stand{}, err
	}
	var servers []raft.Server
	if len(applied.Configuration) > 0 {
		servers = raft.DecodeConfiguration(applied.Configuration).Servers
	}
	return servers, membership.Stand{Term: term, LastIndex: max(last, applied.Index)}, nil
}

// start starts Raft over t and the shard's own work. It does not wait for a
// leader.
func (s *Shard) start(t raft.Transport) error {
	s.localAddr = string(t.LocalAddr())
	if err := s.startRaft(t); err != nil {
		return err
	}
	registerCollector(s.cfg.Registry, s)
	s.work.Go(s.watchLeader)
	s.work.Go(func() {
		s.batcher.run(s.ctx)
		close(s.commits)
	})
	s.work.Go(s.settleCommits)
	s.work.Go(func() { s.leadership.run(s.ctx) })
	s.work.Go(s.leadLoop)
	s.work.Go(s.sizeTrailingLogs)
	s.work.Go(func() { s.watchForLostLeader(t) })
	s.work.Go(func() { s.watchForBrokenLines(t) })
	return nil
}

func (s *Shard) startRaft(t raft.Transport) (err error) {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(s.cfg.ServerID)
	c.HeartbeatTimeout = s.cfg.Heartbeat
	c.ElectionTimeout = s.cfg.Election
	c.LeaderLeaseTimeout = s.cfg.Lease
	// Followers learn the last commit index by it when nothing else is sent.
	// Nobody waits for that: reads go to the leader. Shorter costs idle CPU.
	c.CommitTimeout = 50 * time.Millisecond
	// Above what can be in flight, so that one message carries all of it. Raft reads
	// so many entries for a follower that is behind and applies so many at once,
	// whatever their size.
	c.MaxAppendEntries = 16
	c.BatchApplyCh = true
	c.SnapshotInterval = 20 * time.Second
	c.SnapshotThreshold = 8192
	c.TrailingLogs = 10240
	if n := hook.Trailing(); n > 0 { // a harness wants followers to need the whole state
		c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = time.Second, n, n
	}
	c.NoSnapshotRestoreOnStart = true // the state machine is its own newest snapshot
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false
	c.Logger = newRaftLogger(s.log)
	cache := logstore.NewCache(s.stores.Log, logCacheBytes, logCacheEntries)
	s.raft, err = raft.NewRaft(c, s.adapter, cache, s.stores.Stable, s.adapter.Snapshots(), t)
	if err != nil {
		return fmt.Errorf("start Raft: %w", err)
	}
	return nil
}

// Now is the shard's clock, for a leader. It is never behind the state machine's.
func (s *Shard) Now() time.Time {
	now, _ := s.now()
	return now
}

// now is the shard's clock, and the epoch in which it tells the time.
func (s *Shard) now() (time.Time, uint64) {
	real, applied := time.Now(), s.machine.Applied()
	floor := time.Duration(applied.ClockMS) * time.Millisecond
	return s.clock.now(real, sinceEpoch(s.cfg.Wall()), floor, applied.ClockEpoch), applied.ClockEpoch
}

// clockConfirmed takes in what the voters' clocks said at an instant.
func (s *Shard) clockConfirmed(at, majority time.Time) { s.clock.confirm(at, sinceEpoch(majority)) }

// clockSkew is how far the queue's clock is ahead of this node's. Only the leader
// makes it go on; elsewhere it is of the last entry, and says nothing while it is
// behind: the queue may be idle.
func (s *Shard) clockSkew() time.Duration {
	if s.dispatcher() != nil {
		return s.Now().Sub(s.cfg.Wall().Round(0))
	}
	return max(0, time.UnixMilli(s.machine.Applied().ClockMS).Sub(s.cfg.Wall()))
}

// wallClock is this machine's clock, which a harness may set off.
func wallClock() time.Time { return time.Now().Add(hook.Clock()) }

// NextDue implements timer.Shard.
func (s *Shard) NextDue() int64 { return s.machine.NextDue() }

// changed takes in what a batch of the log changed. It runs on the state machine's
// goroutine and must not block.
func (s *Shard) changed(c fsm.Changes) {
	s.progress.came()
	for _, m := range c.Marks {
		s.digestMark(m)
	}
	if c.Cluster {
		poke(s.toMigrate)
		s.cfg.ClusterChanged()
	}
	t := s.term.Load()
	if t == nil {
		return
	}
	s.timer.Notify()
	if c.Schedules {
		s.schedules.Notify()
	}
	t.dispatcher.Update(updates(c.Topics))
}

func updates(cs []fsm.TopicChange) []dispatch.Update {
	us := make([]dispatch.Update, len(cs))
	for i, c := range cs {
		us[i] = dispatch.Update{Topic: c.Name, Ready: c.Ready, NextDue: c.NextDue, Soon: c.Soon}
	}
	return us
}

// dispatcher returns the dispatcher of an established leader, else nil.
func (s *Shard) dispatcher() *dispatch.Dispatcher {
	if t := s.term.Load(); t != nil {
		return t.dispatcher
	}
	return nil
}

// watchLeader follows who leads.
func (s *Shard) watchLeader() {
	seen := make(chan raft.Observation, 16)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	s.raft.RegisterObserver(o)
	defer s.raft.DeregisterObserver(o)
	// Observations may be dropped when they come fast, so the truth is asked
	// for each time, and now and then.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		addr, id := s.raft.LeaderWithID()
		now := leader{id: string(id), addr: string(addr)}
		if old, _ := s.leaders.get(); old != now {
			s.leaders.set(now, time.Now())
			s.log.Info("leader changed", "leader", nodeID(now.id))
			s.leaveStream(now)
		}
		select {
		case <-seen:
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// drain ends all waits on this node with what they have, and refuses new ones.
func (s *Shard) drain() { s.drainOnce.Do(func() { close(s.draining) }) }

// stop ends the shard: waiters are told, what is under way gets its outcome,
// Raft stops, the stores close. It blocks.
func (s *Shard) stop() error {
	s.cancel()
	s.closeStream()
	var err error
	if s.raft != nil {
		// Raft first: it answers the entries that settleCommits waits for.
		err = s.raft.Shutdown().Error()
	}
	s.work.Wait()
	s.marks.close()
	if cerr := s.closeStores(); err == nil {
		err = cerr
	}
	return err
}

func (s *Shard) closeStores() error {
	var errs []error
	if s.machine != nil {
		errs = append(errs, s.machine.Close())
	}
	if s.stores != nil {
		errs = append(errs, s.stores.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the shard's stores: %w", err)
	}
	return nil
}

// pause waits for d. It returns early, with true, when early closes, and with
// false when ctx ends.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
		return true
	case <-ctx.Done():
		return false
	}
}

// established returns the leadership once this node is the established leader. It
// blocks while the node has been elected and still applies what its predecessors
// committed; nil: it does not lead, or ctx or the shard has ended.
func (s *Shard) established(ctx context.Context) *term {
	for {
		l, changed := s.leaders.get() // first: becoming established is a change
		if t := s.term.Load(); t != nil || l.id != s.cfg.ServerID {
			return t
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}

// waitRoom returns where reserves wait now: the dispatcher here, or a stream to
// the leader; nil while neither can be had. The channel closes when leadership
// changes, which includes that this node becomes the established leader.
func (s *Shard) waitRoom() (waitRoom, <-chan struct{}) {
	l, changed := s.leaders.get()
	switch l.id {
	case "":
		return nil, changed
	case s.cfg.ServerID:
		if d := s.dispatcher(); d != nil {
			return d, changed
		}
		return nil, changed
	}
	if stream := s.streamRoom(l); stream != nil {
		return stream, changed
	}
	return nil, changed
}

// streamRoom returns the stream to l, opening it if there is none; nil while the
// node stops.
func (s *Shard) streamRoom(l leader) *waitStream {
	s.streamMu.Lock()
	defer s.streamMu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	if s.stream != nil && s.streamTo == l {
		return s.stream
	}
	if old := s.stream; old != nil {
		s.work.Go(old.close)
		s.stream = nil
	}
	client, err := s.cfg.Peer(s.ctx, l.id, l.addr)
	if err != nil {
		return nil
	}
	s.stream, s.streamTo = openWaitStream(client, s.cfg.Number, s.giveBack), l
	return s.stream
}

// leaveStream breaks the stream to a leader that was deposed, so that its waiters
// register with the present one at once.
func (s *Shard) leaveStream(now leader) {
	s.streamMu.Lock()
	defer s.streamMu.Unlock()
	if s.stream != nil && now.id != "" && s.streamTo != now {
		s.work.Go(s.stream.close)
		s.stream = nil
	}
}

func (s *Shard) closeStream() {
	s.streamMu.Lock()
	stream := s.stream
	s.stream = nil
	s.streamMu.Unlock()
	if stream != nil {
		stream.close()
	}
}
