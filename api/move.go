package api

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

type moveTopicRequest struct {
	sweepRequest
	To     opt[string]               `json:"to"`
	States list[string, statesLimit] `json:"states"`
	Cursor opt[string]               `json:"cursor"`
}

// topicMove is a moveTopicRequest, checked.
type topicMove struct {
	*jobpb.MoveJobs
	most   uint64
	filter *jobpb.Filter
	listed bool // jobs are listed and moved one by one
}

// moveTopic handles POST /v1/topics/{topic}/move. Without a limit and a filter the state machine
// moves what there is. Else the jobs are listed, and those of a page are moved in one command.
func (s *server) moveTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q moveTopicRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	m, err := q.plan(topic)
	if err != nil {
		return err
	}
	if m.listed {
		return s.moveListed(x, m, q.Cursor.v)
	}
	return s.sweep(x, "moved", math.MaxUint64, func(uint64, *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m.MoveJobs}}
	})
}

// plan checks the request.
func (q *moveTopicRequest) plan(topic string) (*topicMove, error) {
	if q.States.set && len(q.States.v) == 0 {
		return nil, job.Invalid("states", "is empty; it takes a list of delayed, ready, reserved and dead")
	}
	m := &topicMove{MoveJobs: &jobpb.MoveJobs{Topic: topic, To: q.To.v, Max: sweepStep}}
	for _, name := range q.States.v {
		state, ok := statesByName[name]
		if !ok || state > jobpb.State_STATE_DEAD {
			return nil, job.Invalid("states", "has %.40q; it takes delayed, ready, reserved and dead", name)
		}
		m.States = append(m.States, state)
	}
	if err := check(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m.MoveJobs}}); err != nil {
		return nil, err
	}
	if !q.Max.set && !q.Filter.set && !q.Cursor.set {
		return m, nil // all is the default here
	}
	var err error
	m.most, m.filter, err = q.check()
	m.listed = q.Max.set || m.filter != nil || q.Cursor.set
	return m, err
}

// moveListed moves jobs that it lists. The operation has no condition: a job that has changed
// since it was listed moves as well.
func (s *server) moveListed(x *call, m *topicMove, cursor string) error {
	q := &jobpb.JobQuery{Topic: m.Topic, Filter: m.filter, Max: 1}
	if len(m.States) == 1 {
		q.State = m.States[0]
	}
	if err := job.CheckJobQuery(q); err != nil {
		return job.Under("filter", err)
	}
	if cursor != "" {
		var err error
		if q.After, err = parseCursor(q, cursor); err == nil {
			err = job.CheckJobQuery(q)
		}
		if err != nil {
			return err
		}
	}
	done, err := s.changeAll(x, q, &jobpb.Condition{States: m.States}, m.most, func(ref *jobpb.Ref, _ *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: ref, To: m.To}}}
	})
	if err != nil {
		return err
	}
	return x.changedJobs("moved", q, &done)
}
