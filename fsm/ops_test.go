package fsm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

const (
	hourMS = int64(3_600_000)
)

func TestAddRefusesWhatIsOutOfRange(t *testing.T) {
	good := func(change func(a *jobpb.Add)) *jobpb.Add {
		a := &jobpb.Add{Topic: "t", TtrMs: 1}
		change(a)
		return a
	}
	cases := []struct {
		name string
		add  *jobpb.Add
		says string // "": it is accepted
	}{
		{"longest delay", good(func(a *jobpb.Add) { a.DelayMs = maxDelayMS }), ""},
		{"delay too long", good(func(a *jobpb.Add) { a.DelayMs = maxDelayMS + 1 }), "delay_ms is 1000000000001"},
		{"delay negative", good(func(a *jobpb.Add) { a.DelayMs = -1 }), "delay_ms is -1"},
		{"latest due instant", good(func(a *jobpb.Add) { a.DueMs = rigStart + maxDelayMS }), ""},
		{"due too late", good(func(a *jobpb.Add) { a.DueMs = rigStart + maxDelayMS + 1 }), "due_ms is 1000000000001 ms ahead"},
		{"due negative", good(func(a *jobpb.Add) { a.DueMs = -1 }), "due_ms is -1"},
		{"delay ignored beside due", good(func(a *jobpb.Add) { a.DueMs, a.DelayMs = 1, -1 }), ""},
		{"no time to run", good(func(a *jobpb.Add) { a.TtrMs = 0 }), "ttr_ms is 0"},
		{"longest time to run", good(func(a *jobpb.Add) { a.TtrMs = maxTTRMS }), ""},
		{"time to run too long", good(func(a *jobpb.Add) { a.TtrMs = maxTTRMS + 1 }), "ttr_ms is"},
		{"no topic", good(func(a *jobpb.Add) { a.Topic = "" }), "topic is missing"},
		{"topic too long", good(func(a *jobpb.Add) { a.Topic = strings.Repeat("x", 201) }), "topic has 201 bytes"},
		{"id of the server's", good(func(a *jobpb.Add) { a.Id = "$0-1" }), "kept for ids made by the server"},
		{"longest id", good(func(a *jobpb.Add) { a.Id = strings.Repeat("x", 200) }), ""},
		{"id too long", good(func(a *jobpb.Add) { a.Id = strings.Repeat("x", 201) }), "id has 201 bytes"},
		{"body too large", good(func(a *jobpb.Add) { a.Body = make([]byte, job.HardMaxBodyBytes+1) }), "body has 4194305 bytes"},
		{"any priority", good(func(a *jobpb.Add) { a.Priority = 1<<32 - 1 }), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			res := r.one(&jobpb.Op{Kind: &jobpb.Op_Add{Add: c.add}})
			if c.says == "" {
				require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
				require.NotNil(t, r.job(res.Seq))
				return
			}
			require.Equal(t, jobpb.Code_INVALID, res.Code)
			require.Contains(t, res.Message, c.says)
			require.Empty(t, r.m.TopicChanges(), "nothing is left behind")
		})
	}
}

func TestAddDecidesWhenTheJobIsDue(t *testing.T) {
	cases := []struct {
		name       string
		delay, due int64
		wantDue    int64
		wantState  jobpb.State
		wantDelay  int64
	}{
		{"at once", 0, 0, rigStart, jobpb.State_STATE_READY, 0},
		{"after a delay", 5, 0, rigStart + 5, jobpb.State_STATE_DELAYED, 5},
		{"at an instant", 0, rigStart + 7, rigStart + 7, jobpb.State_STATE_DELAYED, 7},
		{"an instant in the past is now", 0, 1, rigStart, jobpb.State_STATE_READY, 0},
		{"an instant beats a delay", 99, rigStart + 7, rigStart + 7, jobpb.State_STATE_DELAYED, 7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			res := r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: c.delay, DueMs: c.due}))
			require.Equal(t, c.wantDue, res.DueMs)
			require.Equal(t, c.wantState, res.State)
			j := r.job(res.Seq)
			require.Equal(t, c.wantState, j.State)
			require.Equal(t, c.wantDelay, j.DelayMs)
		})
	}
}

func TestAddTwiceMakesOneJob(t *testing.T) {
	base := func() *jobpb.Add {
		return &jobpb.Add{Id: "order-1", Topic: "t", Body: []byte("b"), Priority: 3, DelayMs: 50, TtrMs: 1000, MaxAttempts: 4}
	}
	conflicts := map[string]func(*jobpb.Add){
		"topic":                func(a *jobpb.Add) { a.Topic = "u" },
		"body":                 func(a *jobpb.Add) { a.Body = []byte("c") },
		"priority":             func(a *jobpb.Add) { a.Priority = 4 },
		"ttr":                  func(a *jobpb.Add) { a.TtrMs = 1001 },
		"max_attempts":         func(a *jobpb.Add) { a.MaxAttempts = 5 },
		"delay or due instant": func(a *jobpb.Add) { a.DueMs = rigStart + 50 },
	}
	r := newRig(t, Options{})
	first := r.one(opAdd(base()))
	r.now += 10
	again := r.one(opAdd(base()))
	require.True(t, again.Existing)
	require.Equal(t, first.Seq, again.Seq)
	require.Equal(t, rigStart+int64(50), again.DueMs, "the delay counts from the first add")
	for field, change := range conflicts {
		a := base()
		change(a)
		res := r.one(opAdd(a))
		require.Equal(t, jobpb.Code_ID_CONFLICT, res.Code)
		require.Contains(t, res.Message, "another "+field)
	}
	kind := base()
	kind.BodyKind = jobpb.BodyKind_BODY_JSON
	require.Equal(t, jobpb.Code_ID_CONFLICT, r.one(opAdd(kind)).Code)

	// The current state is told, and a changed priority is no conflict.
	r.now += 100
	r.do(opAdvance(1), opReserve(1, "t"), opRelease(&jobpb.Release{Ref: byID("order-1"), SetPriority: true, Priority: 9}))
	again = r.one(opAdd(base()))
	require.True(t, again.Existing)
	require.Equal(t, jobpb.State_STATE_READY, again.State)
	require.EqualValues(t, 1, r.topic("t").Added)

	// Once it is gone the id is free.
	r.do(opReserve(1, "t"), opFinish(byID("order-1")))
	renewed := r.one(opAdd(base()))
	require.False(t, renewed.Existing)
	require.Greater(t, renewed.Seq, first.Seq)
}

func TestAddTwiceWithinOneEntry(t *testing.T) {
	r := newRig(t, Options{})
	a := func() *jobpb.Op { return opAdd(&jobpb.Add{Id: "x", Topic: "t", Body: []byte("b")}) }
	res := r.do(a(), a(), opDelete(byID("x")), a())
	require.False(t, res[0].Existing)
	require.True(t, res[1].Existing)
	require.Equal(t, res[0].Seq, res[1].Seq)
	require.False(t, res[3].Existing)
	require.Greater(t, res[3].Seq, res[0].Seq)
}

func TestTopicsAreLimited(t *testing.T) {
	r := newRig(t, Options{maxTopics: 2})
	r.do(opAdd(&jobpb.Add{Topic: "a"}), opAdd(&jobpb.Add{Topic: "b"}))
	res := r.one(opAdd(&jobpb.Add{Topic: "c"}))
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, res.Code)
	require.Contains(t, res.Message, "2 topics")
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Topic: "a"})).Code)
}

func TestTopicIsDroppedAfterAnHourWithoutJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opReserve(1, "t"), opFinish(byID("x")))
	require.EqualValues(t, 1, r.topic("t").Finished, "the totals stay for a while")
	require.Equal(t, rigStart+hourMS, r.m.NextDue())

	r.now += hourMS - 1
	require.False(t, r.one(opAdvance(10)).More)
	require.Len(t, r.m.TopicChanges(), 1)

	// A job in between starts the hour again.
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "y"}), opDelete(byID("y")))
	r.now += 2
	r.one(opAdvance(10))
	require.Len(t, r.m.TopicChanges(), 1)

	r.now += hourMS
	res := r.one(opAdvance(10))
	require.Zero(t, res.Count, "a topic is no job")
	require.Empty(t, r.m.TopicChanges())
	require.Zero(t, r.topic("t").Finished)
	require.Zero(t, r.m.NextDue())

	// The same name can come back, in the entry of its end too.
	res = r.one(opAdd(&jobpb.Add{Topic: "t"}))
	require.Equal(t, jobpb.Code_OK, res.Code)
	r.reopen()
	require.EqualValues(t, 1, r.topic("t").Ready)
}

func TestTopicMadeAgainInTheEntryThatDropsIt(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opDelete(byID("x")))
	r.now += hourMS
	r.do(opAdvance(1), opAdd(&jobpb.Add{Topic: "t"}))
	require.EqualValues(t, 1, r.topic("t").Added)
	require.Equal(t, []TopicChange{{Name: "t", Ready: 1}}, r.m.TopicChanges())
}

func TestReserveTakesTheBestOverAllTopics(t *testing.T) {
	r := newRig(t, Options{})
	add := func(id, topic string, priority uint32) {
		r.one(opAdd(&jobpb.Add{Id: id, Topic: topic, Priority: priority}))
		r.now++
	}
	add("a5", "a", 5)
	add("b5", "b", 5)
	add("a5later", "a", 5)
	add("b1", "b", 1)
	add("c0", "c", 0)
	res := r.one(opReserve(10, "a", "b", "a", "nowhere"))
	var got []string
	for _, j := range res.Jobs {
		got = append(got, j.Id)
	}
	require.Equal(t, []string{"b1", "a5", "b5", "a5later"}, got)
	require.Empty(t, r.one(opReserve(1, "a", "b")).Jobs)
}

func TestReserveKeepsToItsLimits(t *testing.T) {
	many := make([]string, job.MaxReserveTopics+1)
	for i := range many {
		many[i] = "t"
	}
	cases := []struct {
		name string
		op   *jobpb.Reserve
		want int    // jobs
		says string // "": accepted
	}{
		{"some", &jobpb.Reserve{Topics: []string{"t"}, Max: 2}, 2, ""},
		{"no topic", &jobpb.Reserve{Max: 1}, 0, "topics has 0 names"},
		{"too many topics", &jobpb.Reserve{Topics: many, Max: 1}, 0, "topics has 1001 names"},
		{"none", &jobpb.Reserve{Topics: []string{"t"}}, 0, "max is 0"},
		{"too many", &jobpb.Reserve{Topics: []string{"t"}, Max: 1001}, 0, "max is 1001"},
		{"negative time to run", &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: -1}, 0, "ttr_ms is -1"},
		{"negative bytes", &jobpb.Reserve{Topics: []string{"t"}, Max: 1, MaxBytes: -1}, 0, "max_bytes is -1"},
		{"bytes for two", &jobpb.Reserve{Topics: []string{"t"}, Max: 5, MaxBytes: 29}, 2, ""},
		{"bytes for exactly three", &jobpb.Reserve{Topics: []string{"t"}, Max: 5, MaxBytes: 30}, 3, ""},
		{"at least one whatever its size", &jobpb.Reserve{Topics: []string{"t"}, Max: 5, MaxBytes: 1}, 1, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			for range 5 {
				r.one(opAdd(&jobpb.Add{Topic: "t", Body: []byte("0123456789")}))
			}
			res := r.one(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: c.op}})
			require.Len(t, res.Jobs, c.want)
			require.EqualValues(t, c.want, r.topic("t").Reserved)
			if c.says != "" {
				require.Equal(t, jobpb.Code_INVALID, res.Code)
			}
			require.Contains(t, res.Message, c.says)
		})
	}
}

func TestRepliesOwnTheirBodies(t *testing.T) {
	r := newRig(t, Options{})
	data := encodeEntry(t, r.now, opAdd(&jobpb.Add{Topic: "t", Body: []byte("body")}), opReserve(1, "t"))
	r.index = 1
	results, _, err := r.m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, true)
	require.NoError(t, err)
	clear(data)
	require.Equal(t, "body", string(results[0][1].Jobs[0].Body))
}

func TestJobsAreNamedByIDOrSeqOrBoth(t *testing.T) {
	cases := []struct {
		name string
		ref  *jobpb.Ref
		want jobpb.Code
	}{
		{"own id", &jobpb.Ref{Id: "own"}, jobpb.Code_OK},
		{"seq of a job with an id", &jobpb.Ref{Seq: 1}, jobpb.Code_OK},
		{"both", &jobpb.Ref{Id: "own", Seq: 1}, jobpb.Code_OK},
		{"both, not agreeing", &jobpb.Ref{Id: "own", Seq: 2}, jobpb.Code_NOT_FOUND},
		{"server id", &jobpb.Ref{Id: "$7-2"}, jobpb.Code_OK},
		{"server id and seq", &jobpb.Ref{Id: "$7-2", Seq: 2}, jobpb.Code_OK},
		{"server id of another shard", &jobpb.Ref{Id: "$8-2"}, jobpb.Code_NOT_FOUND},
		{"server id of a job with an id", &jobpb.Ref{Id: "$7-1"}, jobpb.Code_NOT_FOUND},
		{"server id in another form", &jobpb.Ref{Id: "$7-02"}, jobpb.Code_NOT_FOUND},
		{"unknown id", &jobpb.Ref{Id: "other"}, jobpb.Code_NOT_FOUND},
		{"unknown seq", &jobpb.Ref{Seq: 99}, jobpb.Code_NOT_FOUND},
		{"nothing", &jobpb.Ref{}, jobpb.Code_INVALID},
		{"no reference at all", nil, jobpb.Code_INVALID},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{Shard: 7})
			r.do(opAdd(&jobpb.Add{Id: "own", Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}))
			require.Equal(t, c.want, r.one(opDelete(c.ref)).Code)
			v := r.m.View()
			defer v.Close()
			if c.ref.GetId() != "" && c.ref.GetSeq() == 0 {
				_, found, err := v.Job(c.ref.Id)
				require.NoError(t, err)
				require.False(t, found, "deleted, or never there")
			}
		})
	}
}

func TestFenceStopsAConsumerThatLostItsReservation(t *testing.T) {
	ops := map[string]func(ref *jobpb.Ref) *jobpb.Op{
		"finish":  opFinish,
		"delete":  opDelete,
		"release": func(ref *jobpb.Ref) *jobpb.Op { return opRelease(&jobpb.Release{Ref: ref}) },
		"touch":   func(ref *jobpb.Ref) *jobpb.Op { return opTouch(ref, 0) },
		"bury":    func(ref *jobpb.Ref) *jobpb.Op { return opBury(&jobpb.Bury{Ref: ref}) },
		"kick":    opKick,
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{LateFinish: jobpb.LateFinish_LATE_FINISH_REFUSE}}))
			r.do(opAdd(&jobpb.Add{Topic: "t", TtrMs: 10}), opReserve(1, "t"))
			r.now += 10
			require.EqualValues(t, 1, r.one(opAdvance(5)).Count)
			require.Equal(t, jobpb.Code_STALE_TOKEN, r.one(op(fenced(1, 1))).Code, "no longer reserved")
			require.EqualValues(t, 2, r.one(opReserve(1, "t")).Jobs[0].Generation)
			before := r.digest()
			require.Equal(t, jobpb.Code_STALE_TOKEN, r.one(op(fenced(1, 1))).Code, "reserved by another")
			require.Equal(t, before, r.digest())
			want := jobpb.Code_OK
			if name == "kick" {
				want = jobpb.Code_NOT_KICKABLE
			}
			require.Equal(t, want, r.one(op(fenced(1, 2))).Code)
		})
	}
}

func TestOperationsNeedTheRightState(t *testing.T) {
	// Jobs 1 delayed, 2 ready, 3 reserved, 4 dead.
	ops := []struct {
		name string
		op   func(seq uint64) *jobpb.Op
		want [4]jobpb.Code
	}{
		{"finish", func(s uint64) *jobpb.Op { return opFinish(bySeq(s)) },
			[4]jobpb.Code{jobpb.Code_NOT_RESERVED, jobpb.Code_NOT_RESERVED, jobpb.Code_OK, jobpb.Code_NOT_RESERVED}},
		{"release", func(s uint64) *jobpb.Op { return opRelease(&jobpb.Release{Ref: bySeq(s)}) },
			[4]jobpb.Code{jobpb.Code_NOT_RESERVED, jobpb.Code_NOT_RESERVED, jobpb.Code_OK, jobpb.Code_NOT_RESERVED}},
		{"touch", func(s uint64) *jobpb.Op { return opTouch(bySeq(s), 0) },
			[4]jobpb.Code{jobpb.Code_NOT_RESERVED, jobpb.Code_NOT_RESERVED, jobpb.Code_OK, jobpb.Code_NOT_RESERVED}},
		{"bury", func(s uint64) *jobpb.Op { return opBury(&jobpb.Bury{Ref: bySeq(s)}) },
			[4]jobpb.Code{jobpb.Code_NOT_RESERVED, jobpb.Code_NOT_RESERVED, jobpb.Code_OK, jobpb.Code_NOT_RESERVED}},
		{"kick", func(s uint64) *jobpb.Op { return opKick(bySeq(s)) },
			[4]jobpb.Code{jobpb.Code_OK, jobpb.Code_NOT_KICKABLE, jobpb.Code_NOT_KICKABLE, jobpb.Code_OK}},
		{"delete", func(s uint64) *jobpb.Op { return opDelete(bySeq(s)) },
			[4]jobpb.Code{}},
	}
	for _, c := range ops {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: 50}),
				opAdd(&jobpb.Add{Topic: "t", Priority: 9}),
				opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}),
				opReserve(2, "t"), opBury(&jobpb.Bury{Ref: bySeq(4)}))
			for i, want := range c.want {
				require.Equal(t, want, r.one(c.op(uint64(i+1))).Code, "job %d", i+1)
				r.check()
			}
		})
	}
}

func TestKickOfAJobThatIsDueButNotYetMoved(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: 50}))
	r.now += 60
	r.one(opSetCluster("c")) // the clock moves, nothing is advanced
	require.Equal(t, jobpb.State_STATE_DELAYED, r.job(1).State)
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	res := r.one(opKick(bySeq(1)))
	require.Equal(t, jobpb.State_STATE_READY, res.State)
	require.Equal(t, r.now, res.DueMs)
	require.Zero(t, r.one(opAdvance(5)).Count)
}

func TestReleaseWithoutDelayKeepsThePlace(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	r.now++
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	r.one(opReserve(1, "t"))
	r.now += 5
	res := r.one(opRelease(&jobpb.Release{Ref: fenced(1, 1), Reason: "busy"}))
	require.Equal(t, jobpb.State_STATE_READY, res.State)
	require.EqualValues(t, rigStart, res.DueMs)
	require.EqualValues(t, 1, r.one(opReserve(1, "t")).Jobs[0].Seq)
	require.Equal(t, "busy", r.job(1).Reason)
}

func TestReleaseWithDelayWaits(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"))
	res := r.one(opRelease(&jobpb.Release{Ref: bySeq(1), DelayMs: 30, SetPriority: true, Priority: 7}))
	require.Equal(t, jobpb.State_STATE_DELAYED, res.State)
	require.Equal(t, rigStart+int64(30), res.DueMs)
	require.Equal(t, rigStart+int64(30), r.m.NextDue())
	j := r.job(1)
	require.EqualValues(t, 7, j.Priority)
	require.EqualValues(t, 30, j.DelayMs)
	require.EqualValues(t, 1, j.Releases)

	for _, bad := range []int64{-1, maxDelayMS + 1} {
		require.Equal(t, jobpb.Code_INVALID, r.one(opRelease(&jobpb.Release{Ref: bySeq(1), DelayMs: bad})).Code)
	}
	long := strings.Repeat("x", job.MaxReasonBytes+1)
	require.Equal(t, jobpb.Code_INVALID, r.one(opRelease(&jobpb.Release{Ref: bySeq(1), Reason: long})).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opBury(&jobpb.Bury{Ref: bySeq(1), Reason: long})).Code)
}

func TestAttemptsAreBounded(t *testing.T) {
	ends := map[string]struct {
		end    func(r *rig)
		reason string
	}{
		"by release":             {func(r *rig) { r.one(opRelease(&jobpb.Release{Ref: bySeq(1)})) }, "released on attempt 2 of 2"},
		"by release with reason": {func(r *rig) { r.one(opRelease(&jobpb.Release{Ref: bySeq(1), Reason: "no"})) }, "no"},
		"by overrun": {func(r *rig) {
			r.now += 10
			r.one(opAdvance(5))
		}, "time to run exceeded on attempt 2 of 2"},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 10, MaxAttempts: 2}))
			for range 2 {
				require.Len(t, r.one(opReserve(1, "t")).Jobs, 1)
				c.end(r)
			}
			require.Empty(t, r.one(opReserve(1, "t")).Jobs)
			j := r.job(1)
			require.Equal(t, jobpb.State_STATE_DEAD, j.State)
			require.Equal(t, c.reason, j.Reason)
			require.EqualValues(t, 2, j.Attempts)
			require.EqualValues(t, 1, r.topic("t").Died)

			// A kick gives it all its attempts again.
			require.Equal(t, jobpb.Code_OK, r.one(opKick(bySeq(1))).Code)
			require.EqualValues(t, 1, r.one(opReserve(1, "t")).Jobs[0].Attempts)
		})
	}
}

func TestUndeliveredJobGetsItsAttemptBack(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", MaxAttempts: 1}))
	for generation := range uint32(5) {
		got := r.one(opReserve(1, "t")).Jobs[0]
		require.EqualValues(t, 1, got.Attempts)
		require.Equal(t, generation+1, got.Generation, "no two reservations share a token")
		res := r.one(opRelease(&jobpb.Release{Ref: fenced(1, got.Generation), Undelivered: true}))
		require.Equal(t, jobpb.State_STATE_READY, res.State)
	}
	j := r.job(1)
	require.Zero(t, j.Attempts)
	require.Zero(t, j.Releases)
}

func TestUnlimitedAttempts(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	for range 40 {
		r.do(opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1)}))
	}
	require.EqualValues(t, 40, r.job(1).Attempts)
	require.Equal(t, jobpb.State_STATE_READY, r.job(1).State)
}

func TestTouchStartsTheTimeToRunAgain(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", TtrMs: 100}), opReserve(1, "t"))
	r.now += 60
	require.Equal(t, r.now+100, r.one(opTouch(bySeq(1), 0)).ReservedUntilMs)
	require.Equal(t, r.now+20, r.one(opTouch(bySeq(1), 20)).ReservedUntilMs)
	require.Equal(t, r.now+20, r.m.NextDue())
	require.Equal(t, jobpb.Code_INVALID, r.one(opTouch(bySeq(1), -1)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opTouch(bySeq(1), maxTTRMS+1)).Code)
	r.now += 20
	require.EqualValues(t, 1, r.one(opAdvance(5)).Count)
}

func TestReservationCanHaveItsOwnTimeToRun(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 100}))
	res := r.one(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: 7}}})
	require.Equal(t, r.now+7, res.Jobs[0].ReservedUntilMs)
	require.EqualValues(t, 7, res.Jobs[0].TtrMs)
	require.EqualValues(t, 100, r.job(1).TtrMs)
}

func TestKickTopicRevivesTheLongestDeadFirst(t *testing.T) {
	r := newRig(t, Options{})
	for range 4 {
		r.one(opAdd(&jobpb.Add{Topic: "t"}))
	}
	r.do(opReserve(4, "t"), opBury(&jobpb.Bury{Ref: bySeq(3)}), opBury(&jobpb.Bury{Ref: bySeq(1)}), opBury(&jobpb.Bury{Ref: bySeq(4)}))
	require.EqualValues(t, 2, r.one(opKickTopic("t", 2)).Count)
	require.Equal(t, jobpb.State_STATE_READY, r.job(3).State)
	require.Equal(t, jobpb.State_STATE_READY, r.job(1).State)
	require.Equal(t, jobpb.State_STATE_DEAD, r.job(4).State)
	require.EqualValues(t, 1, r.one(opKickTopic("t", job.MaxKick)).Count)
	require.Zero(t, r.one(opKickTopic("nowhere", 1)).Count)
	require.Equal(t, jobpb.Code_INVALID, r.one(opKickTopic("t", 0)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opKickTopic("t", job.MaxKick+1)).Code)
}

func TestAdvanceSharesItsMaximumAmongTopics(t *testing.T) {
	r := newRig(t, Options{})
	var ops []*jobpb.Op
	for range 1000 {
		ops = append(ops, opAdd(&jobpb.Add{Topic: "big", DelayMs: 1}))
	}
	for i := range 5 {
		ops = append(ops, opAdd(&jobpb.Add{Topic: fmt.Sprintf("small-%d", i), DelayMs: 40}))
	}
	r.do(ops...)
	r.now += 50
	res := r.one(opAdvance(60))
	require.EqualValues(t, 60, res.Count, "what the small topics leave goes to the big one")
	require.True(t, res.More)
	for i := range 5 {
		require.EqualValues(t, 1, r.topic(fmt.Sprintf("small-%d", i)).Ready)
	}
	require.EqualValues(t, 55, r.topic("big").Ready)
	res = r.one(opAdvance(945))
	require.EqualValues(t, 945, res.Count)
	require.False(t, res.More)
	require.Zero(t, r.m.NextDue())
	require.Equal(t, jobpb.Code_INVALID, r.one(opAdvance(0)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opAdvance(job.MaxKick+1)).Code, "one entry never holds the state machine for long")
}

func TestAdvanceWithMoreDueTopicsThanItMayMove(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 5 {
		r.do(opAdd(&jobpb.Add{Topic: fmt.Sprintf("t%d", i), DelayMs: int64(10 - i)}))
	}
	r.now += 50
	require.EqualValues(t, 2, r.one(opAdvance(2)).Count)
	require.EqualValues(t, 1, r.topic("t4").Ready, "the earliest due first")
	require.EqualValues(t, 1, r.topic("t3").Ready)
	require.EqualValues(t, 0, r.topic("t2").Ready)
}

func TestClockNeverGoesBack(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: 10}))
	r.now -= 500
	require.Equal(t, rigStart+int64(10), r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: 10})).DueMs)
	require.Equal(t, int64(rigStart), r.m.Applied().ClockMS)
	r.now = 1<<63 - 1
	res := r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: maxDelayMS}))
	require.Equal(t, jobpb.Code_OK, res.Code)
	require.Equal(t, maxClockMS+maxDelayMS, res.DueMs, "no sum overflows")
}

func TestClusterIsNamedOnce(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.Code_INVALID, r.one(opSetCluster("")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSetCluster("one")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSetCluster("one")).Code)
	require.Equal(t, jobpb.Code_CLUSTER_MISMATCH, r.one(opSetCluster("two")).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opForget("")).Code)
	r.do(opForget("n1.abc"), opForget("n1.abc"))
	r.reopen()
	require.Equal(t, "one", r.m.ClusterID())
	require.True(t, r.m.Forgotten("n1.abc"))
	require.False(t, r.m.Forgotten("n1.abd"))
}
