package fsm

import (
	"math"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// limits bound the reserved jobs of a topic and the rate at which its jobs are handed out.
// They are part of the state, so they hold for the whole cluster.
type limits struct {
	maxReserved uint64      // 0: none
	rate        record.Rate // zero: none; else the topic has a bucket
}

// limitsOf returns the limits in a topic's settings; nil: none.
func limitsOf(s *jobpb.TopicSettings) *limits {
	l := limits{maxReserved: s.GetMaxReserved(), rate: record.RateOf(s)}
	if l == (limits{}) {
		return nil
	}
	return &l
}

// updateLimits puts the settings of a topic into force. A new rate starts with a full
// bucket; a changed one keeps the tokens.
func (x *tx) updateLimits(t *topic) {
	x.touch(t) // fills the bucket at the old rate
	var old record.Rate
	if t.limits != nil {
		old = t.limits.rate
	}
	t.limits = limitsOf(t.settings)
	switch {
	case t.limits == nil || t.limits.rate == record.Rate{}:
		t.Bucket = nil
	case t.Bucket == nil:
		t.Bucket = &record.Bucket{Tokens: t.limits.rate.Burst, At: x.clock(), Since: x.clock()}
	case t.limits.rate != old:
		t.Bucket.Tokens = min(t.Bucket.Tokens, t.limits.rate.Burst)
		t.Bucket.Since = x.clock()
	}
}

const unlimited = math.MaxUint64

// slots returns how many more jobs max_reserved allows.
func (t *topic) slots() uint64 {
	if t.limits == nil || t.limits.maxReserved == 0 {
		return unlimited
	}
	return t.limits.maxReserved - min(t.Counts[record.ListReserved], t.limits.maxReserved)
}

// allowance returns how many jobs of the topic may be handed out at an instant.
func (t *topic) allowance(instant int64) uint64 {
	if t.limits == nil {
		return unlimited
	}
	n := t.slots()
	if t.Bucket != nil {
		n = min(n, uint64(t.Bucket.After(t.limits.rate, instant)/record.Token))
	}
	return n
}

// refuseHandOut refuses with the limit that is reached.
func (x *tx) refuseHandOut(t *topic, r *jobpb.Result) error {
	if t.slots() == 0 {
		return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has %d reserved jobs; its limit, max_reserved, is %d",
			t.name, t.Counts[record.ListReserved], t.limits.maxReserved)
	}
	return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has handed out all that its rate of %g jobs a second allows for now",
		t.name, float64(t.limits.rate.PerMS)/1000)
}

func (t *topic) takeToken(clock int64) {
	if t.Bucket != nil {
		t.Bucket.Fill(t.limits.rate, clock)
		t.Bucket.Tokens -= record.Token
	}
}

// refundToken gives back the token of a job that its consumer never saw.
func (t *topic) refundToken(clock, handedOut int64) {
	if t.Bucket != nil {
		t.Bucket.Fill(t.limits.rate, clock)
		t.Bucket.Refund(t.limits.rate, handedOut)
	}
}

// applyLimits reduces a change to what the limits allow, and returns when the topic needs
// an Advance for its next token; 0: never.
func (t *topic) applyLimits(change *TopicChange) (next int64) {
	slots, tokens := t.slots(), uint64(unlimited)
	if t.Bucket != nil {
		tokens = uint64(t.Bucket.Tokens / record.Token)
	}
	ready := change.Ready
	change.Ready = min(ready, slots, tokens)
	change.Held = min(ready, tokens) - change.Ready
	switch {
	case tokens == 0:
		at := t.limits.rate.Until(t.Bucket, record.Token)
		if ready > 0 && slots > 0 {
			next, change.NextDue = at, at
			break
		}
		if slots == 0 {
			change.NextDue = t.Heads[record.ListReserved].Instant
		}
		if change.NextDue != 0 {
			change.NextDue = max(change.NextDue, at)
		}
	case slots == 0:
		// A job that falls due changes nothing; the end of a reservation does.
		change.NextDue = t.Heads[record.ListReserved].Instant
	case ready > change.Ready:
		// The rest can be had only after a change of the topic.
		change.NextDue = 0
	}
	return next
}
