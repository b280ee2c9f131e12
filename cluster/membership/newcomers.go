package membership

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tarry/cluster/membership/gossip"
)

// The leader asks the servers that gossip has and the configuration has not, before it
// takes them in. Forged gossip can have hundreds that do not exist, and each would cost the
// time of a reply. So in each pass some are asked, at the same time: those that were never
// asked first, then those that were asked longest ago.

// maxAsked is the number of newcomers that one pass asks. It is far below the number of
// pooled connections, of which the members need theirs.
const maxAsked = 16

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
			s.err = fmt.Errorf("it waits until %d other nodes were asked which versions they run", i)
		}
		now[n.ServerID], failed[n.ServerID] = s, s.err
	}
	l.silent = now // only of nodes that gossip still has
	return failed
}

// mayBecomeMember reports whether a live node is no member, and nothing that this node knows
// of it keeps it from becoming one.
func (m *Membership) mayBecomeMember(n gossip.Member) bool {
	return n.ServerID != m.cfg.ServerID && !m.Configured(n.ServerID) && !m.cfg.Forgotten(n.ServerID) &&
		m.checkAdmission(n.NodeID) == nil && n.Protocol == protocol
}
