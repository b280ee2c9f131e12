package fsm

import "tarry/job/jobpb"

// token is one job, in the unit of a bucket. At so many thousandths of a job a
// second a bucket gains exactly so many units a millisecond: nothing is rounded.
const token = 1_000_000

// rate is how fast a topic's jobs may be handed out.
type rate struct {
	perMS int64 // units a millisecond
	burst int64 // units that a full bucket holds
}

// rateOf reads the rate in a topic's settings; zero: none. Without a burst, the
// bucket holds what the rate gives in a second, and one job at least.
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

// bucket is the token bucket of a topic with a rate. Each job that is handed out
// takes a token, so that in any time t there are at most burst + rate * t of them.
//
// The tokens are as of the last change of the topic, not of the clock. So whatever
// follows from them, like the instant of the next token, follows from what is
// stored, and is the same however a node cuts the log into batches.
type bucket struct {
	tokens int64 // in units
	at     int64 // the instant of which they are
	since  int64 // when this rate came into force
}

// until is the first instant at which the bucket holds so many units; they are
// no more than its burst.
func (r rate) until(b *bucket, units int64) int64 {
	missing := max(units-b.tokens, 0)
	return b.at + (missing+r.perMS-1)/r.perMS
}

// after is what the bucket holds at an instant that is not before b.at.
func (b *bucket) after(r rate, instant int64) int64 {
	if instant >= r.until(b, r.burst) {
		return r.burst
	}
	return b.tokens + r.perMS*(instant-b.at)
}

// fill brings the bucket up to the clock.
func (b *bucket) fill(r rate, clock int64) {
	b.tokens, b.at = b.after(r, clock), clock
}

// refund gives back a token that was taken at an instant, less what the bucket has
// gained since: had it been full, it would have lost that much. So no window of
// time sees more jobs than if the one that came back had never gone out. A token
// taken by another rate is not given back; nor is one of the millisecond in which the
// rate changed, which may be of either. The bucket is filled up to the clock.
func (b *bucket) refund(r rate, taken int64) {
	elapsed := b.at - taken
	if taken <= b.since || elapsed < 0 || elapsed > token/r.perMS {
		return
	}
	b.tokens = min(b.tokens+token-r.perMS*elapsed, r.burst)
}
