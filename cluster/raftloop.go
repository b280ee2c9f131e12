package cluster

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// loopLimit is for how long Raft's main loop may not respond before that is said to people. It
// writes the log and receives the leader's state, so it is busy at times.
const loopLimit = 5 * time.Second

// loopWatch notices that Raft's main loop hangs. Such a node still answers heartbeats, so nothing
// else shows it. There is one probe at a time, and none unless somebody asks: the leader does
// every few seconds.
type loopWatch struct {
	respond func()            // returns once the loop has handled it
	busy    func() string     // what the loop may be busy with; empty: not known
	run     func(func()) bool // Shard.spawn
	log     *slog.Logger

	mu     sync.Mutex
	since  time.Time // of the probe under way; zero: none is
	logged bool      // that it hangs
}

// silent returns for how long the loop has not responded, and begins a probe if none is under way.
func (w *loopWatch) silent(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		if !w.run(w.probe) {
			return 0
		}
		w.since = now
	}
	return now.Sub(w.since)
}

func (w *loopWatch) probe() {
	w.respond()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged {
		w.log.Info("raft's main loop responds again")
	}
	w.since, w.logged = time.Time{}, false
}

// trouble returns what is wrong with the loop, and logs it when it begins; empty: nothing is.
func (w *loopWatch) trouble(now time.Time) string {
	silent := w.silent(now)
	if silent <= loopLimit {
		return ""
	}
	why := w.busy()
	w.mu.Lock()
	first := !w.logged && !w.since.IsZero()
	w.logged = w.logged || first
	w.mu.Unlock()
	if first {
		w.log.Warn("raft's main loop does not respond: this node neither votes nor stores entries", "for", silent, "because", why)
	}
	if why != "" {
		why = ": " + why
	}
	return fmt.Sprintf("its Raft loop has not responded for %s%s", silent.Round(time.Second), why)
}

func newLoopWatch(s *Shard, receiving func() bool) *loopWatch {
	return &loopWatch{
		respond: func() { _ = s.raft.VerifyLeader().Error() }, // "not the leader" is a response too
		busy: func() string {
			switch {
			case s.adapter.Installing():
				return "it takes over a state from the leader"
			case receiving():
				return "it receives a state from another node"
			}
			return ""
		},
		run: s.spawn, log: s.log,
	}
}

// watched returns the loop that can be probed now; nil: it is starting or stopping, and a probe
// might not end.
func (n *Node) watched(g *group) *loopWatch {
	if !n.raftRuns.Load() || g.shard.ctx.Err() != nil {
		return nil
	}
	return g.loop
}

func (n *Node) raftSilent(g *group) time.Duration {
	if w := n.watched(g); w != nil {
		return w.silent(time.Now())
	}
	return 0
}

// raftTrouble returns why this node's Raft does not take part; empty: it does, as far as it is
// known. It does not block.
func (n *Node) raftTrouble() string {
	for _, g := range n.groups {
		if w := n.watched(g); w != nil {
			if why := w.trouble(time.Now()); why != "" {
				return g.inShard() + why
			}
		}
	}
	return ""
}
