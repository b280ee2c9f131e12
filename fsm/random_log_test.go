package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// replica is one of the machines that apply the log of a simulation.
type replica struct {
	*rig
	name   string
	at     int     // entries of the log that it has
	events []event // the last of them, for the report of a failure
}

// event is something that happened to a replica: it applied the entry of that number, or
// what the text describes.
type event struct {
	entry    int
	results  []*jobpb.Result // nil if they were not asked for
	happened string
}

// eventsKept is how many events of a replica and entries of the log a report has.
const eventsKept = 30

func (r *replica) note(e event) {
	if len(r.events) == 2*eventsKept {
		r.events = slices.Delete(r.events, 0, eventsKept)
	}
	r.events = append(r.events, e)
}

func (r *replica) happened(format string, args ...any) {
	r.note(event{entry: -1, happened: fmt.Sprintf(format, args...)})
}

// replica adds a machine to the simulation.
func (s *simulation) replica(name string, o Options) *replica {
	o.limits = job.Limits{
		MaxTopics: s.model.maxTopics, MaxPushTargets: s.model.maxTargets, MaxRetained: uint64(s.model.maxRetained),
		MaxRemovedNodes: modelMaxRemoved, MaxInvitations: modelMaxInvitations,
	}
	o.bounds.dueRecent, o.bounds.dueGathered = s.dueRecent, s.dueGathered
	r := &replica{rig: newRig(s.t, o), name: name}
	s.replicas = append(s.replicas, r)
	return r
}

// reportFailure logs the last entries with the model's results, and what the replicas did.
func (s *simulation) reportFailure() {
	if !s.t.Failed() {
		return
	}
	var b strings.Builder
	reached := 0
	for _, r := range s.replicas {
		reached = max(reached, r.at)
		for _, e := range r.events {
			reached = max(reached, e.entry+1)
		}
	}
	fmt.Fprintf(&b, "%s failed in step %d.\nThe last entries, with the results of the model:\n", s.t.Name(), s.step)
	for i := max(reached-eventsKept, 0); i < reached; i++ {
		s.describeEntry(&b, i)
	}
	for _, r := range s.replicas {
		fmt.Fprintf(&b, "%s, which has %d entries:\n", r.name, r.at)
		for _, e := range r.events[max(len(r.events)-eventsKept, 0):] {
			s.describeEvent(&b, e)
		}
	}
	s.t.Log(b.String())
}

func (s *simulation) describeEntry(b *strings.Builder, i int) {
	e := s.log[i]
	if e.Configuration {
		fmt.Fprintf(b, "entry %d (index %d): a configuration\n", i, e.Index)
		return
	}
	var ops oplog.OpReader
	now, err := ops.ReadEntry(e.Data)
	require.NoError(s.t, err)
	fmt.Fprintf(b, "entry %d (index %d) at %d in epoch %d; next due is %d\n", i, e.Index, now, ops.ClockEpoch(), s.due[i])
	for _, want := range s.want[i] {
		op, err := ops.Next()
		require.NoError(s.t, err)
		fmt.Fprintf(b, "\t%v\n\t\t-> %v\n", op, want)
	}
}

func (s *simulation) describeEvent(b *strings.Builder, e event) {
	switch {
	case e.entry < 0:
		fmt.Fprintf(b, "\t%s\n", e.happened)
	case e.results == nil:
		fmt.Fprintf(b, "\tentry %d: no results\n", e.entry)
	default:
		fmt.Fprintf(b, "\tentry %d: results", e.entry)
		same := len(e.results) == len(s.want[e.entry])
		for k := 0; same && k < len(e.results); k++ {
			same = sameResult(s.want[e.entry][k], e.results[k])
		}
		if same {
			fmt.Fprint(b, " of the model\n")
			return
		}
		for _, r := range e.results {
			fmt.Fprintf(b, "\n\t\t-> %v", r)
		}
		fmt.Fprintln(b)
	}
}

// sameResult reports whether a machine's result is the model's, which has no message.
func sameResult(want, got *jobpb.Result) bool {
	if want.Code != jobpb.Code_OK {
		return want.Code == got.Code
	}
	return proto.Equal(want, got)
}

// A seed makes the same log whatever the machines go through.
func TestASeedMakesTheSameLog(t *testing.T) {
	var logs [2][]Entry
	for i := range logs {
		s := newSimulation(t, 7)
		s.step = i
		s.startTrouble()
		r := s.replica("a machine", Options{FS: vfs.NewCrashableMem()})
		for range 40 {
			s.grow()
			s.applyLog(r, 1+s.trouble.IntN(4))
			s.disturb(r)
		}
		logs[i] = s.log
	}
	require.Equal(t, logs[0], logs[1])
}
