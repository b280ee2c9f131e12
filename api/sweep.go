package api

import (
	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// kickTopic handles POST /v1/topics/{topic}/kick.
func (s *server) kickTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q wire.KickTopicRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	most, filter, err := q.Sweep.Check()
	if err != nil {
		return err
	}
	rate, err := q.KickOptions.Check()
	if err != nil {
		return err
	}
	return s.sweep(x, "kicked", most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{
			Topic: topic, Max: uint32(min(left, sweepStep)), RateMilli: rate, ToTopic: q.ToTopic.V,
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
}

// releaseTopic handles POST /v1/topics/{topic}/release.
func (s *server) releaseTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q wire.ReleaseTopicRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	most, filter, err := q.Check()
	if err != nil {
		return err
	}
	return s.sweep(x, "released", most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{
			Topic: topic, Consumer: q.Consumer.V, Reason: q.Reason.V, Max: uint32(min(left, sweepStep)),
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
}

// purge handles POST /v1/topics/{topic}/purge.
func (s *server) purge(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q wire.PurgeRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	state := wire.StatesByName[q.State.V]
	if state == jobpb.State_STATE_NONE || state == jobpb.State_STATE_RESERVED || state > jobpb.State_STATE_DEAD {
		return job.Invalid("state", "is %.40q; it takes dead, delayed or ready", q.State.V)
	}
	most, filter, err := q.Check()
	if err != nil {
		return err
	}
	return s.sweep(x, "deleted", most, func(left uint64, last *jobpb.Result) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{
			Topic: topic, State: state, Max: uint32(min(left, sweepStep)), DropEmpty: q.DropEmpty.V,
			Sweep: &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: last.GetDetails().GetNext()},
		}}}
	})
}
