package api

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// reservationsRequest says who may end a reservation, and until when.
type reservationsRequest struct {
	LateFinish   member[string] `json:"late_finish"`
	RequireToken member[bool]   `json:"require_token"`
}

// lateFinishes are what may become of a finish whose reservation has expired.
var lateFinishes = map[string]jobpb.LateFinish{
	"accept": jobpb.LateFinish_LATE_FINISH_ACCEPT,
	"refuse": jobpb.LateFinish_LATE_FINISH_REFUSE,
}

// applyReservations changes s as the request says.
func (q *reservationsRequest) applyReservations(s *jobpb.TopicSettings) error {
	if q.LateFinish.given {
		what, ok := lateFinishes[q.LateFinish.or("accept")]
		if !ok {
			return job.Invalid("late_finish", "is %.40q; it takes accept and refuse", q.LateFinish.v)
		}
		s.LateFinish = what
	}
	if q.RequireToken.given {
		s.RequireToken = q.RequireToken.v
	}
	return nil
}

// reservations adds what differs from the defaults.
func (w *writer) reservations(s *jobpb.TopicSettings) {
	if s.LateFinish == jobpb.LateFinish_LATE_FINISH_REFUSE {
		w.text("late_finish", "refuse")
	}
	if s.RequireToken {
		w.boolean("require_token", true)
	}
}
