package fsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

func opLimits(topic string, s *jobpb.TopicSettings) *jobpb.Op {
	return opSettings(&jobpb.SetTopic{Topic: topic, Settings: s})
}

func (r *rig) addMany(topic string, n int) {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = opAdd(&jobpb.Add{Topic: topic})
	}
	r.do(ops...)
}

// What only the limit on reserved jobs holds back can be had in the entry of a finish.
func TestATopicTellsWhatItsReservationsHoldBack(t *testing.T) {
	r := newRig(t, Options{FS: vfs.NewMem()})
	change := func() TopicChange {
		all := r.m.TopicChanges()
		require.Len(t, all, 1)
		return all[0]
	}
	counts := func() []uint64 { return []uint64{change().Ready, change().Held} }
	r.addMany("t", 5)
	require.Equal(t, []uint64{5, 0}, counts())
	r.do(opLimits("t", &jobpb.TopicSettings{MaxReserved: new(uint64(2))}))
	require.Equal(t, []uint64{2, 3}, counts())
	held := r.one(opReserve(2, "t")).Jobs
	require.Equal(t, []uint64{0, 3}, counts())

	ref := &jobpb.Ref{Seq: held[0].Seq, Generation: held[0].Generation}
	together := r.do(opFinish(ref), opReserve(2, "t"))
	require.Len(t, together[1].Jobs, 1, "the finish makes room for one")
	require.Equal(t, []uint64{0, 2}, counts())

	r.do(opPause("t", 1000, false))
	require.Equal(t, []uint64{0, 0}, counts(), "a pause holds it back too")
	r.now += 1000
	r.do(opAdvance(10), opLimits("t", &jobpb.TopicSettings{MaxReserved: new(uint64(2)), RateMilli: 1, Burst: 1}))
	require.Equal(t, []uint64{0, 1}, counts(), "and so does a rate")
}

// limitRun is a random run on one topic, and what it handed out.
type limitRun struct {
	*rig
	rng      *rand.Rand
	settings *jobpb.TopicSettings
	held     []*jobpb.Reserved
	out      []*handOut // since the rate was last changed
	last     uint64     // seq
	lazy     bool       // consumers come seldom, so that the bucket is often full
}

type handOut struct {
	at     int64
	unseen bool // given back undelivered
}

// In every period no more jobs are handed out than the burst and the rate allow, and never
// more are reserved than the limit. Every period from one job to another is checked.
func TestLimitsHoldInEveryWindow(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := &limitRun{rig: newRig(t, Options{FS: vfs.NewMem()}), rng: rng}
		total := 0
		for range 4 * *stepFlag {
			r.step()
			total += len(r.out)
		}
		r.judge()
		require.NotZero(t, total)
	})
}

func (r *limitRun) pick(of ...int64) int64 { return of[r.rng.IntN(len(of))] }

func (r *limitRun) step() {
	r.now += r.pick(0, 0, 0, 1, 1, 7, 50, 400, 3000)
	switch n := r.rng.IntN(100); {
	case n < 25 || r.settings == nil:
		r.last += uint64(len(r.do(opAdd(&jobpb.Add{Topic: "t", TtrMs: r.pick(5, 200, 60_000)}), opAdd(&jobpb.Add{Topic: "t", DelayMs: 30}))))
		if r.settings == nil {
			r.limit()
		}
	case n < 60:
		if r.lazy && r.rng.IntN(6) > 0 {
			return
		}
		op := opReserve(uint32(r.pick(1, 1, 3, 20)), "t")
		op.GetReserve().TtrMs = r.pick(0, 0, 30, 5000)
		r.took(r.one(op).Jobs)
	case n < 64:
		r.took(r.one(opReserveJob(bySeq(1+r.rng.Uint64N(r.last)), 0)).Jobs)
	case n < 90 && len(r.held) > 0:
		i := r.rng.IntN(len(r.held))
		j := r.held[i]
		r.held = slices.Delete(r.held, i, i+1)
		r.end(j)
	case n < 97:
		r.one(opAdvance(uint32(r.pick(1, 5, 100))))
	case n < 98:
		r.reopen()
	case n < 99:
		r.limit()
	default:
		r.now += 3_700_000
		r.one(opAdvance(1000))
	}
}

// took records what was handed out.
func (r *limitRun) took(jobs []*jobpb.Reserved) {
	for _, j := range jobs {
		r.held = append(r.held, j)
		r.out = append(r.out, &handOut{at: r.now})
		require.Equal(r.t, r.now, j.ReservedUntilMs-j.TtrMs)
	}
	if most := r.settings.MaxReserved; most != nil && len(jobs) > 0 {
		require.LessOrEqual(r.t, r.topic("t").Reserved, *most)
	}
}

// end ends a reservation, which may have expired.
func (r *limitRun) end(j *jobpb.Reserved) {
	ref := fenced(j.Seq, j.Generation)
	switch r.rng.IntN(4) {
	case 0:
		r.one(opFinish(ref))
	case 1:
		r.one(opRelease(&jobpb.Release{Ref: ref}))
	default:
		at := j.ReservedUntilMs - j.TtrMs
		res := r.one(opRelease(&jobpb.Release{Ref: ref, Undelivered: true, ReservedMs: at}))
		i := slices.IndexFunc(r.out, func(h *handOut) bool { return h.at == at && !h.unseen })
		if res.Code == jobpb.Code_OK && i >= 0 {
			r.out[i].unseen = true // any one of that instant
		}
	}
}

// limit changes the limits.
func (r *limitRun) limit() {
	r.judge()
	s := &jobpb.TopicSettings{RateMilli: uint64(r.pick(10, 500, 3000, 7001, 50_000)), Burst: uint32(r.pick(0, 1, 2, 5))}
	if r.rng.IntN(2) == 0 {
		s.MaxReserved = new(uint64(r.pick(1, 3, 10)))
	}
	require.Equal(r.t, jobpb.Code_OK, r.one(opLimits("t", s)).Code)
	r.settings, r.out, r.lazy = s, nil, r.rng.IntN(2) == 0
}

// judge checks every period since the limits changed.
func (r *limitRun) judge() {
	if r.settings == nil {
		return
	}
	limit := record.RateOf(r.settings)
	seen := slices.DeleteFunc(slices.Clone(r.out), func(h *handOut) bool { return h.unseen })
	for i := range seen {
		for k := i; k < len(seen); k++ {
			jobs, ms := int64(k-i+1), seen[k].at-seen[i].at
			if jobs*record.Token > limit.Burst+limit.PerMS*ms {
				require.Fail(r.t, "too many", "%d jobs were handed out in %d ms by %v", jobs, ms, r.settings)
			}
		}
	}
}

// A topic that always has a ready job and a consumer hands out exactly what its rate
// allows, and every Advance makes a job available.
func TestRateIsReached(t *testing.T) {
	for _, rate := range []uint64{1, 333, 1000, 7001, 50_000, 900_000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: rate, Burst: 2}))
			r.addMany("t", 1000)
			start, got := r.now, uint64(0)
			for range 50 {
				jobs := r.do(opAdvance(100), opReserve(1000, "t"))[1].Jobs
				require.NotEmpty(t, jobs)
				for _, j := range jobs {
					r.one(opFinish(bySeq(j.Seq)))
				}
				got += uint64(len(jobs))
				require.Equal(t, 2+uint64(r.now-start)*rate/1_000_000, got)
				r.now = r.m.NextDue()
			}
		})
	}
}
