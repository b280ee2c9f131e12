package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// endWays are the ways in which job 1, which is reserved, can end.
var endWays = []struct {
	name  string
	op    *jobpb.Op
	state jobpb.State
	kind  jobpb.Event_Kind
}{
	{"finished", opFinish(bySeq(1)), jobpb.State_STATE_FINISHED, jobpb.Event_FINISHED},
	{"deleted", opDelete(bySeq(1)), jobpb.State_STATE_DELETED, jobpb.Event_DELETED},
}

func TestEndedJobIsRetained(t *testing.T) {
	for _, way := range endWays {
		t.Run(way.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.retain("t", 5000)
			add := &jobpb.Add{Id: "x", Topic: "t", Body: []byte("b")}
			r.do(opAdd(add), opReserve(1, "t"))
			r.now += 100
			res := r.one(way.op)
			require.Equal(t, jobpb.Code_OK, res.Code)
			require.Zero(t, res.State, "to the one who ends it, it is gone")
			r.reopen()

			j := r.job(1)
			require.Equal(t, way.state, j.State)
			require.Equal(t, r.now, j.EndedMs)
			require.EqualValues(t, rigStart+6000, j.RetainedUntilMs, "rounded up to a second")
			require.Equal(t, "b", string(j.Body))
			require.Zero(t, j.ReservedUntilMs)
			counts := r.topic("t")
			require.EqualValues(t, 1, counts.Retained)
			require.Zero(t, counts.Ready+counts.Reserved+counts.Dead+counts.Delayed)

			r.now = rigStart + 5999
			require.Equal(t, j.RetainedUntilMs, r.m.NextDue())
			r.one(opAdvance(9))
			require.NotNil(t, r.job(1))
			r.now++
			res = r.one(opAdvance(9))
			require.Zero(t, res.Count, "nothing became ready")
			require.False(t, res.More)
			require.Nil(t, r.job(1))
			require.Zero(t, r.topic("t").Retained)
			require.False(t, r.one(opAdd(add)).Existing, "the id is free")
		})
	}
}

func TestOnlyAnAddFindsARetainedJob(t *testing.T) {
	for _, way := range endWays {
		t.Run(way.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.retain("t", 5000)
			r.do(opAdd(&jobpb.Add{Id: "x", Topic: "t"}), opReserve(1, "t"), way.op)
			before := r.digest()
			for _, ref := range []*jobpb.Ref{bySeq(1), byID("x"), fenced(1, 1)} {
				for i, op := range []*jobpb.Op{
					opFinish(ref), opDelete(ref), opRelease(&jobpb.Release{Ref: ref}), opTouch(ref, 5), opBury(&jobpb.Bury{Ref: ref}),
					opKick(ref), opReserveJob(ref, 0), {Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: ref, DelayMs: new(int64(1))}}},
				} {
					res := r.one(op)
					require.Equal(t, jobpb.Code_NOT_FOUND, res.Code, "operation %d", i)
					require.Contains(t, res.Message, way.name+" at 1970-01-01T00:16:40.000Z")
				}
			}
			require.Empty(t, r.one(opReserve(1, "t")).Jobs)
			require.Zero(t, r.one(opKickTopicOrDelayed("t", 1)).Count)
			require.Equal(t, before, r.digest())
		})
	}
}

func TestAddOfARetainedID(t *testing.T) {
	const again = true
	for _, c := range []struct {
		name     string
		ifExists jobpb.IfExists
		change   func(*jobpb.Add)
		code     jobpb.Code
		again    bool // a new job is made
	}{
		{"the same job", jobpb.IfExists_IF_EXISTS_CONFLICT, nil, jobpb.Code_OK, !again},
		{"another body", jobpb.IfExists_IF_EXISTS_CONFLICT, func(a *jobpb.Add) { a.Body = []byte("other") }, jobpb.Code_ID_CONFLICT, !again},
		{"keep", jobpb.IfExists_IF_EXISTS_KEEP, func(a *jobpb.Add) { a.Body = []byte("other") }, jobpb.Code_OK, !again},
		{"replace", jobpb.IfExists_IF_EXISTS_REPLACE, nil, jobpb.Code_OK, again},
		{"postpone", jobpb.IfExists_IF_EXISTS_POSTPONE, nil, jobpb.Code_OK, again},
		{"postpone in another topic", jobpb.IfExists_IF_EXISTS_POSTPONE, func(a *jobpb.Add) { a.Topic = "u" }, jobpb.Code_OK, again},
		{"replace what is finished", jobpb.IfExists_IF_EXISTS_REPLACE, func(a *jobpb.Add) {
			a.Condition = &jobpb.Condition{States: []jobpb.State{jobpb.State_STATE_FINISHED}}
		}, jobpb.Code_OK, again},
		{"replace what waits", jobpb.IfExists_IF_EXISTS_REPLACE, func(a *jobpb.Add) {
			a.Condition = &jobpb.Condition{States: []jobpb.State{jobpb.State_STATE_READY}}
		}, jobpb.Code_CONDITION_FAILED, !again},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.retain("t", 5000)
			r.do(opAdd(&jobpb.Add{Id: "x", Topic: "t", Body: []byte("b")}), opReserve(1, "t"), opFinish(bySeq(1)))
			add := &jobpb.Add{Id: "x", Topic: "t", Body: []byte("b"), IfExists: c.ifExists}
			if c.change != nil {
				c.change(add)
			}
			res := r.one(opAdd(add))
			require.Equal(t, c.code, res.Code, res.Message)
			require.Equal(t, c.again, res.Replaced)
			require.False(t, res.Postponed)
			require.Equal(t, c.again, r.job(1) == nil)
			if c.code == jobpb.Code_OK && !c.again {
				require.True(t, res.Existing)
				require.Equal(t, jobpb.State_STATE_FINISHED, res.State)
			}
			require.Zero(t, r.topic("t").Deleted, "it ended once")
		})
	}
}

func TestFinishAndAddWithTheSameIDRetainsNothing(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 5000)
	r.do(opAdd(&jobpb.Add{Id: "x", Topic: "t"}), opReserve(1, "t"))
	res := r.one(opCompose(&jobpb.Compose{Finish: &jobpb.Finish{Ref: byID("x")}, Adds: []*jobpb.Add{{Id: "x", Topic: "t", TtrMs: 1}}}))
	require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
	require.Nil(t, r.job(1))
	require.EqualValues(t, 2, res.Details.Parts[0].Seq)

	r.one(opReserve(1, "t"))
	res = r.one(opCompose(&jobpb.Compose{Finish: &jobpb.Finish{Ref: byID("x")}, Adds: []*jobpb.Add{{Id: "y", Topic: "t", TtrMs: 1}}}))
	require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
	require.Equal(t, jobpb.State_STATE_FINISHED, r.job(2).State)
}

// What is retained already stays for as long as the setting was when it ended.
func TestRetentionChangesForJobsThatEndLater(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opReserve(3, "t"))
	r.retain("t", 9000)
	r.one(opFinish(bySeq(1)))
	r.retain("t", 2000)
	r.one(opFinish(bySeq(2)))
	r.retain("t", 0)
	r.one(opFinish(bySeq(3)))
	require.EqualValues(t, rigStart+9000, r.job(1).RetainedUntilMs)
	require.EqualValues(t, rigStart+2000, r.job(2).RetainedUntilMs)
	require.Nil(t, r.job(3))
	r.now += 2000
	r.one(opAdvance(9))
	require.NotNil(t, r.job(1))
	require.Nil(t, r.job(2))
	r.now += 7000
	r.one(opAdvance(9))
	require.Nil(t, r.job(1))
}

func TestTopicRetainsOnlySoManyJobs(t *testing.T) {
	r := newRig(t, Options{maxRetained: 3})
	r.retain("t", 5000)
	for range 5 {
		r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(r.m.meta.state.nextSeq)))
		r.now += 1000
	}
	require.EqualValues(t, 3, r.topic("t").Retained)
	for seq := range uint64(5) {
		require.Equal(t, seq+1 <= 2, r.job(seq+1) == nil, "job %d", seq+1)
	}
}

func TestTheIDOfAJobThatWasRetainedPastTheBoundIsFree(t *testing.T) {
	r := newRig(t, Options{maxRetained: 1})
	r.retain("t", 5000)
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opAdd(&jobpb.Add{Id: "b", Topic: "t"}), opReserve(2, "t"), opFinish(byID("a")))
	require.True(t, r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"})).Existing)
	r.one(opFinish(byID("b")))
	again := r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	require.Equal(t, []any{jobpb.Code_OK, false}, []any{again.Code, again.Existing})
	require.True(t, r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t"})).Existing)
}

// What is retained is forgotten past the bound, but not before an add of the same
// command has found it there.
func TestComposeFindsARetainedJobThatItsFinishForgets(t *testing.T) {
	r := newRig(t, Options{maxRetained: 1})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RetainMs: 5000, MaxPending: new(uint64(1))}}))
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "old"}), opReserve(1, "t"), opFinish(byID("old")))
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "now"}), opReserve(1, "t"))
	old := &jobpb.Add{Topic: "t", Id: "old", TtrMs: 60_000, IfExists: jobpb.IfExists_IF_EXISTS_KEEP}
	res := r.one(opCompose(&jobpb.Compose{Finish: &jobpb.Finish{Ref: byID("now")}, Adds: []*jobpb.Add{{Topic: "t", Id: "new", TtrMs: 1}, old}}))
	require.Equal(t, jobpb.Code_OK, res.Code)
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK}, []jobpb.Code{res.Details.Parts[0].Code, res.Details.Parts[1].Code}, "all or nothing")
	require.True(t, res.Details.Parts[1].Existing)
}

func TestRetainedJobsKeepTheirTopic(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 2*topicKeepMS)
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(1)))
	r.now += 2*topicKeepMS - 1
	r.one(opAdvance(9))
	require.EqualValues(t, 1, r.topic("t").Added)
	r.now++
	r.one(opAdvance(9))
	require.EqualValues(t, 1, r.topic("t").Added, "it is empty from now on")
	r.now += topicKeepMS
	r.one(opAdvance(9))
	require.Zero(t, r.topic("t").Added)
}

// An Advance forgets no more than it may, and lets due jobs of the topic have
// their turn by their instants.
func TestAdvanceForgetsWithinItsBound(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 1000)
	const jobs = 5
	for range jobs {
		r.one(opAdd(&jobpb.Add{Topic: "t"}))
	}
	r.one(opReserve(jobs, "t"))
	for seq := range uint64(jobs) {
		r.one(opFinish(bySeq(seq + 1)))
	}
	r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: 1500}))
	r.now += 3000
	for left := jobs - 2; left >= 1; left -= 2 {
		res := r.one(opAdvance(2))
		require.True(t, res.More)
		require.Zero(t, res.Count)
		require.EqualValues(t, left, r.topic("t").Retained)
	}
	res := r.one(opAdvance(2))
	require.EqualValues(t, 1, res.Count)
	require.False(t, res.More)
	require.EqualValues(t, 1, r.topic("t").Ready)
}

func TestRetainedJobsTravelInASnapshot(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 5000)
	r.do(opAdd(&jobpb.Add{Id: "x", Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(1)))
	whole, want := archive(r)
	other := newRig(t, Options{})
	require.NoError(t, tryInstall(other.m, whole, want))
	require.Equal(t, r.digest(), other.digest())
	require.Equal(t, r.m.NextDue(), other.m.NextDue())
	require.Equal(t, jobpb.State_STATE_FINISHED, other.job(1).State)
	require.Len(t, other.job(1).History, 3)
}

// retain sets how long a topic keeps its ended jobs.
func (r *rig) retain(topic string, ms int64) {
	r.t.Helper()
	require.Equal(r.t, jobpb.Code_OK, r.one(opRetain(topic, ms)).Code)
}

func opRetain(topic string, ms int64) *jobpb.Op {
	return opSettings(&jobpb.SetTopic{Topic: topic, Settings: &jobpb.TopicSettings{RetainMs: ms}})
}

func TestRetainedJobGivesNoRoomInAFullTopic(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 5000)
	r.do(opAdd(&jobpb.Add{Id: "x", Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(1)), opAdd(&jobpb.Add{Topic: "t"}))
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RetainMs: 5000, MaxPending: new(uint64(1))}}))
	for _, what := range []jobpb.IfExists{jobpb.IfExists_IF_EXISTS_REPLACE, jobpb.IfExists_IF_EXISTS_POSTPONE} {
		require.Equal(t, jobpb.Code_TOPIC_FULL, r.one(opAdd(&jobpb.Add{Id: "x", Topic: "t", IfExists: what})).Code)
	}
	require.Equal(t, jobpb.State_STATE_FINISHED, r.job(1).State, "it is still there")
}
