package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// A consumer whose time ran out finishes with its token. What happened to the job
// since decides whether that counts.
func TestAFinishAfterTheTimeRanOut(t *testing.T) {
	add := func(a *jobpb.Add) *jobpb.Add {
		a.Id, a.Topic, a.TtrMs = "a", "t", 100
		return a
	}
	again := func(how jobpb.IfExists) func(*rig) {
		return func(r *rig) {
			op := add(&jobpb.Add{Body: []byte("new"), DelayMs: 5000, IfExists: how})
			require.Equal(t, jobpb.Code_OK, r.one(opAdd(op)).Code)
		}
	}
	backoff := &jobpb.Extras{Backoff: &jobpb.Backoff{DelaysMs: []int64{5000}}}
	for _, c := range []struct {
		name  string
		add   *jobpb.Add
		since func(*rig) // after the reservation expired
		state jobpb.State
		want  jobpb.Code
	}{
		{"ready", &jobpb.Add{}, nil, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"delayed by its backoff", &jobpb.Add{Extras: backoff}, nil, jobpb.State_STATE_DELAYED, jobpb.Code_OK},
		{"dead of its last attempt", &jobpb.Add{MaxAttempts: 1}, nil, jobpb.State_STATE_DEAD, jobpb.Code_OK},
		{"kicked out of death", &jobpb.Add{MaxAttempts: 1}, func(r *rig) { r.one(opKick(byID("a"))) }, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"moved", &jobpb.Add{}, func(r *rig) {
			r.one(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: byID("a"), To: "u"}}})
		}, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"reserved by another", &jobpb.Add{}, func(r *rig) { r.one(opReserve(1, "t")) }, jobpb.State_STATE_RESERVED, jobpb.Code_STALE_TOKEN},
		{"reserved by another, whose time ran out too", &jobpb.Add{}, func(r *rig) {
			r.one(opReserve(1, "t"))
			r.now += 200
			r.one(opAdvance(10))
		}, jobpb.State_STATE_READY, jobpb.Code_STALE_TOKEN},
		{"reserved by another, who never got it", &jobpb.Add{}, func(r *rig) {
			r.one(opReserve(1, "t"))
			r.one(opRelease(&jobpb.Release{Ref: fenced(1, 2), Undelivered: true}))
		}, jobpb.State_STATE_READY, jobpb.Code_STALE_TOKEN},
		{"updated", &jobpb.Add{}, func(r *rig) {
			r.one(&jobpb.Op{Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: byID("a"), Body: []byte("new")}}})
		}, jobpb.State_STATE_READY, jobpb.Code_STALE_TOKEN},
		{"postponed", &jobpb.Add{}, again(jobpb.IfExists_IF_EXISTS_POSTPONE), jobpb.State_STATE_DELAYED, jobpb.Code_STALE_TOKEN},
		{"replaced", &jobpb.Add{}, again(jobpb.IfExists_IF_EXISTS_REPLACE), jobpb.State_STATE_NONE, jobpb.Code_NOT_FOUND},
		{"deleted", &jobpb.Add{}, func(r *rig) { r.one(opDelete(byID("a"))) }, jobpb.State_STATE_NONE, jobpb.Code_NOT_FOUND},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, with := range []string{"finish", "then", "refuse"} {
				r := newRig(t, Options{})
				r.one(opAdd(add(proto.Clone(c.add).(*jobpb.Add))))
				require.Len(t, r.one(opReserve(1, "t")).Jobs, 1)
				r.now += 200
				require.EqualValues(t, 1, r.one(opAdvance(10)).Count)
				if c.since != nil {
					c.since(r)
				}
				if c.state != jobpb.State_STATE_NONE {
					require.Equal(t, c.state, r.job(1).State)
				}
				want, op := c.want, opFinish(fenced(1, 1))
				switch with {
				case "then":
					op = &jobpb.Op{Kind: &jobpb.Op_Compose{Compose: &jobpb.Compose{
						Finish: &jobpb.Finish{Ref: fenced(1, 1)}, Adds: []*jobpb.Add{{Topic: "next", TtrMs: 1}},
					}}}
				case "refuse":
					refuse := &jobpb.TopicSettings{LateFinish: jobpb.LateFinish_LATE_FINISH_REFUSE}
					r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: refuse}))
					r.one(opSettings(&jobpb.SetTopic{Topic: "u", Settings: proto.Clone(refuse).(*jobpb.TopicSettings)}))
					if want == jobpb.Code_OK {
						want = jobpb.Code_STALE_TOKEN
					}
				}
				require.Equal(t, want, r.one(op).Code, with)
				if want == jobpb.Code_OK {
					require.Nil(t, r.job(1))
					require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opFinish(fenced(1, 1))).Code, "it is finished once")
				}
			}
		})
	}
}

// Only a finish may come late, and only after the time ran out: a consumer that gave
// the job away itself has decided.
func TestWhatElseCannotComeLate(t *testing.T) {
	ref := fenced(1, 1)
	for name, ops := range map[string]struct{ since, late *jobpb.Op }{
		"release":               {opAdvance(10), opRelease(&jobpb.Release{Ref: ref})},
		"touch":                 {opAdvance(10), opTouch(ref, 0)},
		"bury":                  {opAdvance(10), opBury(&jobpb.Bury{Ref: ref})},
		"delete":                {opAdvance(10), opDelete(ref)},
		"finish after release":  {opRelease(&jobpb.Release{Ref: ref}), opFinish(ref)},
		"finish after return":   {opRelease(&jobpb.Release{Ref: ref, Returned: true}), opFinish(ref)},
		"finish after bury":     {opBury(&jobpb.Bury{Ref: ref}), opFinish(ref)},
		"finish without token":  {opAdvance(10), opFinish(bySeq(1))},
		"finish of none of its": {opAdvance(10), opFinish(fenced(1, 2))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 100}))
			r.one(opReserve(1, "t"))
			r.now += 200
			require.Equal(t, jobpb.Code_OK, r.one(ops.since).Code)
			want := jobpb.Code_STALE_TOKEN
			if ops.late.GetFinish() != nil && ops.late.GetFinish().Ref.Generation == 0 {
				want = jobpb.Code_NOT_RESERVED
			}
			require.Equal(t, want, r.one(ops.late).Code)
			require.NotNil(t, r.job(1))
		})
	}
}

// A late finish survives a restart of the node between the end of the time and it,
// and frees what the job held.
func TestALateFinishFindsItsJobAfterARestart(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1)), RetainMs: 5000}}))
	r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 100}))
	r.one(opReserve(1, "t"))
	r.now += 200
	r.one(opAdvance(10))
	r.reopen()
	require.Equal(t, jobpb.Code_OK, r.one(opFinish(fenced(1, 1))).Code)
	require.Equal(t, jobpb.State_STATE_FINISHED, r.job(1).State)
	require.EqualValues(t, 1, r.topic("t").Finished)
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Topic: "t"})).Code, "it waits no more")
}

// The next step of a chain may take the id of the job that is done late, also where
// that was the one job that the topic has room for.
func TestALateFinishGivesItsPlaceToTheNextStep(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1))}}))
	r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", TtrMs: 100}))
	r.one(opReserve(1, "t"))
	r.now += 200
	r.one(opAdvance(10))
	compose := func(adds ...*jobpb.Add) jobpb.Code {
		return r.one(&jobpb.Op{Kind: &jobpb.Op_Compose{Compose: &jobpb.Compose{Finish: &jobpb.Finish{Ref: fenced(1, 1)}, Adds: adds}}}).Code
	}
	next := &jobpb.Add{Id: "a", Topic: "t", TtrMs: 100}
	require.Equal(t, jobpb.Code_TOPIC_FULL, compose(next, &jobpb.Add{Topic: "t", TtrMs: 100}))
	require.Equal(t, jobpb.Code_OK, compose(next))
	require.Nil(t, r.job(1))
	require.Equal(t, jobpb.State_STATE_READY, r.job(2).State)
}

// Where a topic requires tokens, nobody ends a reservation that they cannot name.
func TestATopicThatRequiresTokens(t *testing.T) {
	for name, op := range map[string]func(*jobpb.Ref) *jobpb.Op{
		"finish":  opFinish,
		"release": func(ref *jobpb.Ref) *jobpb.Op { return opRelease(&jobpb.Release{Ref: ref}) },
		"touch":   func(ref *jobpb.Ref) *jobpb.Op { return opTouch(ref, 0) },
		"bury":    func(ref *jobpb.Ref) *jobpb.Op { return opBury(&jobpb.Bury{Ref: ref}) },
		"then": func(ref *jobpb.Ref) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_Compose{Compose: &jobpb.Compose{Finish: &jobpb.Finish{Ref: ref}, Adds: []*jobpb.Add{{Topic: "next", TtrMs: 1}}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RequireToken: true}}))
			r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
			require.Equal(t, jobpb.Code_TOKEN_REQUIRED, r.one(op(byID("a"))).Code, "reserved or not")
			r.one(opReserve(1, "t"))
			require.Equal(t, jobpb.Code_TOKEN_REQUIRED, r.one(op(byID("a"))).Code)
			require.Equal(t, jobpb.State_STATE_RESERVED, r.job(1).State)
			require.Equal(t, jobpb.Code_OK, r.one(op(fenced(1, 1))).Code)
		})
	}
	t.Run("whoever owns the job may cancel it", func(t *testing.T) {
		r := newRig(t, Options{})
		r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RequireToken: true}}))
		r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
		r.one(opReserve(1, "t"))
		require.Equal(t, jobpb.Code_OK, r.one(opDelete(byID("a"))).Code)
	})
}
