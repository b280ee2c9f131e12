package fsm

import "tarry/job/jobpb"

// token is one job, in the units of a bucket. A rate of n thousandths of a job per second
// is exactly n units per millisecond: nothing is rounded.
const token = 1_000_000

// rate is how fast a topic's jobs may be handed out.
type rate struct {
	perMS int64 // units per millisecond
	burst int64 // units in a full bucket
}

// rateOf returns the rate in a topic's settings; zero: none. Without a burst, the bucket
// holds the jobs of one second, and at least one.
func rateOf(s *jobpb.TopicSettings) rate {
	r := rate{perMS: int64(s.GetRateMilli())}
	if r.perMS == 0 {
		return rate{}
	}
	jobs := int64(s.GetBurst())
	if jobs == 0 {
		jobs = (r.perMS + 999) / 1000
	}
	r.burst = jobs * token
	return r
}

// bucket is the token bucket of a topic with a rate. Each job that is handed out takes a
// token, so in any time t there are at most burst + rate * t of them.
//
// The tokens are as of the last change of the topic, not of the clock. So the instant of
// the next token depends on the stored bucket alone, and not on how a node divides the log
// into batches.
type bucket struct {
	tokens int64 // in units
	at     int64 // the instant of tokens
	since  int64 // when this rate came into force
}

// until returns the first instant at which the bucket holds units, at most the burst.
func (r rate) until(b *bucket, units int64) int64 {
	missing := max(units-b.tokens, 0)
	return b.at + (missing+r.perMS-1)/r.perMS
}

// after returns what the bucket holds at an instant that is not before b.at.
func (b *bucket) after(r rate, instant int64) int64 {
	if instant >= r.until(b, r.burst) {
		return r.burst
	}
	return b.tokens + r.perMS*(instant-b.at)
}

func (b *bucket) fill(r rate, clock int64) {
	b.tokens, b.at = b.after(r, clock), clock
}

// refund gives back a token, less what the bucket has gained since it was taken: a full
// bucket would have lost that much. So a refund lets out no more jobs, in any window of
// time, than if the token had never been taken. A token of another rate is not given back,
// nor one of the millisecond in which the rate changed. The bucket must be filled.
func (b *bucket) refund(r rate, taken int64) {
	elapsed := b.at - taken
	if taken <= b.since || elapsed < 0 || elapsed > token/r.perMS {
		return
	}
	b.tokens = min(b.tokens+token-r.perMS*elapsed, r.burst)
}
