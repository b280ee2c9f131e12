package history

import (
	"cmp"
	"fmt"
	"slices"
)

// checkCounts is I10 on the counters of topics, which only grow: one connection
// never reads less than before, and a consistent read sees all that was read or
// acknowledged before it began.
func checkCounts(ops []Op, r *Report) {
	reads := map[string][]*Op{} // by topic
	for i := range ops {
		if op := &ops[i]; op.Kind == Count && op.Outcome == OK && op.Counts != nil {
			reads[op.Topic] = append(reads[op.Topic], op)
		}
	}
	if len(reads) == 0 {
		return
	}
	acked := acknowledged(ops, reads)
	topics := make([]string, 0, len(reads))
	for topic := range reads {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	for _, topic := range topics {
		list := reads[topic]
		slices.SortFunc(list, func(a, b *Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
		checkConnections(topic, list, r)
		checkConsistent(topic, list, acked[topic], r)
	}
}

// growth is what the counters were known to have reached at an instant.
type growth struct {
	at int64
	Counts
}

// acknowledged lists, by topic, the instants at which writes were acknowledged,
// each with what it adds to the counters.
func acknowledged(ops []Op, topics map[string][]*Op) map[string][]growth {
	list := map[string][]growth{}
	seen := map[uint64]bool{}  // an add that is repeated counts once
	moved := map[string]bool{} // topics whose jobs may end in another
	for i := range ops {
		if op := &ops[i]; op.To != "" {
			moved[op.Topic], moved[op.To] = true, true
		}
	}
	for i := range ops {
		op := &ops[i]
		if op.Outcome != OK || topics[op.Topic] == nil {
			continue
		}
		g := growth{at: op.Complete}
		switch {
		case op.Kind == Add && !seen[op.Seq]:
			seen[op.Seq] = true
			g.Added = 1
			if op.Result == replaced && !moved[op.Topic] {
				g.Deleted = 1
			}
		case moved[op.Topic]:
			continue
		case op.Kind == Finish:
			g.Finished = 1
		case op.Kind == Delete:
			g.Deleted = 1
		default:
			continue
		}
		list[op.Topic] = append(list[op.Topic], g)
	}
	for _, l := range list {
		slices.SortStableFunc(l, func(a, b growth) int { return cmp.Compare(a.at, b.at) })
	}
	return list
}

// checkConnections compares stale reads of one connection. reads are sorted by
// their beginnings; a client reads one after the other.
func checkConnections(topic string, reads []*Op, r *Report) {
	type connection struct {
		client int
		node   string
		number int64
	}
	last := map[connection]*Op{}
	for _, op := range reads {
		if !op.Counts.Stale {
			continue
		}
		c := connection{op.Client, op.Node, op.Counts.Conn}
		if before := last[c]; before != nil && less(op.Counts, before.Counts) {
			r.Violate("I10", "", "client %d read topic %s on one connection to %s and went back from %s to %s", op.Client, topic, op.Node, before.Counts, op.Counts)
		}
		last[c] = op
	}
}

// checkConsistent sweeps over the beginnings of consistent reads.
func checkConsistent(topic string, reads []*Op, acked []growth, r *Report) {
	byEnd := slices.Clone(reads)
	slices.SortFunc(byEnd, func(a, b *Op) int { return cmp.Compare(a.Complete, b.Complete) })
	var known, sum Counts
	for _, op := range reads {
		if op.Counts.Stale {
			continue
		}
		for len(byEnd) > 0 && byEnd[0].Complete < op.Invoke {
			known = known.max(byEnd[0].Counts)
			byEnd = byEnd[1:]
		}
		for len(acked) > 0 && acked[0].at < op.Invoke {
			sum.Added += acked[0].Added
			sum.Finished += acked[0].Finished
			sum.Deleted += acked[0].Deleted
			acked = acked[1:]
		}
		if least := known.max(&sum); less(op.Counts, &least) {
			r.Violate("I10", "", "a consistent read of topic %s from %s found %s after %s were read or acknowledged", topic, op.Node, op.Counts, &least)
		}
	}
}

func (c Counts) max(o *Counts) Counts {
	return Counts{Added: max(c.Added, o.Added), Finished: max(c.Finished, o.Finished), Deleted: max(c.Deleted, o.Deleted)}
}

// less reports whether any counter of a is behind that of b.
func less(a, b *Counts) bool {
	return a.Added < b.Added || a.Finished < b.Finished || a.Deleted < b.Deleted
}

func (c *Counts) String() string {
	return fmt.Sprintf("%d added, %d finished, %d deleted", c.Added, c.Finished, c.Deleted)
}
