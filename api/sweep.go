package api

import (
	"context"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// sweepStep is how many jobs one command of a sweep examines and changes at most, so that
// it does not delay other commands for long.
const sweepStep = 1000

// repeat applies the commands that step returns, one after the other. It ends when a
// command was the last or most jobs are done. It also ends, and reports that there is
// more, when half of the call's timeout has passed or when a command after the first was
// certainly not applied. step gets the number of jobs left and the previous result, nil
// at first.
func (s *server) repeat(x *call, most uint64, step func(left uint64, last *jobpb.Result) *jobpb.Op) (done uint64, more bool, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	return s.repeatUntil(ctx, time.Now().Add(s.Timeout/2), 0, most, step)
}

// repeatUntil is repeat until an instant, for a call that has done some jobs before.
func (s *server) repeatUntil(ctx context.Context, end time.Time, done, most uint64, step func(left uint64, last *jobpb.Result) *jobpb.Op) (uint64, bool, error) {
	var last *jobpb.Result
	for {
		r, err := doOne(ctx, s.Queue, step(most-done, last))
		switch {
		case err == nil:
		case done == 0:
			return 0, false, err
		case outcomes[job.CodeOf(err)] == "not_applied":
			return done, true, nil // the next call gets the error
		default:
			return 0, false, job.Unknown("the first %d jobs were done; then: %w", done, err)
		}
		last, done = r, done+uint64(r.Count)
		if r.GetDetails().GetNext() == nil && !r.More {
			return done, false, nil
		}
		if done >= most || !time.Now().Before(end) {
			return done, true, nil
		}
	}
}

// sweep is repeat, and responds with how many jobs there were, as word, and whether there
// are more.
func (s *server) sweep(x *call, word string, most uint64, step func(left uint64, last *jobpb.Result) *jobpb.Op) error {
	done, more, err := s.repeat(x, most, step)
	if err != nil {
		return err
	}
	x.swept(word, done, more)
	return nil
}

// swept responds with how many jobs a sweep has changed, as word, and whether there are more.
func (x *call) swept(word string, done uint64, more bool) {
	x.json.success()
	x.json.number(word, done)
	x.json.booleanIfTrue("more", more)
	x.json.endObject()
}

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
