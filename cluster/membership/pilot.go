package membership

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// What autopilot takes for healthy: a server heard from the leader lately and
// has its log up to a small lag. Entries are batches of operations, so the lag
// is generous in operations.
const (
	lastContactLimit = 5 * time.Second
	lagLimit         = 1000
)

// pilot answers raft-autopilot's questions. Autopilot promotes and judges
// health; it never removes, because silence is no reason to (see doc.go).
type pilot struct{ m *Membership }

func (m *Membership) newPilot(r *raft.Raft) *autopilot.Autopilot {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Error})
	log.RegisterSink(pilotLog{m.cfg.Logger.With("part", "autopilot")})
	return autopilot.New(r, pilot{m},
		autopilot.WithLogger(log),
		autopilot.WithUpdateInterval(m.cfg.Timing.Health),
		autopilot.WithReconcileInterval(m.cfg.Timing.Health),
	)
}

func (p pilot) AutopilotConfig() *autopilot.Config {
	return &autopilot.Config{
		CleanupDeadServers:      false,
		LastContactThreshold:    lastContactLimit,
		MaxTrailingLogs:         lagLimit,
		ServerStabilizationTime: p.m.cfg.Timing.Stabilize,
	}
}

func (p pilot) NotifyState(*autopilot.State) {}

// RemoveFailedServer is never called: CleanupDeadServers is off.
func (p pilot) RemoveFailedServer(*autopilot.Server) {}

func (p pilot) KnownServers() map[raft.ServerID]*autopilot.Server {
	out := make(map[raft.ServerID]*autopilot.Server)
	for _, s := range p.m.configuration().Servers {
		out[s.ID] = &autopilot.Server{
			ID: s.ID, Name: nodeIDOf(string(s.ID)), Address: s.Address,
			NodeStatus: autopilot.NodeFailed, RaftVersion: int(raft.ProtocolVersionMax),
			NodeType: autopilot.NodeVoter, IsLeader: string(s.ID) == p.m.cfg.ServerID,
		}
	}
	for _, n := range p.m.members() {
		if s := out[raft.ServerID(n.ServerID)]; s != nil {
			s.NodeStatus, s.Version = autopilot.NodeAlive, n.Version
		}
	}
	return out
}

// FetchServerStats asks all at once; a server that does not answer in time keeps
// its last figures.
func (p pilot) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := make(map[raft.ServerID]*autopilot.ServerStats, len(servers))
	for id, s := range servers {
		if s.NodeStatus != autopilot.NodeAlive {
			continue
		}
		wg.Go(func() {
			stats := p.stats(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			out[id] = stats
		})
	}
	wg.Wait()
	return out
}

func (p pilot) stats(ctx context.Context, id raft.ServerID) *autopilot.ServerStats {
	// Silence is an answer too, and a negative contact means it.
	none := &autopilot.ServerStats{LastContact: -1}
	addr, err := p.m.ServerAddr(id)
	if err != nil {
		return none
	}
	a, err := p.m.ask(ctx, string(id), string(addr))
	if err != nil {
		p.m.cfg.Logger.Debug("no status", "server", id, "error", err)
		return none
	}
	if g := p.m.reign.Load(); g != nil {
		g.reports.heard(id, conditionFromPB(a), time.Now())
		if g.offers.heard(id, offerOf(a)) {
			poke(p.m.toLeader)
		}
	}
	return &autopilot.ServerStats{
		LastContact: time.Duration(a.LastContactMs) * time.Millisecond,
		LastTerm:    a.LastTerm,
		LastIndex:   a.LastIndex,
	}
}

func (m *Membership) localStats(r *raft.Raft) autopilot.ServerStats {
	// The term of the last entry is to be had only as text.
	term, _ := strconv.ParseUint(r.Stats()["last_log_term"], 10, 64)
	s := autopilot.ServerStats{LastTerm: term, LastIndex: r.LastIndex(), LastContact: -time.Millisecond}
	if r.State() == raft.Leader {
		s.LastContact = 0
	} else if at := r.LastContact(); !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	return s
}

// pilotLog hands autopilot's messages to slog.
type pilotLog struct{ to *slog.Logger }

func (l pilotLog) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn, hclog.Error:
		to = slog.LevelWarn // it tries again by itself
	}
	l.to.Log(context.Background(), to, msg, args...)
}
