package membership

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/ackguard"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/raftconfig"
)

// For autopilot a server is healthy if its last contact with the leader was within
// lastContactLimit and it is at most lagLimit entries behind. An entry is a batch of
// operations.
const (
	lastContactLimit = 5 * time.Second
	lagLimit         = 1000
)

// autopilotDelegate implements raft-autopilot's delegate. Autopilot promotes servers
// and evaluates their health. It never removes one: silence is no reason to (doc.go).
type autopilotDelegate struct{ m *Membership }

func (m *Membership) newAutopilot(r *raft.Raft) *autopilot.Autopilot {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Error})
	log.RegisterSink(autopilotLog{m.cfg.Logger.With("part", "autopilot")})
	return autopilot.New(promoter{r, m}, autopilotDelegate{m},
		autopilot.WithLogger(log), autopilot.WithPromoter(onlyVoters{new(autopilot.StablePromoter)}),
		autopilot.WithUpdateInterval(m.cfg.Timing.Health),
		autopilot.WithReconcileInterval(m.cfg.Timing.Health),
	)
}

func (d autopilotDelegate) AutopilotConfig() *autopilot.Config {
	return &autopilot.Config{
		CleanupDeadServers:      false,
		LastContactThreshold:    lastContactLimit,
		MaxTrailingLogs:         lagLimit,
		ServerStabilizationTime: d.m.cfg.Timing.Stabilize,
	}
}

func (d autopilotDelegate) NotifyState(*autopilot.State) {}

// RemoveFailedServer is never called: CleanupDeadServers is off.
func (d autopilotDelegate) RemoveFailedServer(*autopilot.Server) {}

func (d autopilotDelegate) KnownServers() map[raft.ServerID]*autopilot.Server {
	out := make(map[raft.ServerID]*autopilot.Server)
	for _, s := range d.m.configuration().Servers {
		out[s.ID] = &autopilot.Server{
			ID: s.ID, Name: raftconfig.NodeID(s.ID), Address: s.Address,
			NodeStatus: autopilot.NodeFailed, RaftVersion: int(raft.ProtocolVersionMax),
			NodeType: autopilot.NodeVoter, IsLeader: string(s.ID) == d.m.cfg.ServerID,
		}
	}
	for _, n := range d.m.members() {
		if s := out[raft.ServerID(n.ServerID)]; s != nil {
			s.NodeStatus, s.Version = autopilot.NodeAlive, n.Version
			if n.NonVoter {
				s.NodeType = nonVoter
			}
		}
	}
	return out
}

// FetchServerStats asks all servers at once. One that does not answer in time keeps
// its last figures.
func (d autopilotDelegate) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := make(map[raft.ServerID]*autopilot.ServerStats, len(servers))
	for id, s := range servers {
		if s.NodeStatus != autopilot.NodeAlive {
			continue
		}
		wg.Go(func() {
			stats := d.stats(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			out[id] = stats
		})
	}
	wg.Wait()
	return out
}

func (d autopilotDelegate) stats(ctx context.Context, id raft.ServerID) *autopilot.ServerStats {
	// A negative contact means that there was no answer.
	none := &autopilot.ServerStats{LastContact: -1}
	addr, err := d.m.ServerAddr(id)
	if err != nil {
		return none
	}
	var applied uint64
	if r := d.m.raft.Load(); r != nil {
		applied = r.AppliedIndex()
	}
	a, err := d.m.ask(ctx, string(id), string(addr))
	if err != nil {
		d.m.cfg.Logger.Debug("no status", "server", id, "error", err)
		if l := d.m.leadership.Load(); l != nil {
			l.progress.forget(id)
		}
		return none
	}
	if l := d.m.leadership.Load(); l != nil {
		l.rings.record(id, a.Keyring)
		l.backups.record(id, a.Backups)
		l.drains.record(id, a.Drained)
		l.disks.Record(id, diskHealthFromPB(a), time.Now())
		if l.offers.record(id, offerOf(a)) {
			poke(d.m.toLeader)
		}
		// A server that stands still counts as one that does not reply: it is no candidate to lead,
		// and no other may fail in its place.
		l.progress.record(id, briefly(a.Trouble), a.AppliedIndex, applied, time.Now())
		if l.progress.stands(id, time.Now()) != "" {
			return &autopilot.ServerStats{LastContact: -1, LastTerm: a.LastTerm, LastIndex: a.LastIndex}
		}
	}
	return &autopilot.ServerStats{
		LastContact: time.Duration(a.LastContactMs) * time.Millisecond,
		LastTerm:    a.LastTerm,
		LastIndex:   a.LastIndex,
	}
}

func (m *Membership) localStats(r *raft.Raft) autopilot.ServerStats {
	s := autopilot.ServerStats{LastTerm: ackguard.LastLogTerm(r), LastIndex: r.LastIndex(), LastContact: -time.Millisecond}
	if r.State() == raft.Leader {
		s.LastContact = 0
	} else if at := r.LastContact(); !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	return s
}

// autopilotLog passes autopilot's messages to slog.
type autopilotLog struct{ to *slog.Logger }

func (l autopilotLog) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn, hclog.Error:
		to = slog.LevelWarn // it tries again by itself
	}
	l.to.Log(context.Background(), to, msg, args...)
}

// nonVoter is the type of a node that was started not to vote. It says so in its gossip record
// and in its replies, and only nodes that are alive are promoted, so no state needs to keep it.
const nonVoter autopilot.NodeType = "non-voter"

// neverVotes reports whether a server is alive and was started not to vote.
func (m *Membership) neverVotes(id raft.ServerID) bool {
	return slices.ContainsFunc(m.members(), func(n gossip.Member) bool { return n.ServerID == string(id) && n.NonVoter })
}

// onlyVoters promotes all stable servers but those.
type onlyVoters struct{ *autopilot.StablePromoter }

// GetNodeTypes keeps the types that KnownServers has given.
func (onlyVoters) GetNodeTypes(*autopilot.Config, *autopilot.State) map[raft.ServerID]autopilot.NodeType {
	return nil
}

// CalculatePromotionsAndDemotions implements autopilot.Promoter.
func (p onlyVoters) CalculatePromotionsAndDemotions(c *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	changes := p.StablePromoter.CalculatePromotionsAndDemotions(c, s)
	changes.Promotions = slices.DeleteFunc(changes.Promotions, func(id raft.ServerID) bool {
		return !p.IsPotentialVoter(s.Servers[id].Server.NodeType)
	})
	return changes
}

// promoter is Raft as autopilot uses it. Autopilot decides by a view of the members that is up
// to some seconds old, and Raft adds a voter that is in no configuration: without the check a
// server that was removed meanwhile would be a member again.
type promoter struct {
	*raft.Raft
	m *Membership
}

// AddVoter makes a member a voter. It waits for other changes of the configuration, and
// returns when the change is committed.
func (p promoter) AddVoter(id raft.ServerID, addr raft.ServerAddress, prevIndex uint64, timeout time.Duration) raft.IndexFuture {
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	end, err := p.m.beginChange(ctx)
	if err != nil {
		return noChange{err}
	}
	defer end()
	if !p.m.Configured(string(id)) || p.m.cfg.Facts.Forgotten(string(id)) {
		return noChange{fmt.Errorf("server %s was removed meanwhile", id)}
	}
	f := p.Raft.AddVoter(id, addr, prevIndex, timeout)
	_ = f.Error() // the caller has it from the future
	return f
}

// noChange is the outcome of a change that was not made.
type noChange struct{ err error }

func (n noChange) Error() error  { return n.err }
func (n noChange) Index() uint64 { return 0 }
