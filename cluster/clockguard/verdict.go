package clockguard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// offset is how far a clock is ahead of the majority's, and the error of that.
type offset struct{ by, within time.Duration }

// verdict is the comparison of several servers' clocks.
type verdict struct {
	at       time.Time // with its monotonic reading
	majority time.Time // the majority's time at that instant; zero: no majority replied
	within   time.Duration
	agreed   bool          // the clocks of a majority of the voters agree with it
	ahead    time.Duration // how far the queue's clock is ahead of it; 0 if not determined
	most     time.Duration
	offsets  map[raft.ServerID]offset // of all servers that replied
}

// compare compares readings at an instant. most is how far a clock may be off.
func compare(voters []raft.ServerID, readings map[raft.ServerID]reading, at time.Time, most time.Duration) verdict {
	v := verdict{at: at, most: most}
	var known []reading
	for _, id := range voters {
		if r, ok := readings[id]; ok {
			known = append(known, r)
		}
	}
	if len(known) < raftconfig.Quorum(len(voters)) || len(known) == 0 {
		return v
	}
	slices.SortFunc(known, func(a, b reading) int { return a.then(at).Compare(b.then(at)) })
	median := known[(len(known)-1)/2]
	v.majority, v.within = median.then(at), median.within
	v.offsets = make(map[raft.ServerID]offset, len(readings))
	for id, r := range readings {
		o := offset{by: r.then(at).Sub(v.majority), within: r.within + median.within}
		if r == median {
			o.within = 0
		}
		v.offsets[id] = o
	}
	right := 0
	for _, id := range voters {
		if v.right(id) {
			right++
		}
	}
	v.agreed = right >= raftconfig.Quorum(len(voters))
	return v
}

// right reports whether a server's reading agrees with the majority's time within the
// error.
func (v *verdict) right(id raft.ServerID) bool {
	o, known := v.offsets[id]
	return known && o.by.Abs()-o.within <= v.most
}

// off reports whether a server's clock is known to be off the majority's.
func (v *verdict) off(id raft.ServerID) bool {
	_, known := v.offsets[id]
	return v.agreed && known && !v.right(id)
}

// problems lists what is wrong with the clocks.
func (v *verdict) problems() (list []*report.Problem) {
	ids := make([]raft.ServerID, 0, len(v.offsets))
	for id := range v.offsets {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var all []string
	for _, id := range ids {
		node, by := raftconfig.NodeID(id), v.offsets[id].by
		if v.off(id) {
			list = append(list, report.NewProblem(report.ClockOff, node, "the clock of %s is %s the majority's; more than %v keeps it from leading: set it right", node, aheadOf(by), v.most))
		}
		all = append(all, fmt.Sprintf("%s %+.3f s", node, by.Seconds()))
	}
	if !v.majority.IsZero() && !v.agreed {
		list = append(list, report.NewProblem(report.ClocksDisagree, "", "no majority of the voters' clocks agrees within %v: %s; the queue uses the lower median", v.most, strings.Join(all, ", ")))
	}
	if v.ranAway() {
		list = append(list, report.NewProblem(report.QueueClockAhead, "", "the queue's clock is %s the nodes': jobs come early; set it back with \"tarry cluster clock reset\"", aheadOf(v.ahead)))
	}
	return list
}

// ranAway reports whether the queue's clock is to be set back.
func (v *verdict) ranAway() bool { return v.agreed && v.ahead > v.most }

func aheadOf(by time.Duration) string {
	word := "ahead of"
	if by < 0 {
		word = "behind"
	}
	return fmt.Sprintf("%v %s", by.Abs().Round(time.Millisecond), word)
}

// earliest returns the majority's time minus its error. A late delivery is safe, an early
// one is not.
func (v *verdict) earliest() time.Time { return v.majority.Add(-v.within) }

// then returns the majority's time at another instant.
func (v *verdict) then(at time.Time) time.Time { return v.majority.Add(at.Sub(v.at)) }
