package membership

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Condition is what a node says of its own disk.
type Condition struct {
	DiskLow  bool
	DiskFree uint64 // bytes
	// LogWrite is the mean of the last writes to the Raft log; 0: not known.
	LogWrite time.Duration
}

// reports hold what the leader last heard of each server's condition.
type reports struct {
	mu sync.Mutex
	of map[raft.ServerID]report
}

type report struct {
	Condition
	at time.Time
}

func (r *reports) heard(id raft.ServerID, c Condition, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[raft.ServerID]report)
	}
	r.of[id] = report{c, now}
}

// since gives the reports that are not older than the instant.
func (r *reports) since(oldest time.Time) map[raft.ServerID]Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := make(map[raft.ServerID]Condition)
	for id, rep := range r.of {
		if rep.at.Before(oldest) {
			delete(r.of, id) // silent, or no member any more
			continue
		}
		fresh[id] = rep.Condition
	}
	return fresh
}

// ConditionChanged tells that this node's disk is low, or not any more, so that
// a leader acts on it at once. It does not block. Without it the change is
// noticed within seconds.
func (m *Membership) ConditionChanged() { poke(m.toJudge) }

// AddsRefused says on the leader why adds are to be refused now; empty: they are
// not. It is cheap. On other nodes it is always empty: the leader decides.
func (m *Membership) AddsRefused() string {
	g := m.reign.Load()
	if g == nil {
		return ""
	}
	if why := g.noRoom.Load(); why != nil {
		return *why
	}
	return ""
}

// noRoom says why adds have no room; empty: they have. An entry needs the disks
// of a majority, so adds go on while a majority of the voters answers and has
// room: one small disk must not stop the queue. A voter that is merely silent is
// no reason; Raft finds out by itself whether a majority is left.
func noRoom(voters []raft.ServerID, conditions map[raft.ServerID]Condition) string {
	var low []string
	roomy := 0
	for _, id := range voters {
		switch c, known := conditions[id]; {
		case known && c.DiskLow:
			low = append(low, fmt.Sprintf("%s (%d MiB free)", nodeIDOf(string(id)), c.DiskFree>>20))
		case known:
			roomy++
		}
	}
	if len(low) == 0 || roomy >= quorum(len(voters)) {
		return ""
	}
	slices.Sort(low)
	return fmt.Sprintf("the disk is low on %s; adds need room on %s", strings.Join(low, ", "), plural(quorum(len(voters)), "voter"))
}

func votersOf(c raft.Configuration) []raft.ServerID {
	var ids []raft.ServerID
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
