package api

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// limitsRequest has the settings that hold back jobs which are ready.
type limitsRequest struct {
	MaxReserved member[int64]   `json:"max_reserved"`
	Rate        member[float64] `json:"rate"`
	Burst       member[int64]   `json:"burst"`
}

// applyLimits changes s as the request says.
func (q *limitsRequest) applyLimits(s *jobpb.TopicSettings) (err error) {
	if q.MaxReserved.given {
		s.MaxReserved = nil
	}
	if q.MaxReserved.set {
		if q.MaxReserved.v < 1 {
			return job.Invalid("max_reserved", "is %d; it must be at least 1 (pause the topic to hand out nothing)", q.MaxReserved.v)
		}
		s.MaxReserved = new(uint64(q.MaxReserved.v))
	}
	if q.Rate.given {
		s.RateMilli = 0
	}
	if q.Rate.set {
		if s.RateMilli, err = thousandths(q.Rate.v); err != nil {
			return err
		}
	}
	if q.Burst.given {
		s.Burst = 0
	}
	if q.Burst.set {
		n, err := within("burst", q.Burst.v, job.MaxBurst)
		if err != nil {
			return err
		}
		s.Burst = uint32(n)
	}
	return nil
}

// thousandths reads a rate, which is exact, of a topic or a kick.
func thousandths(rate float64) (uint64, error) {
	// The negated form also refuses NaN.
	if !(rate >= 0.001 && rate <= job.MaxRateMilli/1000) {
		return 0, job.Invalid("rate", "is %g jobs a second; it must be between 0.001 and %d", rate, job.MaxRateMilli/1000)
	}
	milli := math.Round(rate * 1000)
	if milli/1000 != rate {
		return 0, job.Invalid("rate", "is %g jobs a second; it can have at most three decimals", rate)
	}
	return uint64(milli), nil
}

// limits adds the settings that are set.
func (w *writer) limits(s *jobpb.TopicSettings) {
	if s.MaxReserved != nil {
		w.number("max_reserved", *s.MaxReserved)
	}
	if s.RateMilli != 0 {
		w.float("rate", float64(s.RateMilli)/1000)
	}
	if s.Burst != 0 {
		w.number("burst", uint64(s.Burst))
	}
}
