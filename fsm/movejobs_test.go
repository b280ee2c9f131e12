package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func opMove(m *jobpb.MoveJobs) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m}} }

func opPurge(p *jobpb.Purge) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: p}} }

func opKickSweep(topic string, most uint32, s *jobpb.Sweep) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: topic, Max: most, Sweep: s}}}
}

// fourStates makes a topic with a job in each state: delayed a, ready b, reserved
// c with its generation 1, dead d.
func fourStates(r *rig, topic string) {
	r.do(opAdd(&jobpb.Add{Topic: topic, Id: "d"}), opReserve(1, topic), opBury(&jobpb.Bury{Ref: byID("d"), Reason: "bad"}))
	r.do(opAdd(&jobpb.Add{Topic: topic, Id: "c", Body: []byte("body")}), opReserve(1, topic))
	r.do(opAdd(&jobpb.Add{Topic: topic, Id: "a", DelayMs: 60_000}), opAdd(&jobpb.Add{Topic: topic, Id: "b"}))
}

// All of a topic moves to one without jobs in one step, whatever max is: nothing
// but names is written.
func TestATopicMovesWholeAtOnce(t *testing.T) {
	for name, before := range map[string]func(r *rig){
		"to a new topic": func(*rig) {},
		"to one that has had jobs": func(r *rig) {
			r.do(opAdd(&jobpb.Add{Topic: "u", Id: "x"}), opReserve(1, "u"), opBury(&jobpb.Bury{Ref: byID("x")}), opDelete(byID("x")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			before(r)
			fourStates(r, "t")
			r.do(opPause("t", 5000, false))
			from, to := r.topic("t"), r.topic("u")
			moved := r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1}))
			require.Equal(t, []any{uint32(4), false}, []any{moved.Count, moved.More})
			r.check()
			r.reopen()
			got := r.topic("u")
			require.Equal(t, []uint64{1, 1, 1, 1}, []uint64{got.Delayed, got.Ready, got.Reserved, got.Dead})
			require.Equal(t, []any{to.Added, to.Died, int64(0)}, []any{got.Added, got.Died, got.PausedUntilMs}, "totals and pause stay with the name")
			left := r.topic("t")
			require.Equal(t, []uint64{0, 0, 0, 0}, []uint64{left.Delayed, left.Ready, left.Reserved, left.Dead})
			require.Equal(t, []any{from.Added, from.Died, from.PausedUntilMs}, []any{left.Added, left.Died, left.PausedUntilMs})

			c := r.job(r.one(opTouch(&jobpb.Ref{Id: "c", Generation: 1}, 0)).Seq)
			require.Equal(t, []any{"u", uint32(3)}, []any{c.Topic, c.Revision}, "the reservation lasts; only the touch has changed the job")
			r.do(opAdd(&jobpb.Add{Topic: "t", Id: "e"}))
			require.Equal(t, "t", r.job(r.one(opKick(byID("d"))).Seq+4).Topic)
			require.Len(t, r.one(opReserve(10, "u")).Jobs, 2, "b, and d that was kicked")
		})
	}
}

// Those that die in the topic that a whole topic moved to stand behind the dead
// that came with it.
func TestTheDeadKeepTheirOrderWhenATopicMoves(t *testing.T) {
	r := newRig(t, Options{})
	kill := func(topic, id string) {
		r.do(opAdd(&jobpb.Add{Topic: topic, Id: id}), opReserve(1, topic), opBury(&jobpb.Bury{Ref: byID(id)}))
	}
	kill("t", "3")
	kill("t", "2")
	r.do(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1}))
	kill("u", "1")
	page, _ := r.listed(&jobpb.JobQuery{Topic: "u", State: jobpb.State_STATE_DEAD, Max: 9})
	var order string
	for _, j := range page.Jobs {
		order += j.Id
	}
	require.Equal(t, "321", order)
	require.EqualValues(t, 3, r.m.topics["u"].rank)
}

// A job that moved alone is found, changed and finished as before.
func TestOneJobMoves(t *testing.T) {
	for _, id := range []string{"a", "b", "c", "d"} {
		t.Run(id, func(t *testing.T) {
			r := newRig(t, Options{})
			fourStates(r, "t")
			before := r.job(r.one(opMove(&jobpb.MoveJobs{Ref: byID(id), To: "t"})).Seq)
			moved := r.one(opMove(&jobpb.MoveJobs{Ref: byID(id), To: "u"}))
			require.Equal(t, before.State, moved.State)
			r.check()
			r.reopen()
			after := r.job(moved.Seq)
			require.Equal(t, "u", after.Topic)
			require.Equal(t, before.Revision+1, after.Revision)
			after.Topic, after.Revision = before.Topic, before.Revision
			require.EqualExportedValues(t, before, after)
			require.Equal(t, jobpb.Code_ID_CONFLICT, r.one(opAdd(&jobpb.Add{Topic: "t", Id: id, TtrMs: before.TtrMs, Body: before.Body})).Code, "it is another topic's now")
			back := r.one(opMove(&jobpb.MoveJobs{Ref: byID(id), To: "t"}))
			require.Equal(t, jobpb.Code_OK, back.Code)
			require.Equal(t, jobpb.Code_OK, r.one(opDelete(byID(id))).Code)
		})
	}
}

// What is asked for in one command is bounded, and the rest is there to be asked
// for again.
func TestJobsMoveInSteps(t *testing.T) {
	r := newRig(t, Options{})
	fourStates(r, "t")
	r.do(opAdd(&jobpb.Add{Topic: "u", Id: "other"}))
	for _, want := range []string{"delayed", "ready", "reserved", "dead"} {
		moved := r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1}))
		require.Equal(t, uint32(1), moved.Count)
		require.Equal(t, want != "dead", moved.More, want)
		r.check()
	}
	require.Zero(t, r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1})).Count)
	require.Equal(t, jobpb.Code_OK, r.one(opFinish(&jobpb.Ref{Id: "c", Generation: 1})).Code)
}

// Few large jobs are as much for one command as many small ones.
func TestCommandsForManyJobsEndEarlyAtLargeOnes(t *testing.T) {
	r := newRig(t, Options{})
	const jobs = 6
	for range jobs {
		r.do(opAdd(&jobpb.Add{Topic: "t", Body: make([]byte, sweepBytes/4)}))
	}
	r.do(opAdd(&jobpb.Add{Topic: "u"}))
	moved := r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 100}))
	require.Equal(t, []any{uint32(4), true}, []any{moved.Count, moved.More})
	moved = r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 100}))
	require.Equal(t, []any{uint32(2), false}, []any{moved.Count, moved.More})

	// Those that the filter does not mean are read, too.
	purge := &jobpb.Purge{Topic: "u", State: jobpb.State_STATE_READY, Max: 100, Sweep: &jobpb.Sweep{Scan: 100, Filter: &jobpb.Filter{IdPrefix: "none"}}}
	purged := r.one(opPurge(purge))
	require.Zero(t, purged.Count)
	require.NotNil(t, purged.GetDetails().GetNext())
	purge.Sweep = &jobpb.Sweep{Scan: 100, From: purged.Details.Next}
	purged = r.one(opPurge(purge))
	require.Equal(t, []any{uint32(3), true}, []any{purged.Count, purged.GetDetails().GetNext() == nil})
}

func TestMovesThatAreRefused(t *testing.T) {
	r := newRig(t, Options{maxTopics: 2})
	fourStates(r, "t")
	r.do(opAdd(&jobpb.Add{Topic: "u"}))
	for name, c := range map[string]struct {
		op   *jobpb.MoveJobs
		code jobpb.Code
	}{
		"to itself":       {&jobpb.MoveJobs{Topic: "t", To: "t", Max: 1}, jobpb.Code_INVALID},
		"nowhere":         {&jobpb.MoveJobs{Topic: "t", Max: 1}, jobpb.Code_INVALID},
		"no max":          {&jobpb.MoveJobs{Topic: "t", To: "u"}, jobpb.Code_INVALID},
		"ended state":     {&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1, States: []jobpb.State{6}}, jobpb.Code_INVALID},
		"one topic more":  {&jobpb.MoveJobs{Topic: "t", To: "v", Max: 1}, jobpb.Code_TOO_MANY_TOPICS},
		"one for one job": {&jobpb.MoveJobs{Ref: byID("a"), To: "v"}, jobpb.Code_TOO_MANY_TOPICS},
		"no such job":     {&jobpb.MoveJobs{Ref: byID("z"), To: "u"}, jobpb.Code_NOT_FOUND},
		"stale token":     {&jobpb.MoveJobs{Ref: &jobpb.Ref{Id: "c", Generation: 9}, To: "u"}, jobpb.Code_STALE_TOKEN},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.digest()
			got := r.one(opMove(c.op))
			require.Equal(t, c.code, got.Code)
			require.NotEmpty(t, got.Message)
			require.Equal(t, before, r.digest())
		})
	}
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, r.one(&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: byID("d"), ToTopic: "v"}}}).Code)
}

// A sweep ends although the jobs that it kicks die again.
func TestASweepLeavesTheDeadOfItsOwnTimeAlone(t *testing.T) {
	r := newRig(t, Options{})
	kill := func() {
		for _, j := range r.one(opReserve(10, "t")).Jobs {
			r.do(opBury(&jobpb.Bury{Ref: bySeq(j.Seq)}))
		}
	}
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}))
	kill()
	var at *jobpb.Progress
	for range 3 {
		kicked := r.one(opKickSweep("t", 1, &jobpb.Sweep{Scan: 10, From: at}))
		require.Equal(t, uint32(1), kicked.Count)
		kill()
		at = kicked.GetDetails().GetNext()
	}
	require.Nil(t, at, "all three that were dead at the beginning were kicked")
	require.EqualValues(t, 3, r.topic("t").Dead)
}

func TestSweepsThatAreRefused(t *testing.T) {
	r := newRig(t, Options{})
	fourStates(r, "t")
	fine := &jobpb.Sweep{Scan: 1}
	for name, op := range map[string]*jobpb.Op{
		"no sweep":         opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_DEAD, Max: 1}),
		"reserved jobs":    opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_RESERVED, Max: 1, Sweep: fine}),
		"no max":           opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_DEAD, Sweep: fine}),
		"too many":         opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_DEAD, Max: 10_001, Sweep: fine}),
		"nothing to look":  opKickSweep("t", 1, &jobpb.Sweep{}),
		"from the future":  opKickSweep("t", 1, &jobpb.Sweep{Scan: 1, From: &jobpb.Progress{StartMs: rigStart + 1}}),
		"before all time":  opKickSweep("t", 1, &jobpb.Sweep{Scan: 1, From: &jobpb.Progress{After: &jobpb.Place{Instant: -1}}}),
		"too much done":    opKickSweep("t", 1, &jobpb.Sweep{Scan: 1, From: &jobpb.Progress{Done: 1<<40 + 1}}),
		"server's ids":     opKickSweep("t", 1, &jobpb.Sweep{Scan: 1, Filter: &jobpb.Filter{IdPrefix: "$0"}}),
		"an empty range":   opKickSweep("t", 1, &jobpb.Sweep{Scan: 1, Filter: &jobpb.Filter{DueFromMs: 2, DueToMs: 2}}),
		"a bad topic":      {Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "t", Max: 1, Sweep: fine, ToTopic: "\x00"}}},
		"a bad topic, one": {Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: byID("d"), ToTopic: "\x00"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.digest()
			got := r.one(op)
			require.Equal(t, jobpb.Code_INVALID, got.Code)
			require.NotEmpty(t, got.Message)
			require.Equal(t, before, r.digest())
		})
	}
}
