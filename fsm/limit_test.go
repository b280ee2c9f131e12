package fsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

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

// change is how the machine tells a leader that a topic stands.
func (r *rig) change(topic string) TopicChange {
	r.t.Helper()
	all := r.m.TopicChanges()
	i := slices.IndexFunc(all, func(c TopicChange) bool { return c.Name == topic })
	require.GreaterOrEqual(r.t, i, 0)
	return all[i]
}

func TestNoMoreJobsAreReservedAtOnceThanTheLimit(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{MaxReserved: new(uint64(2))}))
	r.addMany("t", 6)
	r.one(opAdd(&jobpb.Add{Topic: "u", Priority: 5}))
	require.EqualValues(t, 2, r.change("t").Ready)
	got := r.one(opReserve(5, "t", "u")).Jobs
	require.Len(t, got, 3, "another topic goes on")
	require.Equal(t, "u", got[2].Topic)
	require.Empty(t, r.one(opReserve(5, "t")).Jobs)
	require.Equal(t, TopicChange{Name: "t", NextDue: r.now + 60_000}, r.change("t"), "the end of a reservation makes room")
	r.reopen()
	require.Equal(t, TopicChange{Name: "t", NextDue: r.now + 60_000}, r.change("t"))

	named := r.one(opReserveJob(bySeq(5), 0))
	require.Equal(t, jobpb.Code_TOPIC_LIMITED, named.Code)
	require.Equal(t, `topic "t" has 2 reserved jobs; its limit, max_reserved, is 2`, named.Message)

	// Each way in which a reservation ends gives its place to the next.
	ends := []*jobpb.Op{
		opFinish(fenced(got[0].Seq, got[0].Generation)),
		opRelease(&jobpb.Release{Ref: bySeq(got[1].Seq), DelayMs: 1000}),
	}
	for _, end := range ends {
		rs := r.do(end, opReserve(5, "t"))
		require.Len(t, rs[1].Jobs, 1)
	}
	rs := r.do(opBury(&jobpb.Bury{Ref: bySeq(3)}), opReserve(5, "t"))
	require.Len(t, rs[1].Jobs, 1)
	rs = r.do(opDelete(bySeq(4)), opReserve(5, "t"))
	require.Len(t, rs[1].Jobs, 1)
	r.now += 60_000
	rs = r.do(opAdvance(100), opReserve(5, "t"))
	require.EqualValues(t, 4, rs[0].Count, "three reservations end and a delayed job is due")
	require.Len(t, rs[1].Jobs, 2)
}

func TestLimitOnReservedJobsIsChangedLive(t *testing.T) {
	r := newRig(t, Options{})
	r.addMany("t", 6)
	require.Len(t, r.one(opReserve(3, "t")).Jobs, 3)
	r.one(opLimits("t", &jobpb.TopicSettings{MaxReserved: new(uint64(2))}))
	require.EqualValues(t, 3, r.topic("t").Reserved, "what is reserved stays so")
	require.Empty(t, r.do(opFinish(bySeq(1)), opReserve(1, "t"))[1].Jobs)
	require.Len(t, r.do(opFinish(bySeq(2)), opReserve(5, "t"))[1].Jobs, 1)
	r.one(opLimits("t", &jobpb.TopicSettings{MaxReserved: new(uint64(3))}))
	require.EqualValues(t, 1, r.change("t").Ready)
	r.one(opLimits("t", nil))
	require.Len(t, r.one(opReserve(5, "t")).Jobs, 2)
}

func TestRateHandsOutABurstAndThenOneByOne(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 3000, Burst: 2}))
	r.addMany("t", 20)
	require.Equal(t, TopicChange{Name: "t", Ready: 2}, r.change("t"))
	require.Len(t, r.one(opReserve(5, "t")).Jobs, 2)
	start := r.now
	require.Equal(t, TopicChange{Name: "t", NextDue: start + 334}, r.change("t"), "a third of a second, rounded up")
	require.Equal(t, start+334, r.m.NextDue())
	r.reopen()
	require.Equal(t, start+334, r.m.NextDue())

	r.now = start + 333
	require.Empty(t, r.do(opAdvance(10), opReserve(5, "t"))[1].Jobs)
	named := r.one(opReserveJob(bySeq(9), 0))
	require.Equal(t, `topic "t" has handed out all that its rate of 3 jobs a second allows for now`, named.Message)
	r.now = start + 334
	rs := r.do(opAdvance(10), opReserve(5, "t"))
	require.Zero(t, rs[0].Count, "a token is no job")
	require.Len(t, rs[1].Jobs, 1)

	// Nothing is lost by rounding: the thirtieth of all is there after 9,334 ms.
	for range 8 {
		require.NotZero(t, r.m.NextDue())
		r.now = r.m.NextDue()
		rs := r.do(opAdvance(10), opReserve(5, "t"))
		require.Len(t, rs[1].Jobs, 1)
	}
	require.Equal(t, start+3000, r.now, "nine tokens take three seconds")
}

func TestRateWaitsForNobody(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1000, Burst: 1}))
	r.addMany("t", 1)
	require.Len(t, r.one(opReserve(1, "t")).Jobs, 1)
	require.Equal(t, r.now+60_000, r.m.NextDue(), "without a ready job no Advance is needed for a token")
	r.addMany("t", 2)
	require.Equal(t, r.now+1000, r.m.NextDue())
	r.now += 1000
	require.False(t, r.one(opAdvance(10)).More)
	require.EqualValues(t, 1, r.change("t").Ready)
	require.Greater(t, r.m.NextDue(), r.now+1000, "and none while nobody takes the job")
}

func TestAJobThatCameBackUnseenGivesItsTokenBack(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 100, Burst: 1})) // one in ten seconds
	r.addMany("t", 9)
	r.now++
	back := func(j *jobpb.Reserved, handedOut int64) *jobpb.Op {
		return opRelease(&jobpb.Release{Ref: fenced(j.Seq, j.Generation), Undelivered: true, ReservedMs: handedOut})
	}
	j := r.one(opReserve(1, "t")).Jobs[0]
	rs := r.do(back(j, j.ReservedUntilMs-j.TtrMs), opReserve(5, "t"))
	require.Len(t, rs[1].Jobs, 1, "at once, as if nothing had been handed out")

	// What came in meanwhile is taken off.
	start := r.now
	r.now += 4000
	rs = r.do(back(rs[1].Jobs[0], start), opReserve(5, "t"))
	require.Len(t, rs[1].Jobs, 1, "6 s worth and 4 s worth are one job")
	r.now += 20_000
	j, start = rs[1].Jobs[0], r.now
	rs = r.do(opReserve(5, "t"), back(j, start-20_000), opReserve(5, "t"))
	require.Len(t, rs[0].Jobs, 1)
	require.Empty(t, rs[2].Jobs, "a full bucket would have lost it")
	require.Empty(t, r.do(back(rs[0].Jobs[0], r.now+1), opReserve(5, "t"))[1].Jobs, "in the future")

	// Of two tokens one is out for 9 s; a full bucket would have lost nine tenths.
	r.one(opLimits("t", nil))
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 100, Burst: 2}))
	r.now++
	j, start = r.one(opReserve(1, "t")).Jobs[0], r.now
	r.now += 9000
	rs = r.do(opReserve(1, "t"), back(j, start), opReserve(5, "t"))
	require.Len(t, rs[0].Jobs, 1)
	require.Len(t, rs[2].Jobs, 1)
	require.Equal(t, r.now+10_000, r.change("t").NextDue)
}

// Of the jobs that went out in the millisecond of the change nobody can tell which
// went by the old rate.
func TestAJobOfTheOldRatePaysNothingBackIntoTheNew(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 100, Burst: 5}))
	r.addMany("t", 9)
	r.now++
	old := r.one(opReserve(1, "t")).Jobs[0]
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 100, Burst: 1}))
	require.Len(t, r.one(opReserve(5, "t")).Jobs, 1)
	back := opRelease(&jobpb.Release{Ref: fenced(old.Seq, old.Generation), Undelivered: true, ReservedMs: r.now})
	require.Empty(t, r.do(back, opReserve(5, "t"))[1].Jobs, "the burst is one")
}

func TestRateIsChangedLive(t *testing.T) {
	r := newRig(t, Options{})
	r.addMany("t", 100)
	j := r.one(opReserve(1, "t")).Jobs[0]
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 10_000, Burst: 5}))
	require.Len(t, r.one(opReserve(50, "t")).Jobs, 5, "it starts with a burst")
	back := opRelease(&jobpb.Release{Ref: bySeq(j.Seq), Undelivered: true, ReservedMs: r.now - 1})
	require.Empty(t, r.do(back, opReserve(50, "t"))[1].Jobs, "what was handed out before has paid nothing")
	r.now += 250 // two and a half
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1000, Burst: 9, MaxPending: new(uint64(1))}))
	require.Len(t, r.one(opReserve(50, "t")).Jobs, 2, "the tokens stay")
	r.now += 500
	require.Len(t, r.one(opReserve(50, "t")).Jobs, 1, "half of one was left")
	r.now += 9000
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1000, Burst: 9}))
	require.EqualValues(t, 9, r.change("t").Ready, "another setting does not touch them")
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1000, Burst: 3}))
	require.Len(t, r.one(opReserve(50, "t")).Jobs, 3, "but no more than the new burst")
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 2500}))
	r.now += 5000
	require.Len(t, r.one(opReserve(50, "t")).Jobs, 3, "without a burst, it is what a second brings, rounded up")
	r.one(opLimits("t", nil))
	require.Len(t, r.one(opReserve(1000, "t")).Jobs, 100-5-2-1-3-3)
}

func TestATopicKeepsItsRateWhileItHasNoJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1, Burst: 10}))
	r.addMany("t", 10)
	for _, j := range r.one(opReserve(10, "t")).Jobs {
		r.one(opFinish(bySeq(j.Seq)))
	}
	require.Equal(t, r.now+10_000_000, r.m.NextDue(), "it is kept until a new one would have as many tokens")
	r.now += 2 * hourMS
	r.one(opAdvance(10))
	r.addMany("t", 10)
	require.Len(t, r.one(opReserve(10, "t")).Jobs, 7)
}

func TestAPauseAndTheLimitsHoldTogether(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opLimits("t", &jobpb.TopicSettings{RateMilli: 1000, Burst: 1, MaxReserved: new(uint64(1))}))
	r.addMany("t", 3)
	r.one(opReserve(1, "t"))
	require.Equal(t, r.now+60_000, r.change("t").NextDue, "a token alone helps nobody")
	require.Equal(t, r.now+60_000, r.m.NextDue())
	r.one(opFinish(bySeq(1)))
	r.one(opPause("t", 5000, false))
	require.Equal(t, TopicChange{Name: "t", NextDue: r.now + 5000}, r.change("t"))
	require.Equal(t, r.now+5000, r.m.NextDue())
	r.now += 5000
	require.Len(t, r.do(opAdvance(1), opReserve(5, "t"))[1].Jobs, 1)
}

// limitRun is a random life of one topic and what came out of it.
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

// However a topic lives: in every stretch of time there are no more jobs handed
// out than the burst and what the rate gives, and never more reserved than the
// limit. Every stretch from one job to another is looked at.
func TestLimitsHoldInEveryWindow(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
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

// took notes what was handed out.
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

// end ends a reservation that may be over.
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
			r.out[i].unseen = true // which of one instant makes no difference
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

// judge looks at every window of the present limits.
func (r *limitRun) judge() {
	if r.settings == nil {
		return
	}
	limit := rateOf(r.settings)
	seen := slices.DeleteFunc(slices.Clone(r.out), func(h *handOut) bool { return h.unseen })
	for i := range seen {
		for k := i; k < len(seen); k++ {
			jobs, ms := int64(k-i+1), seen[k].at-seen[i].at
			if jobs*token > limit.burst+limit.perMS*ms {
				require.Fail(r.t, "too many", "%d jobs were handed out in %d ms by %v", jobs, ms, r.settings)
			}
		}
	}
}

// A topic that always has a ready job and a consumer hands out exactly what its
// rate gives: the limit is not too tight either, and no Advance is for nothing.
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
