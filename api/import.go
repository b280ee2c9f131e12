package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// importJobs handles POST /v1/import.
func (s *server) importJobs(x *call) error {
	var q wire.Batch[wire.ImportItem]
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.Check(); err != nil {
		return err
	}
	now, items := time.Now(), q.Jobs.V
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		return s.importOp(&items[i], now)
	}, (*writer).added)
}

func (s *server) importOp(q *wire.ImportItem, now time.Time) (*jobpb.Op, error) {
	if !q.DueAt.Set {
		return nil, job.Invalid("due_at", "is missing; an imported job keeps its due time")
	}
	made := &jobpb.ImportJob{DelayMs: job.MillisOf(q.Delay.V), Reason: q.Reason.V, LastError: q.LastError.V}
	switch q.State.V {
	case "", "delayed", "ready": // which of the two depends on the due time
	case "dead":
		made.Dead = true
	default:
		return nil, job.Invalid("state", "is %.40q; it takes delayed, ready and dead", q.State.V)
	}
	q.Delay = wire.Opt[float64]{} // not that of an add
	var err error
	if made.Add, err = s.jobOf(&q.NewJob, now); err != nil {
		return nil, err
	}
	made.Add.TopicTtr, made.Add.TopicAttempts = false, false
	if err := q.SetPast(made, now); err != nil {
		return nil, err
	}
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: made}}, nil
}
