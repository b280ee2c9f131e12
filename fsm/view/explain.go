package view

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// maxAhead bounds the jobs that Explain counts before one.
const maxAhead = 1000

// Explain returns why a job is not delivered yet, or was late; nil: there is no job with the
// id. nowMS is the reader's clock, because the state's does not move while nothing happens.
//
// It needs no records of its own. For example, a ready job of a topic that neither a pause
// nor a limit blocks waits for a consumer, because a waiting consumer gets it at once. What
// does not follow from the state is reported as not recorded.
func (v *View) Explain(id string, nowMS int64) (e *jobpb.Explanation, err error) {
	j, found, err := v.Job(id)
	if !found || err != nil {
		return nil, err
	}
	x := &explainer{job: j, e: &jobpb.Explanation{Id: j.Id, Seq: j.Seq, Topic: j.Topic, State: j.State, DueMs: j.DueMs}}
	err = v.With(func(r pebble.Reader) error {
		m, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		x.nowMS = max(nowMS, m.MaxClock())
		if err := record.ReadKey(r, record.AppendNameKey(nil, record.SpaceTopic, j.Topic), func(value []byte) error {
			x.topic, err = record.DecodeTopic(value)
			return err
		}); err != nil {
			return err
		}
		if x.settings, err = record.ReadSettings(r, j.Topic); err != nil {
			return err
		}
		if j.State == jobpb.State_STATE_READY || j.State == jobpb.State_STATE_DELAYED && j.DueMs <= x.nowMS {
			x.ahead, err = jobsAhead(r, x.topic, record.Place{Priority: j.Priority, Instant: j.DueMs, Seq: j.Seq})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	x.explain()
	return x.e, nil
}

// jobsAhead counts the ready jobs that are handed out before the one at a place, up to
// maxAhead.
func jobsAhead(r pebble.Reader, t record.Topic, at record.Place) (n uint64, err error) {
	if t.Counts[record.ListReady] == 0 {
		return 0, nil
	}
	s, err := record.PlacesFrom(r, record.ListID{Topic: t.Number, List: record.ListReady}, t.Heads[record.ListReady])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for n < maxAhead {
		p, ok, err := s.Next()
		if err != nil || !ok || p.Compare(at) >= 0 {
			return n, err
		}
		n++
	}
	return n, nil
}

// explainer makes one explanation.
type explainer struct {
	job      *jobpb.Job
	topic    record.Topic
	settings *jobpb.TopicSettings
	nowMS    int64
	ahead    uint64 // ready jobs that come first
	e        *jobpb.Explanation
}

func (x *explainer) add(c *jobpb.Cause) {
	c.LateMs = max(c.LateMs, 0)
	c.Text = job.CauseText(x.e, c, job.InstantAfter)
	x.e.Causes = append(x.e.Causes, c)
}

func (x *explainer) explain() {
	j := x.job
	switch j.State {
	case jobpb.State_STATE_RESERVED:
		x.delivered()
		x.add(&jobpb.Cause{Kind: jobpb.Cause_RESERVED, UntilMs: j.ReservedUntilMs, Consumer: j.ReservedBy})
	case jobpb.State_STATE_DEAD:
		x.add(&jobpb.Cause{Kind: jobpb.Cause_DEAD, AtMs: j.DiedMs, Reason: fmt.Sprintf("%.100s", j.Reason)})
	case jobpb.State_STATE_FINISHED:
		x.delivered()
		x.add(&jobpb.Cause{Kind: jobpb.Cause_FINISHED, AtMs: j.EndedMs})
	case jobpb.State_STATE_DELETED:
		x.add(&jobpb.Cause{Kind: jobpb.Cause_DELETED, AtMs: j.EndedMs})
	default:
		if j.ExpiresMs != 0 && j.ExpiresMs <= x.nowMS {
			x.expired()
			break
		}
		if j.DueMs > x.nowMS {
			x.add(&jobpb.Cause{Kind: jobpb.Cause_NOT_DUE, UntilMs: j.DueMs})
		} else {
			x.e.LateMs = x.nowMS - j.DueMs
			x.waiting()
		}
		x.expires()
	}
	x.target()
	x.e.Text = job.ExplanationText(x.e, job.InstantAfter)
}

// expires adds when a waiting job expires, if it does.
func (x *explainer) expires() {
	if at := x.job.ExpiresMs; at != 0 {
		x.add(&jobpb.Cause{Kind: jobpb.Cause_EXPIRES, UntilMs: at, Then: x.whenExpired()})
	}
}

// expired explains a job that has expired, which the next Advance or Reserve acts on.
func (x *explainer) expired() {
	j := x.job
	if x.e.LateMs = max(j.ExpiresMs-j.DueMs, 0); x.e.LateMs > 0 {
		x.before(x.e.LateMs)
	}
	x.add(&jobpb.Cause{Kind: jobpb.Cause_EXPIRED, AtMs: j.ExpiresMs, Then: x.whenExpired()})
}

func (x *explainer) whenExpired() string {
	if x.settings.GetExpiry() == jobpb.Expiry_EXPIRY_DEAD {
		return "dead"
	}
	return "dropped"
}

// waiting explains a job that is due and not reserved.
func (x *explainer) waiting() {
	t, due := &x.topic, x.job.DueMs
	end := x.nowMS // of the time before the pause
	if t.Paused() {
		end = min(max(due, t.PausedUntil-t.PauseMS), x.nowMS)
	}
	token := x.tokenAt()
	switch {
	case t.Paused() && t.PauseMS == job.NeverMS: // its beginning is unknown
		x.add(&jobpb.Cause{Kind: jobpb.Cause_PAUSED})
	case t.Paused():
		x.before(end - due)
		x.add(&jobpb.Cause{Kind: jobpb.Cause_PAUSED, LateMs: x.nowMS - end, UntilMs: t.PausedUntil})
	case x.full():
		x.unrecorded(end - due)
		x.add(&jobpb.Cause{Kind: jobpb.Cause_MAX_RESERVED, UntilMs: t.Heads[record.ListReserved].Instant, Count: t.Counts[record.ListReserved]})
	case token > 0: // known to be without a token from a whole one before it
		r := record.RateOf(x.settings)
		dry := max(due, min(token, end)-tokenMS(r))
		x.unrecorded(dry - due)
		until := token
		if token <= end {
			until = 0
		}
		x.add(&jobpb.Cause{Kind: jobpb.Cause_RATE, LateMs: min(token, end) - dry, UntilMs: until, Text: "rate limit of the topic, " + jobsOf(float64(r.PerMS)/1000) + " a second"})
		if token <= end {
			x.noConsumer(end - token)
		}
	case x.unhindered():
		x.noConsumer(end - due)
	default:
		x.unrecorded(end - due)
		x.noConsumer(0)
	}
	if x.ahead > 0 {
		text := "%d ready jobs of the topic come first"
		switch x.ahead {
		case 1:
			text = "%d ready job of the topic comes first"
		case maxAhead:
			text = "at least " + text
		}
		x.add(&jobpb.Cause{Kind: jobpb.Cause_JOBS_AHEAD, Count: x.ahead, Text: fmt.Sprintf(text, x.ahead)})
	}
}

// target explains why the leader cannot post a job that is not done: the topic's settings
// have changed since the job came into it.
func (x *explainer) target() {
	own, push := x.job.Options.GetPushUrl() != "", x.settings.GetPush()
	switch {
	case record.CheckPushURL(x.job.Topic, x.settings, x.job.Options.GetPushUrl()) == nil:
	case x.job.State == jobpb.State_STATE_FINISHED || x.job.State == jobpb.State_STATE_DELETED:
	case !own:
		x.add(&jobpb.Cause{Kind: jobpb.Cause_NO_TARGET, Text: "it cannot be posted: it has no push_url, and the topic's push has no url"})
	case push == nil:
		x.add(&jobpb.Cause{Kind: jobpb.Cause_NO_TARGET, Text: "it is not posted to its push_url: the topic has no push"})
	default:
		x.add(&jobpb.Cause{Kind: jobpb.Cause_NO_TARGET, Text: "it is not posted to its push_url: the topic's push does not have job_urls"})
	}
}

// delivered explains how late the last delivery was, if its instant is known from the
// history.
func (x *explainer) delivered() {
	handedOut, due := int64(0), x.e.DueMs
	for _, e := range x.job.History {
		switch {
		case e.Kind == jobpb.Event_RESERVED:
			handedOut = e.AtMs
		case e.DueMs != 0:
			due = e.DueMs
		}
	}
	if handedOut == 0 && x.job.State == jobpb.State_STATE_RESERVED && x.untouched() {
		handedOut = x.job.ModifiedMs
	}
	if handedOut <= due {
		return
	}
	x.e.LateMs = handedOut - due
	x.before(x.e.LateMs)
}

// before explains a time that ended before the present causes began.
func (x *explainer) before(lateMS int64) {
	if x.unhindered() {
		if lateMS > 0 {
			x.noConsumer(lateMS)
		}
		return
	}
	x.unrecorded(lateMS)
}

// untouched reports whether the last change of a reserved job was that it was handed out.
func (x *explainer) untouched() bool {
	j := x.job
	return j.Revision == 1+j.Reserves+j.Timeouts+j.Releases+j.Buries+j.Kicks
}

// unhindered reports whether neither a limit nor a pause, other than one that is in force
// now, can have held back a job: then it waited for consumers alone. It goes by the topic's
// present settings.
func (x *explainer) unhindered() bool {
	pauses := x.topic.Pauses
	if x.topic.Paused() {
		pauses--
	}
	return pauses == 0 && x.settings.GetMaxReserved() == 0 && x.settings.GetRateMilli() == 0
}

func (x *explainer) full() bool {
	most := x.settings.GetMaxReserved()
	return most > 0 && x.topic.Counts[record.ListReserved] >= most
}

// tokenAt returns when the topic's bucket got, or gets, the token that the next job takes; 0:
// it has no rate, or the instant is unknown.
func (x *explainer) tokenAt() int64 {
	r, b := record.RateOf(x.settings), x.topic.Bucket
	if b == nil || r.PerMS == 0 {
		return 0
	}
	at := r.Until(b, record.Token)
	if b.Tokens >= record.Token && b.Tokens < r.Burst { // it gained the rest since then
		at = b.At - (b.Tokens-record.Token)/r.PerMS
	}
	if b.Tokens >= r.Burst || at <= x.job.DueMs {
		return 0
	}
	return at
}

// tokenMS returns how long a bucket takes to gain a token.
func tokenMS(r record.Rate) int64 { return (record.Token + r.PerMS - 1) / r.PerMS }

func (x *explainer) noConsumer(lateMS int64) {
	x.add(&jobpb.Cause{Kind: jobpb.Cause_NO_CONSUMER, LateMs: lateMS, Text: "no consumer waiting"})
}

func (x *explainer) unrecorded(lateMS int64) {
	if lateMS > 0 {
		x.add(&jobpb.Cause{Kind: jobpb.Cause_NOT_RECORDED, LateMs: lateMS, Text: "not recorded (a limit, a pause or no consumer waiting)"})
	}
}

func jobsOf(n float64) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%g jobs", n)
}
