package api

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// importItem is a job of an import: an add with its due time, and what the job had elsewhere.
type importItem struct {
	newJob
	State     opt[string] `json:"state"`
	CreatedAt timestamp   `json:"created_at"`
	DiedAt    timestamp   `json:"died_at"`
	Attempts  opt[int64]  `json:"attempts"`
	Reserves  opt[int64]  `json:"reserves"`
	Timeouts  opt[int64]  `json:"timeouts"`
	Releases  opt[int64]  `json:"releases"`
	Buries    opt[int64]  `json:"buries"`
	Kicks     opt[int64]  `json:"kicks"`
	Reason    opt[string] `json:"reason"`
	LastError opt[string] `json:"last_error"`
}

// importJobs handles POST /v1/import.
func (s *server) importJobs(x *call) error {
	var q batch[importItem]
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	now, items := time.Now(), q.Jobs.v
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		return items[i].op(s, now)
	}, (*writer).added)
}

func (q *importItem) op(s *server, now time.Time) (*jobpb.Op, error) {
	if !q.DueAt.set {
		return nil, job.Invalid("due_at", "is missing; an imported job keeps its due time")
	}
	made := &jobpb.ImportJob{DelayMs: job.MillisOf(q.Delay.v), Reason: q.Reason.v, LastError: q.LastError.v}
	switch q.State.v {
	case "", "delayed", "ready": // which of the two depends on the due time
	case "dead":
		made.Dead = true
	default:
		return nil, job.Invalid("state", "is %.40q; it takes delayed, ready and dead", q.State.v)
	}
	q.Delay = opt[float64]{} // not that of an add
	var err error
	if made.Add, err = q.add(s, now); err != nil {
		return nil, err
	}
	made.Add.TopicTtr, made.Add.TopicAttempts = false, false
	if err := q.setPast(made, now); err != nil {
		return nil, err
	}
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: made}}, nil
}

// setPast sets what happened to the job before.
func (q *importItem) setPast(to *jobpb.ImportJob, now time.Time) (err error) {
	to.CreatedMs = now.UnixMilli()
	if q.CreatedAt.set {
		if to.CreatedMs, err = q.CreatedAt.millis("created_at", now); err != nil {
			return err
		}
	}
	if to.Dead {
		to.DiedMs = now.UnixMilli()
	}
	if q.DiedAt.set {
		if to.DiedMs, err = q.DiedAt.millis("died_at", now); err != nil {
			return err
		}
	}
	for _, n := range []struct {
		field string
		given opt[int64]
		to    *uint32
	}{
		{"attempts", q.Attempts, &to.Attempts}, {"reserves", q.Reserves, &to.Reserves}, {"timeouts", q.Timeouts, &to.Timeouts},
		{"releases", q.Releases, &to.Releases}, {"buries", q.Buries, &to.Buries}, {"kicks", q.Kicks, &to.Kicks},
	} {
		if *n.to, err = uint32Of(n.field, n.given.v); err != nil {
			return err
		}
	}
	return nil
}
