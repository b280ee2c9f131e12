package fsm

import (
	"math"

	"tarry/job/jobpb"
)

// The settings of a topic can limit how many of its jobs are reserved at once and
// how many are handed out per second. Both are enforced here, in the state, and so
// hold for the whole cluster, whichever nodes its consumers use and whichever node
// leads.

// limits are those of one topic. Topics without any have none.
type limits struct {
	maxReserved uint64 // 0: none
	rate        rate   // zero: none; else the topic has a bucket
}

// limitsOf reads them in a topic's settings; nil: there are none.
func limitsOf(s *jobpb.TopicSettings) *limits {
	l := limits{maxReserved: s.GetMaxReserved(), rate: rateOf(s)}
	if l == (limits{}) {
		return nil
	}
	return &l
}

// updateLimits puts the settings of a topic into force. A new rate starts with a full
// bucket; a changed one goes on with the tokens that are there.
func (x *tx) updateLimits(t *topic) {
	x.touch(t) // by the old rate up to now
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

// unlimited is an allowance without limit.
const unlimited = math.MaxUint64

// slots is how many more jobs of the topic may be reserved at once.
func (t *topic) slots() uint64 {
	if t.limits == nil || t.limits.maxReserved == 0 {
		return unlimited
	}
	return t.limits.maxReserved - min(t.counts[listReserved], t.limits.maxReserved)
}

// allowance is how many jobs of the topic may be handed out at an instant.
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

// refuseHandOut says which limit leaves no room for a job.
func (x *tx) refuseHandOut(t *topic, r *jobpb.Result) error {
	if t.slots() == 0 {
		return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has %d reserved jobs; its limit, max_reserved, is %d",
			t.name, t.counts[listReserved], t.limits.maxReserved)
	}
	return x.refuse(r, jobpb.Code_TOPIC_LIMITED, "topic %.40q has handed out all that its rate of %g jobs a second allows for now",
		t.name, float64(t.limits.rate.perMS)/1000)
}

// takeToken takes a token for a job that is handed out.
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

// applyLimits makes a change tell what the limits leave of it, and says when the topic
// needs an Advance for its next token; 0: it does not.
func (t *topic) applyLimits(change *TopicChange) (next int64) {
	slots, tokens := t.slots(), uint64(unlimited)
	if t.bucket != nil {
		tokens = uint64(t.bucket.tokens / token)
	}
	ready := change.Ready
	change.Ready = min(ready, slots, tokens)
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
		// What the limits hold back waits for one of those that can be had.
		change.NextDue = 0
	}
	return next
}
