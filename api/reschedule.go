package api

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// reschedule is a wire.RescheduleRequest, checked.
//
// Jobs are found in the order of their due times, and a job with another due time has another
// place in that order. So that none is changed twice, whether the job is met again in the same
// call, the next one, or one that is repeated because its response was lost:
//
//   - The due time of a spread job depends on its seq. Where the job is met again, it is
//     already due when it should be.
//   - Jobs are postponed in windows of time as long as the postponement, the last window
//     first. So a job moves to a window that is done, or out of the range. A call ends with
//     the first window in which it changed jobs: its cursor never covers two.
type reschedule struct {
	query            *jobpb.JobQuery
	most             uint64
	from, to         int64 // the range, in Unix milliseconds
	spread, postpone int64 // one of them is 0; in milliseconds
	earlier          bool
	windowEnd        int64 // of the window in which the call begins
}

// maxWindows bounds the windows of a postponement.
const maxWindows = 10_000

// rescheduleTopic handles POST /v1/topics/{topic}/reschedule.
func (s *server) rescheduleTopic(x *call, q *wire.RescheduleRequest) (r wire.Rescheduled, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	p, err := planReschedule(q, topic)
	if err != nil {
		return r, err
	}
	b, cancel := s.bulk(x, p.most)
	defer cancel()
	b.repeatable = true
	if _, err := b.run(func(left uint64) (bool, error) { return p.page(b, left, &r.Unchanged) }); err != nil {
		return r, err
	}
	r.Rescheduled, r.Skipped, r.Reason = b.done, b.skipped, b.reason
	if p.windowEnd > p.from {
		place, err := cursorOf(p.query, b.next)
		if err != nil {
			return r, err
		}
		r.More, r.Next = true, strconv.FormatInt(p.windowEnd, 10)+"."+place
	}
	return r, nil
}

// planReschedule checks the request.
func planReschedule(q *wire.RescheduleRequest, topic string) (*reschedule, error) {
	most, filter, err := q.Check()
	if err != nil {
		return nil, err
	}
	p := &reschedule{most: most, from: filter.GetDueFromMs(), to: filter.GetDueToMs(), earlier: q.Earlier.V}
	switch {
	case p.from == 0:
		return nil, job.Invalid("filter.due_from", "is missing; filter.due_from and filter.due_to say which jobs are rescheduled")
	case p.to == 0:
		return nil, job.Invalid("filter.due_to", "is missing; filter.due_from and filter.due_to say which jobs are rescheduled")
	case q.Spread.Set == q.Postpone.Set:
		return nil, job.Invalid("spread", "or postpone must be given, and not both; both are in seconds")
	case q.Earlier.Set && !q.Spread.Set:
		return nil, job.Invalid("earlier", "is only for spread")
	}
	p.query = &jobpb.JobQuery{Topic: topic, State: jobpb.State_STATE_DELAYED, Filter: filter, Max: 1}
	if err := job.CheckJobQuery(p.query); err != nil {
		return nil, job.Under("filter", err)
	}
	if q.Spread.Set {
		p.spread, err = atLeastSecond("spread", q.Spread.V)
	} else {
		p.postpone, err = atLeastSecond("postpone", q.Postpone.V)
	}
	if err != nil {
		return nil, err
	}
	if p.postpone > 0 && (p.to-p.from)/p.postpone >= maxWindows {
		return nil, job.Invalid("postpone", "is less than a %dth of the time from filter.due_from to filter.due_to; use a shorter range or postpone by more", maxWindows)
	}
	p.setWindow(p.to)
	return p, p.goOn(q.Cursor.V)
}

// atLeastSecond converts a duration of a request, from a second to the longest delay.
func atLeastSecond(field string, seconds float64) (int64, error) {
	if !(seconds >= 1) {
		return 0, job.Invalid(field, "is %g s; it must be between 1 and %g s", seconds, job.MaxDelay.Seconds())
	}
	return job.Millis(field, seconds, job.MaxDelay)
}

// setWindow makes the query that of the window with this end. A spread has one window.
func (p *reschedule) setWindow(end int64) {
	p.windowEnd = end
	p.query.Filter.DueFromMs, p.query.Filter.DueToMs = p.windowStart(), end
}

func (p *reschedule) windowStart() int64 {
	if p.postpone > 0 {
		return max(p.from, p.windowEnd-p.postpone)
	}
	return p.from
}

// goOn continues where a cursor says: in a window, behind a job of it.
func (p *reschedule) goOn(cursor string) error {
	if cursor == "" {
		return nil
	}
	text, place, _ := strings.Cut(cursor, ".")
	end, err := strconv.ParseInt(text, 10, 64)
	if err != nil || end <= p.from || end > p.to || p.postpone > 0 && (p.to-end)%p.postpone != 0 || p.postpone == 0 && end != p.to {
		return job.Invalid("cursor", "is not one that this call gave for the same range; begin without one")
	}
	p.setWindow(end)
	if place == "" {
		return nil
	}
	if p.query.After, err = parseCursor(p.query, place); err != nil {
		return err
	}
	return job.CheckJobQuery(p.query)
}

// page changes the jobs of a page, each on the condition that it has not changed since it was read,
// and reports whether the call goes on: it ends with a window in which it has changed jobs.
func (p *reschedule) page(b *bulk, left uint64, unchanged *uint64) (more bool, err error) {
	p.query.Max = uint32(min(sweepStep, left))
	now := time.Now().UnixMilli()
	err = b.page(p.query, func(j *jobpb.Job) *jobpb.Op {
		due := p.due(j.Seq, j.DueMs, now)
		if due == j.DueMs {
			*unchanged++
			return nil
		}
		condition := &jobpb.Condition{Revision: j.Revision, States: []jobpb.State{jobpb.State_STATE_DELAYED}, Topic: p.query.Topic}
		return &jobpb.Op{Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: &jobpb.Ref{Seq: j.Seq}, Condition: condition, DueMs: &due}}}
	})
	if err != nil || b.next != nil {
		return true, err
	}
	p.setWindow(p.windowStart())
	return p.windowEnd > p.from && b.done == 0, nil
}

// due returns the due time that a delayed job gets. For a spread it is the first of some
// places of the job that is not before its present one, or before now if earlier is asked for;
// if there is none, the present one. Which place it is stays the same when the job is there.
func (p *reschedule) due(seq uint64, dueMS, nowMS int64) int64 {
	if p.postpone > 0 {
		return dueMS + p.postpone
	}
	least := dueMS
	if p.earlier {
		least = nowMS
	}
	for try := range uint64(spreadTries) {
		if at := p.from + spreadPlace(seq, try, p.spread); at >= least {
			return at
		}
	}
	return dueMS
}

// spreadTries is how many places a job has in a spread. With as many, only jobs in the last
// tenth of the range are likely to stay where they are.
const spreadTries = 32

// spreadPlace returns a place of a job in [0, spread). The first places of jobs that were
// added one after the other fill the range evenly, as the fractions of multiples of the golden
// ratio do; the others are as if drawn at random.
func spreadPlace(seq, try uint64, spread int64) int64 {
	const golden = 0x9e3779b97f4a7c15 // its fraction, in 64 bits
	share := seq * golden
	if try > 0 { // SplitMix64
		share += try * golden * golden
		share = (share ^ share>>30) * 0xbf58476d1ce4e5b9
		share = (share ^ share>>27) * 0x94d049bb133111eb
		share ^= share >> 31
	}
	place, _ := bits.Mul64(share, uint64(spread))
	return int64(place)
}
