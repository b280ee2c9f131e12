package wire

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

type PreviewRequest struct {
	Times
	After Timestamp  `json:"after"`
	Max   Opt[int64] `json:"max"`
	Count Opt[int64] `json:"count"` // the old name of max
}

// Times is the times of a schedule in a request.
type Times struct {
	Spec  Opt[string] `json:"spec"`
	Zone  Opt[string] `json:"zone"`
	Start Timestamp   `json:"start"`
	End   Timestamp   `json:"end"`
}

// ScheduleRequest is a whole schedule.
type ScheduleRequest struct {
	Times
	Jitter      Opt[float64]    `json:"jitter"`
	Overlap     Opt[string]     `json:"overlap"`
	Missed      Opt[string]     `json:"missed"`
	MissedMax   Opt[int64]      `json:"missed_max"`
	MissedAfter Opt[float64]    `json:"missed_after"`
	Job         Opt[AddRequest] `json:"job"`
	Paused      Opt[bool]       `json:"paused"`
	IfRevision  Opt[int64]      `json:"if_revision"`
}

const defaultZone = "UTC"

const defaultMissedMax = 10

var OverlapNames = []string{jobpb.Overlap_OVERLAP_ALLOW: "allow", jobpb.Overlap_OVERLAP_SKIP: "skip"}

var MissedNames = []string{jobpb.Missed_MISSED_SKIP: "skip", jobpb.Missed_MISSED_ONE: "one", jobpb.Missed_MISSED_ALL: "all"}

// Fill sets the times of the schedule.
func (q *Times) Fill(s *jobpb.Schedule, now time.Time) (err error) {
	s.Spec, s.Zone = q.Spec.V, q.Zone.Or(defaultZone)
	if !q.Spec.Set {
		return job.Invalid("spec", "is missing; it takes a cron expression, such as 30 2 * * *, or @every 90s")
	}
	if q.Start.Set {
		if s.StartMs, err = q.Start.Millis("start", now); err != nil {
			return err
		}
	}
	if q.End.Set {
		if s.EndMs, err = q.End.Millis("end", now); err != nil {
			return err
		}
	}
	return job.CheckTimes(s)
}

// ScheduleRevision parses the condition on a revision; 0 for none.
func ScheduleRevision(q Opt[int64]) (uint64, error) {
	if q.Set && q.V < 1 {
		return 0, job.Invalid("if_revision", "is %d; it must be at least 1", q.V)
	}
	return uint64(q.V), nil
}

func (q *ScheduleRequest) FillPolicies(s *jobpb.Schedule) (err error) {
	s.JitterMs, s.MissedAfterMs = job.MillisOf(q.Jitter.V), job.MillisOf(q.MissedAfter.Or(job.DefaultMissedAfter.Seconds()))
	overlap, err := WordOf("overlap", q.Overlap, OverlapNames)
	if err != nil {
		return err
	}
	missed, err := WordOf("missed", q.Missed, MissedNames)
	if err != nil {
		return err
	}
	s.Overlap, s.Missed = jobpb.Overlap(overlap), jobpb.Missed(missed)
	most := q.MissedMax
	if s.Missed == jobpb.Missed_MISSED_ALL {
		most.Set, most.V = true, most.Or(defaultMissedMax)
	}
	if most.Set {
		s.MissedMax, err = Within("missed_max", most.V, job.MaxScheduleRuns)
	}
	return err
}

// WordOf finds a word in a list; the first is the default.
func WordOf(field string, v Opt[string], names []string) (int, error) {
	if !v.Set {
		return 0, nil
	}
	for i, name := range names {
		if v.V == name {
			return i, nil
		}
	}
	return 0, job.Invalid(field, "is %.40q; it takes one of: %s", v.V, OrNone(names))
}

type RunRequest struct {
	Key Opt[string] `json:"key"`
}
