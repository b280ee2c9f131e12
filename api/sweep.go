package api

import (
	"math"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// kickTopic handles POST /v1/topics/{topic}/kick.
func (s *server) kickTopic(x *call, q *wire.KickTopicRequest) (r wire.Kicked, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	most, filter, err := q.Sweep.Check()
	if err != nil {
		return r, err
	}
	rate, err := q.KickOptions.Check()
	if err != nil {
		return r, err
	}
	r.Kicked, r.More, err = s.sweep(x, most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{
			Topic: topic, Max: uint32(min(left, sweepStep)), RateMilli: rate, ToTopic: q.ToTopic.V,
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
	return r, err
}

// releaseTopic handles POST /v1/topics/{topic}/release.
func (s *server) releaseTopic(x *call, q *wire.ReleaseTopicRequest) (r wire.Released, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	most, filter, err := q.Check()
	if err != nil {
		return r, err
	}
	r.Released, r.More, err = s.sweep(x, most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{
			Topic: topic, Consumer: q.Consumer.V, Reason: q.Reason.V, Max: uint32(min(left, sweepStep)),
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
	return r, err
}

// purge handles POST /v1/topics/{topic}/purge.
func (s *server) purge(x *call, q *wire.PurgeRequest) (r wire.Purged, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	state := wire.StatesByName[q.State.V]
	if state == jobpb.State_STATE_NONE || state == jobpb.State_STATE_RESERVED || state > jobpb.State_STATE_DEAD {
		return r, job.Invalid("state", "is %.40q; it takes dead, delayed or ready", q.State.V)
	}
	most, filter, err := q.Check()
	if err != nil {
		return r, err
	}
	r.Deleted, r.More, err = s.sweep(x, most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{
			Topic: topic, State: state, Max: uint32(min(left, sweepStep)), DropEmpty: q.DropEmpty.V,
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
	return r, err
}

// topicMove is a wire.MoveTopicRequest, checked.
type topicMove struct {
	*jobpb.MoveJobs
	most   uint64
	filter *jobpb.Filter
	listed bool // jobs are listed and moved one by one
}

// moveTopic handles POST /v1/topics/{topic}/move. Without a limit and a filter the state machine
// moves what there is. Else the jobs are listed, and those of a page are moved in one command.
func (s *server) moveTopic(x *call, q *wire.MoveTopicRequest) (r wire.Moved, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	m, err := planMove(q, topic)
	if err != nil {
		return r, err
	}
	if m.listed {
		return s.moveListed(x, m, q.Cursor.V)
	}
	r.Moved, r.More, err = s.sweep(x, math.MaxUint64, func(uint64, *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m.MoveJobs}}
	})
	return r, err
}

// planMove checks the request.
func planMove(q *wire.MoveTopicRequest, topic string) (*topicMove, error) {
	if q.States.Set && len(q.States.V) == 0 {
		return nil, job.Invalid("states", "is empty; it takes a list of delayed, ready, reserved and dead")
	}
	m := &topicMove{MoveJobs: &jobpb.MoveJobs{Topic: topic, To: q.To.V, Max: sweepStep}}
	for _, name := range q.States.V {
		state, ok := wire.StatesByName[name]
		if !ok || state > jobpb.State_STATE_DEAD {
			return nil, job.Invalid("states", "has %.40q; it takes delayed, ready, reserved and dead", name)
		}
		m.States = append(m.States, state)
	}
	if err := check(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m.MoveJobs}}); err != nil {
		return nil, err
	}
	if !q.Max.Set && !q.Filter.Set && !q.Cursor.Set {
		return m, nil // all is the default here
	}
	var err error
	m.most, m.filter, err = q.Check()
	m.listed = q.Max.Set || m.filter != nil || q.Cursor.Set
	return m, err
}

// moveListed moves jobs that it lists. The operation has no condition: a job that has changed
// since it was listed moves as well.
func (s *server) moveListed(x *call, m *topicMove, cursor string) (r wire.Moved, err error) {
	q := &jobpb.JobQuery{Topic: m.Topic, Filter: m.filter, Max: 1}
	if len(m.States) == 1 {
		q.State = m.States[0]
	}
	if err := job.CheckJobQuery(q); err != nil {
		return r, job.Under("filter", err)
	}
	if cursor != "" {
		if q.After, err = parseCursor(q, cursor); err == nil {
			err = job.CheckJobQuery(q)
		}
		if err != nil {
			return r, err
		}
	}
	moved, rest, err := s.changeListed(x, q, &jobpb.Condition{States: m.States}, m.most, func(ref *jobpb.Ref, _ *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: ref, To: m.To}}}
	})
	return wire.Moved{Moved: moved, Skipped: rest.Skipped, Reason: rest.Reason, More: rest.More, Next: rest.Next}, err
}
