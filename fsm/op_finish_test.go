package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// A consumer finishes with its token after its reservation expired. What happened to the
// job since decides whether that succeeds.
func TestLateFinish(t *testing.T) {
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
	backoff := &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{5000}}}
	for _, c := range []struct {
		name  string
		add   *jobpb.Add
		since func(*rig) // after the reservation expired
		state jobpb.State
		want  jobpb.Code
	}{
		{"ready", &jobpb.Add{}, nil, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"delayed by its backoff", &jobpb.Add{Options: backoff}, nil, jobpb.State_STATE_DELAYED, jobpb.Code_OK},
		{"dead after its last attempt", &jobpb.Add{MaxAttempts: 1}, nil, jobpb.State_STATE_DEAD, jobpb.Code_OK},
		{"kicked while dead", &jobpb.Add{MaxAttempts: 1}, func(r *rig) { r.one(opKick(byID("a"))) }, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"moved", &jobpb.Add{}, func(r *rig) {
			r.one(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: byID("a"), To: "u"}}})
		}, jobpb.State_STATE_READY, jobpb.Code_OK},
		{"reserved by another", &jobpb.Add{}, func(r *rig) { r.one(opReserve(1, "t")) }, jobpb.State_STATE_RESERVED, jobpb.Code_STALE_TOKEN},
		{"reserved by another and expired again", &jobpb.Add{}, func(r *rig) {
			r.one(opReserve(1, "t"))
			r.now += 200
			r.one(opAdvance(10))
		}, jobpb.State_STATE_READY, jobpb.Code_STALE_TOKEN},
		{"reserved by another but undelivered", &jobpb.Add{}, func(r *rig) {
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
					op = &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{
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
					require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opFinish(fenced(1, 1))).Code, "a second finish")
				}
			}
		})
	}
}
