package diskpolicy

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// A leader whose disk is low or slow delays every write, because each entry is written
// to its disk. It transfers leadership to a voter with a better disk. These rules keep
// leadership from alternating:
//
//   - Free space comes before speed, and only a much faster voter counts as faster. So
//     each transfer is to a better disk; among equal ones there is none.
//   - The reason must have lasted for several evaluations in a row.
//   - There is a minimum time (MinLead) from the beginning of the leadership, and from
//     each attempt, to the next one.
const (
	// slowWrite is a mean append time that slows the queue down: about a hundred
	// times that of a healthy disk.
	slowWrite = 500 * time.Millisecond
	// muchFaster is how many times faster a voter must be.
	muchFaster = 4
	// minEvaluations is the number of consecutive evaluations in which the reason must
	// exist.
	minEvaluations = 3
)

// Config has the settings of a Policy.
type Config struct {
	ServerID raft.ServerID // this node's
	Own      func() Health // of this node's disk; must not block
	KeepFor  time.Duration // how long a report of another node counts
	MinLead  time.Duration // a leader leads at least this long before a transfer
	Logger   *slog.Logger
}

// Policy is for one leadership. BetterLeader must be called from one goroutine, the other
// methods may be called from many at once.
type Policy struct {
	cfg     Config
	reports reports
	refused atomic.Pointer[string] // why adds are refused; nil or empty: they are accepted

	began    time.Time // start of the leadership or of the last attempt to transfer it
	reasonIn int       // consecutive evaluations in which there was a reason to transfer
}

// New returns the Policy of a leader that begins to lead now.
func New(cfg Config, now time.Time) *Policy { return &Policy{cfg: cfg, began: now} }

// Record stores what another node reports of its disk.
func (p *Policy) Record(id raft.ServerID, h Health, now time.Time) { p.reports.record(id, h, now) }

// disks returns the disks that are known now. This node's own is always current.
func (p *Policy) disks(now time.Time) map[raft.ServerID]Health {
	known := p.reports.since(now.Add(-p.cfg.KeepFor))
	known[p.cfg.ServerID] = p.cfg.Own()
	return known
}

// AddsRefused returns why adds are to be refused, by the last evaluation; empty: they
// are accepted. It is cheap.
func (p *Policy) AddsRefused() string {
	if why := p.refused.Load(); why != nil {
		return *why
	}
	return ""
}

// Evaluate decides whether adds are refused.
func (p *Policy) Evaluate(voters []raft.ServerID, now time.Time) {
	why := notEnoughSpace(voters, p.disks(now))
	old := p.refused.Swap(&why)
	switch before := old != nil && *old != ""; {
	case why != "" && !before:
		p.cfg.Logger.Warn("refusing adds; all other operations continue", "because", why)
	case why == "" && before:
		p.cfg.Logger.Info("accepting adds again")
	}
}

// Problems lists which disks are low or slow, and what follows from it.
func (p *Policy) Problems(now time.Time) []*report.Problem {
	list := problems(p.disks(now))
	if why := p.AddsRefused(); why != "" {
		list = append(list, report.NewProblem(report.AddsRefused, "", "adds are refused: %s", why))
	}
	return list
}

// BetterLeader makes one evaluation. It returns the voter to which leadership should be
// transferred now, and why; empty: there is none. candidates are the voters that could
// lead.
func (p *Policy) BetterLeader(candidates []raft.ServerID, now time.Time) (to raft.ServerID, why string) {
	to, why = better(p.cfg.ServerID, candidates, p.disks(now))
	if to == "" {
		p.reasonIn = 0
		return "", ""
	}
	if p.reasonIn++; p.reasonIn < minEvaluations || now.Sub(p.began) < p.cfg.MinLead {
		return "", ""
	}
	p.began, p.reasonIn = now, 0
	return to, why
}

// notEnoughSpace returns why there is not enough free space for adds; empty: there is. An entry
// needs the disks of a majority, so adds are accepted while a majority of the voters
// replies and has enough space. A voter that does not reply is no reason by itself:
// Raft steps down if no majority is left.
func notEnoughSpace(voters []raft.ServerID, disks map[raft.ServerID]Health) string {
	var low []string
	enough := 0
	for _, id := range voters {
		switch h, known := disks[id]; {
		case known && h.Low:
			low = append(low, fmt.Sprintf("%s (%d MiB free)", raftconfig.NodeID(id), h.Free>>20))
		case known:
			enough++
		}
	}
	quorum := raftconfig.Quorum(len(voters))
	if len(low) == 0 || enough >= quorum {
		return ""
	}
	slices.Sort(low)
	plural := "s"
	if quorum == 1 {
		plural = ""
	}
	return fmt.Sprintf("the disk is low on %s; adds need free space on %d voter%s", strings.Join(low, ", "), quorum, plural)
}

// better returns the candidate with the best disk, if it is better than this node's.
func better(self raft.ServerID, candidates []raft.ServerID, disks map[raft.ServerID]Health) (to raft.ServerID, why string) {
	own := disks[self]
	for _, id := range candidates {
		h, known := disks[id]
		if id == self || !known || h.Low {
			continue
		}
		// A node that has written nothing lately counts as equally slow.
		faster := h.LogWrite > 0 && h.LogWrite <= own.LogWrite/muchFaster
		slow := own.LogWrite >= slowWrite && faster
		if (own.Low || slow) && (to == "" || h.LogWrite < disks[to].LogWrite) {
			to = id
		}
	}
	switch {
	case to == "":
		return "", ""
	case own.Low:
		return to, fmt.Sprintf("the disk of this node is low (%d MiB free)", own.Free>>20)
	}
	return to, fmt.Sprintf("the disk of this node is slow: a write to the log takes %v, on the other %v",
		own.LogWrite.Round(time.Millisecond), disks[to].LogWrite.Round(time.Microsecond))
}
