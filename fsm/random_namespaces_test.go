package fsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/fsm/internal/record"
	"tarry/internal/testseed"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Whatever happens, each namespace holds the sum of its topics' jobs, which the check of the
// state counts again, and no operation makes grow what is at its quota.
func TestNamespacesHoldWhatIsCounted(t *testing.T) {
	seed := testseed.New()
	t.Logf("TEST_SEED=%d", seed)
	done := map[protoreflect.Name]bool{} // kinds of operations
	some := func() bool {                // of each kind
		return len(done) == 19 && !slices.Contains(slices.Collect(maps.Values(done)), false)
	}
	// Some seeds do not make a rare kind succeed in four rounds.
	for round := uint64(0); round < 4 || round < 40 && !some(); round++ {
		r := newRig(t, Options{bounds: bounds{windowCap: 3}})
		g := &namespaceOps{rng: rand.New(rand.NewPCG(seed, round))}
		for range 150 {
			before, op := r.allHeld(), g.next(r)
			res := r.one(op)
			g.held = append(g.held, res.Jobs...)
			done[oplog.KindOf(op)] = done[oplog.KindOf(op)] || res.Code == jobpb.Code_OK
			for name, now := range r.allHeld() {
				was, known := before[name]
				if known && res.Code == jobpb.Code_OK && op.GetPutNamespace() == nil {
					requireWithin(t, r.m.tx.namespaceNamed(name).Def, was, now, op)
				}
			}
			r.check()
			if g.rng.IntN(30) == 0 {
				r.reopen()
			}
		}
	}
	require.Len(t, done, 19)
	for kind, ok := range done {
		require.True(t, ok, "no %s was done", kind)
	}
}

// requireWithin fails if what a namespace holds grew beyond a quota.
func requireWithin(t *testing.T, def *jobpb.Namespace, was, now record.Usage, op *jobpb.Op) {
	t.Helper()
	q := def.Quotas
	for _, one := range []struct {
		limit    *uint64
		was, now uint64
	}{{q.Jobs, was.Jobs, now.Jobs}, {q.Bytes, was.Bytes, now.Bytes}, {q.Topics, was.Topics, now.Topics}} {
		if one.limit != nil && one.now > one.was {
			require.LessOrEqual(t, one.now, *one.limit, "%v: %+v, then %+v after %v", def, was, now, op)
		}
	}
}

func (r *rig) allHeld() map[string]record.Usage {
	v := r.m.View()
	defer v.Close()
	list, err := v.Namespaces()
	require.NoError(r.t, err)
	all := make(map[string]record.Usage)
	for _, n := range list {
		all[n.Namespace.Name] = record.Usage{Jobs: n.Jobs, Bytes: n.Bytes, Topics: n.Topics}
	}
	return all
}

// namespaceOps makes operations at random, on few topics of two namespaces and of none.
type namespaceOps struct {
	rng  *rand.Rand
	held []*jobpb.Reserved // which may have ended
}

func (g *namespaceOps) topic() string {
	return []string{"a.x", "a.y", "a.z", "b.x", "b.y", "c"}[g.rng.IntN(6)]
}

func (g *namespaceOps) quota(most uint64) *uint64 {
	if g.rng.IntN(3) == 0 {
		return nil
	}
	return new(g.rng.Uint64N(most))
}

func (g *namespaceOps) add() *jobpb.Add {
	a := &jobpb.Add{Topic: g.topic(), Body: make([]byte, g.rng.IntN(20)), MaxAttempts: 2, DelayMs: int64(g.rng.IntN(3)) * 100}
	if g.rng.IntN(2) == 0 {
		a.Id = fmt.Sprintf("id-%d", g.rng.IntN(8))
		a.IfExists = jobpb.IfExists(g.rng.IntN(5))
	}
	return a
}

// lease names one of the jobs that may still be reserved, mostly.
func (g *namespaceOps) lease(r *rig) *jobpb.Ref {
	if n := len(g.held); n > 0 && g.rng.IntN(4) > 0 {
		j := g.held[n-1]
		g.held = g.held[:n-1]
		return &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}
	}
	return g.ref(r)
}

// ref names one of the jobs that there may be.
func (g *namespaceOps) ref(r *rig) *jobpb.Ref {
	return bySeq(1 + g.rng.Uint64N(r.m.meta.State.NextSeq))
}

func (g *namespaceOps) next(r *rig) *jobpb.Op {
	r.now += int64(g.rng.IntN(60))
	switch g.rng.IntN(23) {
	case 0:
		prefix := []string{"a.", "b.", "a.x", "c", "z"}[g.rng.IntN(5)]
		return opPutNamespace(&jobpb.Namespace{Name: []string{"n", "m"}[g.rng.IntN(2)], TopicPrefix: prefix,
			Quotas: &jobpb.Quotas{Jobs: g.quota(8), Bytes: g.quota(80), Topics: g.quota(4)}})
	case 1:
		return opDeleteNamespace([]string{"n", "m"}[g.rng.IntN(2)])
	case 2:
		return opReserve(3, g.topic(), "a.x", "b.x")
	case 3:
		return opFinish(g.lease(r))
	case 4:
		return opBury(&jobpb.Bury{Ref: g.lease(r)})
	case 5:
		adds := []*jobpb.Add{{Topic: g.topic(), Body: make([]byte, g.rng.IntN(9))}, {Topic: g.topic()}}
		op := &jobpb.AtomicAdd{Adds: withTTR(adds)}
		if g.rng.IntN(2) == 0 {
			op.Finish = &jobpb.Finish{Ref: g.lease(r)}
		}
		return opAtomicAdd(op)
	case 6:
		return opUpdate(&jobpb.Update{Ref: g.ref(r), Body: make([]byte, g.rng.IntN(30))})
	case 7:
		return opMove(&jobpb.MoveJobs{Ref: g.ref(r), To: g.topic()})
	case 8:
		return opMove(&jobpb.MoveJobs{Topic: g.topic(), To: "a.y", Max: uint32(1 + g.rng.IntN(3))})
	case 9:
		return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: g.ref(r), ToTopic: g.topic()}}}
	case 10:
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: g.topic(), Max: 5, ToTopic: "b.y", Sweep: &jobpb.Sweep{Scan: 10}}}}
	case 11:
		return opRetain(g.topic(), int64(g.rng.IntN(2))*2000)
	case 12:
		if g.rng.IntN(4) == 0 {
			r.now += 2 * hourMS // topics without jobs are dropped
		}
		return opAdvance(uint32(1 + g.rng.IntN(20)))
	case 13:
		return opPause(g.topic(), 5, true)
	case 14:
		return opDelete(g.ref(r))
	case 15:
		return opRelease(&jobpb.Release{Ref: g.lease(r), DelayMs: int64(g.rng.IntN(100))})
	case 16:
		return opPurge(&jobpb.Purge{Topic: g.topic(), State: jobpb.State(1 + g.rng.IntN(4)), Max: 3, Sweep: &jobpb.Sweep{Scan: 10}})
	case 17:
		return g.schedule(r)
	}
	return opAdd(g.add())
}

// schedule makes a schedule, runs it now, or fires a run that was planned.
func (g *namespaceOps) schedule(r *rig) *jobpb.Op {
	name := []string{"s1", "s2"}[g.rng.IntN(2)]
	switch {
	case r.schedule(name) == nil || g.rng.IntN(4) == 0:
		s := everySchedule(strings.Repeat("x", g.rng.IntN(30)))
		s.Job.Topic = g.topic()
		return opPut(name, s)
	case g.rng.IntN(2) == 0:
		return opFire(&jobpb.FireSchedule{Name: name, Now: true, Runs: []*jobpb.ScheduledRun{{}}})
	}
	return r.fire(name, r.now+1000, r.now-1000)
}
