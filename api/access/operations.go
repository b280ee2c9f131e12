package access

import (
	"context"

	"tarry/auth"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// checkOp refuses an operation that names a topic on which the caller may not do it. An
// operation on a job names no topic: the state machine knows where the job is.
func (q *Queue) checkOp(ctx context.Context, op *jobpb.Op) (err error) {
	if q.checks.State().Mode() != jobpb.AuthMode_AUTH_ENFORCE {
		return nil // the state machine does it, and reports what it would deny
	}
	oplog.Needs(op, func(verbs auth.Verbs, topic string) bool {
		err = q.checks.Allow(ctx, verbs, topic)
		return err == nil
	})
	return err
}
