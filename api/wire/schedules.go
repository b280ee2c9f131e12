package wire

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

type PreviewRequest struct {
	Times `required:"spec"`
	After Timestamp  `json:"after" help:"The first run after this instant; now unless given."`
	Max   Opt[int64] `json:"max" help:"How many runs; 10 unless given." limit:"preview"`
	Count Opt[int64] `json:"count" help:"The old name of max." limit:"preview"` // the old name of max
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
	Times       `required:"spec"`
	Jitter      Opt[float64]    `json:"jitter" help:"By how much runs are spread at random, in seconds." limit:"jitter"`
	Overlap     Opt[string]     `json:"overlap"`
	Missed      Opt[string]     `json:"missed"`
	MissedMax   Opt[int64]      `json:"missed_max"`
	MissedAfter Opt[float64]    `json:"missed_after"`
	Job         Opt[AddRequest] `json:"job" required:"job"`
	Paused      Opt[bool]       `json:"paused"`
	IfRevision  Opt[int64]      `json:"if_revision" help:"Only if the schedule has this revision; 0: only if there is none." limit:"positive"`
}

const defaultZone = "UTC"

const defaultMissedMax = 10

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
	Key Opt[string] `json:"key" help:"Makes a call that is repeated start one run only." limit:"run key"`
}

type Schedule struct {
	Schedule    string         `json:"schedule"`
	Revision    uint64         `json:"revision"`
	Spec        string         `json:"spec"`
	Zone        string         `json:"zone"`
	Start       Time           `json:"start,omitzero"`
	End         Time           `json:"end,omitzero"`
	Jitter      Seconds        `json:"jitter" help:"By how much runs are spread at random, in seconds." limit:"jitter"`
	Overlap     string         `json:"overlap"`
	Missed      string         `json:"missed"`
	MissedMax   uint64         `json:"missed_max,omitzero"`
	MissedAfter Seconds        `json:"missed_after"`
	Paused      bool           `json:"paused"`
	Trouble     string         `json:"trouble,omitzero" help:"Why the schedule was paused by itself."`
	NextAt      Time           `json:"next_at,omitzero" help:"When it runs next."`
	CreatedAt   Time           `json:"created_at"`
	ChangedAt   Time           `json:"changed_at" help:"When it was changed."`
	Counts      ScheduleCounts `json:"counts" help:"How many runs there were."`
	Job         ScheduleJob    `json:"job"`
}

type ScheduleReply struct{ Schedule }

type SchedulePage struct {
	Schedules []Schedule `json:"schedules" help:"The schedules."`
	Next      string     `json:"next,omitzero"`
}

type ScheduleCounts struct {
	Started uint64 `json:"started" help:"Runs that added a job."`
	Skipped uint64 `json:"skipped" help:"Runs left out because of an overlap."`
	Missed  uint64 `json:"missed" help:"Runs that were missed."`
	Refused uint64 `json:"refused" help:"Runs whose job was refused."`
}

type ScheduleJob struct {
	Topic       string            `json:"topic"`
	Priority    uint64            `json:"priority"`
	TTR         Seconds           `json:"ttr,omitzero"`
	MaxAttempts uint64            `json:"max_attempts,omitzero"`
	Backoff     Backoff           `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitzero"`
	PushURL     string            `json:"push_url,omitzero"`
	Body        Any               `json:"body,omitzero"`
	BodyBase64  string            `json:"body_base64,omitzero"`
}

type SchedulePut struct {
	Schedule string `json:"schedule"`
	Revision uint64 `json:"revision"`
	Existing bool   `json:"existing"`
	Replaced bool   `json:"replaced,omitzero"`
}

type SchedulePause struct {
	Schedule string `json:"schedule"`
	Revision uint64 `json:"revision"`
	Paused   bool   `json:"paused"`
}

type ScheduleDeleted struct {
	Schedule string `json:"schedule"`
}

type Preview struct {
	Runs []PlannedRun `json:"runs"`
}

type PlannedRun struct {
	PlannedAt Time   `json:"planned_at"`
	Local     string `json:"local" help:"The same in the schedule's time zone."`
}

type Runs struct {
	Runs []Run `json:"runs"`
}

type Run struct {
	PlannedAt Time   `json:"planned_at,omitzero"`
	At        Time   `json:"at"`
	Outcome   string `json:"outcome" help:"What came of it."`
	Now       bool   `json:"now,omitzero" help:"Whether it was asked for by a call."`
	Count     uint64 `json:"count,omitzero"`
	ID        string `json:"id,omitzero" help:"The id of the job that it added."`
	Seq       uint64 `json:"seq,omitzero"`
	Code      string `json:"code,omitzero"`
}
