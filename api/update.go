package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

func (s *server) updateOp(q *wire.UpdateRequest, ref *jobpb.Ref, now time.Time) (*jobpb.Op, error) {
	update := &jobpb.Update{Ref: ref}
	var err error
	if update.Condition, err = q.Condition.Proto(); err != nil {
		return nil, err
	}
	if err := q.SetDue(update, now); err != nil {
		return nil, err
	}
	if q.TTR.Set {
		update.TtrMs = new(job.MillisOf(q.TTR.V))
	}
	if q.Priority.Set {
		priority, err := wire.Uint32Of("priority", q.Priority.V)
		if err != nil {
			return nil, err
		}
		update.Priority = &priority
	}
	if q.MaxAttempts.Set {
		attempts, err := wire.Uint32Of("max_attempts", q.MaxAttempts.V)
		if err != nil {
			return nil, err
		}
		update.MaxAttempts = &attempts
	}
	if q.Body.Set || q.BodyBase64.Set {
		b, err := wire.PickBody(q.Body, q.BodyBase64, s.MaxBodyBytes)
		if err != nil {
			return nil, err
		}
		update.Body, update.BodyKind = b.Bytes, b.Kind
	}
	if err := q.SetOptions(update); err != nil {
		return nil, err
	}
	if q.ExpiresAt.Set {
		at, err := q.Expiry(now)
		if err != nil {
			return nil, err
		}
		update.ExpiresMs = &at
	}
	if q.PushURL.Set {
		url, err := s.pushURL(q.PushURL, true)
		if err != nil {
			return nil, err
		}
		update.PushUrl = &url
	}
	if update.DelayMs == nil && update.DueMs == nil && update.TtrMs == nil && update.Priority == nil && update.MaxAttempts == nil && update.Body == nil &&
		update.Backoff == nil && update.Headers == nil && update.ExpiresMs == nil && update.PushUrl == nil {
		return nil, job.Errorf(job.CodeInvalid, "the request changes nothing; give at least one of delay, due_at, expires_at, ttr, priority, max_attempts, backoff, headers, push_url and body")
	}
	return &jobpb.Op{Kind: &jobpb.Op_Update{Update: update}}, nil
}

// updateJob handles PATCH /v1/jobs/{id}.
func (s *server) updateJob(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	var q wire.UpdateRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return err
	}
	op, err := s.updateOp(&q, &jobpb.Ref{Id: id}, time.Now())
	if err != nil {
		return err
	}
	c, err := wire.QueryCondition(x.r.URL.Query())
	if err != nil {
		return err
	}
	if c != nil && op.GetUpdate().Condition != nil {
		return job.Invalid("if_revision", "and if_state are given in the query and in the request; give them in the query")
	}
	if c != nil {
		op.GetUpdate().Condition = c
	}
	return s.changed(x, op)
}
