package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/report"
)

// The leader asks the servers that gossip has and the configuration has not, before it
// takes them in. Forged gossip can have hundreds that do not exist, and each would cost the
// time of a reply. So in each pass some are asked, at the same time: those that were never
// asked first, then those that were asked longest ago.

// maxAsked is the number of newcomers that one pass asks. It is far below the number of
// pooled connections, of which the members need theirs.
const maxAsked = 16

// toAsk returns the members among nodes, and maxAsked of the others at most.
func (m *Membership) toAsk(nodes []gossip.Member) []gossip.Member {
	strangers := 0
	return slices.DeleteFunc(slices.Clone(nodes), func(n gossip.Member) bool {
		if m.Configured(n.ServerID) {
			return false
		}
		strangers++
		return strangers > maxAsked
	})
}

// silent is the error of a newcomer that has not replied.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// maxNamed is how many newcomers health and the log name by themselves. Forged gossip can have
// hundreds.
const maxNamed = 5

// turnedDown is why newcomers cannot be taken in, by node id.
type turnedDown struct{ silent, others map[string]error }

func (t *turnedDown) add(nodeID string, err error) {
	into := &t.others
	if errors.As(err, new(silent)) {
		into = &t.silent
	}
	if *into == nil {
		*into = make(map[string]error)
	}
	(*into)[nodeID] = err
}

// report adds a problem and an error for each newcomer, or one for all if they are many.
func (t *turnedDown) report(problems map[string]*report.Problem, errs []error) []error {
	for _, group := range []struct {
		what string
		of   map[string]error
	}{{"do not reply", t.silent}, {"cannot be taken in", t.others}} {
		of, ids := group.of, slices.Sorted(maps.Keys(group.of))
		if len(ids) > maxNamed {
			problems[group.what] = report.NewProblem(report.NodeOutside, "", "%d nodes that gossip announces %s, among them %s: if there are no such nodes, somebody forges gossip",
				len(ids), group.what, strings.Join(ids[:3], ", "))
			errs = append(errs, fmt.Errorf("over %d nodes that gossip announces %s", maxNamed, group.what)) // the log has it once
			continue
		}
		for _, id := range ids {
			problems[id] = cannotBeTakenIn(id, of[id])
			errs = append(errs, fmt.Errorf("node %s: %w", id, of[id]))
		}
	}
	return errs
}

// silence is a newcomer that could not be taken in when it was asked last.
type silence struct {
	asked time.Time
	err   error
}

// askNewcomers asks some of the nodes that could become members which versions they run,
// and returns why those that have not replied well cannot be taken in now, by server id. It
// blocks for askTimeout at most.
func (m *Membership) askNewcomers(ctx context.Context, l *leadership, nodes []gossip.Member) map[string]error {
	before, now := l.silent, make(map[string]silence)
	nodes = slices.Clone(nodes)
	nodes = slices.DeleteFunc(nodes, func(n gossip.Member) bool { return !m.mayBecomeMember(n) })
	slices.SortStableFunc(nodes, func(a, b gossip.Member) int { return before[a.ServerID].asked.Compare(before[b.ServerID].asked) })
	var asked sync.WaitGroup
	results := make([]error, min(len(nodes), maxAsked))
	for i := range results {
		asked.Go(func() { results[i] = m.checkVersion(ctx, nodes[i]) })
	}
	asked.Wait()
	failed := make(map[string]error)
	for i, n := range nodes {
		s := before[n.ServerID]
		if i < len(results) {
			s = silence{time.Now(), results[i]}
			if s.err == nil {
				continue
			}
		} else if s.err == nil {
			s.err = silent{fmt.Errorf("it waits until %d other nodes were asked which versions they run", i)}
		}
		now[n.ServerID], failed[n.ServerID] = s, s.err
	}
	l.silent = now // only of nodes that gossip still has
	return failed
}

// mayBecomeMember reports whether a live node is no member, and nothing that this node knows
// of it keeps it from becoming one.
func (m *Membership) mayBecomeMember(n gossip.Member) bool {
	return n.ServerID != m.cfg.ServerID && !m.Configured(n.ServerID) && !m.cfg.Facts.Forgotten(n.ServerID) &&
		m.checkAdmission(n.NodeID) == nil && n.Protocol == protocol
}
