package fsm

import (
	"math"

	"tarry/job/jobpb"
)

// limits bound the reserved jobs of a topic and the rate at which its jobs are handed out.
// They are part of the state, so they hold for the whole cluster.
type limits struct {
	maxReserved uint64 // 0: none
	rate        rate   // zero: none; else the topic has a bucket
}

// limitsOf returns the limits in a topic's settings; nil: none.
func limitsOf(s *jobpb.TopicSettings) *limits {
	l := limits{maxReserved: s.GetMaxReserved(), rate: rateOf(s)}
	if l == (limits{}) {
		return nil
	}
	return &l
}

// updateLimits puts the settings of a topic into force. A new rate starts with a full
// bucket; a changed one keeps the tokens.
func (x *tx) updateLimits(t *topic) {
	x.touch(t) // fills the bucket at the old rate
	var old rate
	if t.limits != nil {
		old = t.limits.rate
	}
	t.limits = limitsOf(t.settings)
	switch {
	case t.limits == nil || t.limits.rate == rate{}:
		t.bucket = nil
	case t.bucket == nil:
		t.bucket = &bucket{tokens: t.limits.rate.burst, at: x.clock(), since: x.clock()}
	case t.limits.rate != old:
		t.bucket.tokens = min(t.bucket.tokens, t.limits.rate.burst)
		t.bucket.since = x.clock()
	}
}

const unlimited = math.MaxUint64

// slots returns how many more jobs max_reserved allows.
func (t *topic) slots() uint64 {
	if t.limits == nil || t.limits.maxReserved == 0 {
		return unlimited
	}
	return t.limits.maxReserved - min(t.counts[listReserved], t.limits.maxReserved)
}

// allowance returns how many jobs of the topic may be handed out at an instant.
func (t *topic) allowance(instant int64) uint64 {
	if t.limits == nil {
		return unlimited
	}
	n := t.slots()
	if t.bucket != nil {
		n = min(n, uint64(t.bucket.after(t.limits.rate, instant)/token))
	}
	return n
}

// refuseHandOut refuses with the limit that is reached.
func (x *tx) refuseHandOut(t *topic, r *jobpb.Result) error {
	if t.slots() == 0 {
		return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has %d reserved jobs; its limit, max_reserved, is %d",
			t.name, t.counts[listReserved], t.limits.maxReserved)
	}
	return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has handed out all that its rate of %g jobs a second allows for now",
		t.name, float64(t.limits.rate.perMS)/1000)
}

func (t *topic) takeToken(clock int64) {
	if t.bucket != nil {
		t.bucket.fill(t.limits.rate, clock)
		t.bucket.tokens -= token
	}
}

// refundToken gives back the token of a job that its consumer never saw.
func (t *topic) refundToken(clock, handedOut int64) {
	if t.bucket != nil {
		t.bucket.fill(t.limits.rate, clock)
		t.bucket.refund(t.limits.rate, handedOut)
	}
}

// applyLimits reduces a change to what the limits allow, and returns when the topic needs
// an Advance for its next token; 0: never.
func (t *topic) applyLimits(change *TopicChange) (next int64) {
	slots, tokens := t.slots(), uint64(unlimited)
	if t.bucket != nil {
		tokens = uint64(t.bucket.tokens / token)
	}
	ready := change.Ready
	change.Ready = min(ready, slots, tokens)
	change.Held = min(ready, tokens) - change.Ready
	switch {
	case tokens == 0:
		at := t.limits.rate.until(t.bucket, token)
		if ready > 0 && slots > 0 {
			next, change.NextDue = at, at
			break
		}
		if slots == 0 {
			change.NextDue = t.heads[listReserved].instant
		}
		if change.NextDue != 0 {
			change.NextDue = max(change.NextDue, at)
		}
	case slots == 0:
		// A job that falls due changes nothing; the end of a reservation does.
		change.NextDue = t.heads[listReserved].instant
	case ready > change.Ready:
		// The rest can be had only after a change of the topic.
		change.NextDue = 0
	}
	return next
}
