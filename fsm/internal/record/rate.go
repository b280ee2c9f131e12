package record

import "tarry/job/jobpb"

// Token is one job, in the units of a bucket. A rate of n thousandths of a job per second
// is exactly n units per millisecond: nothing is rounded.
const Token = 1_000_000

// Rate is how fast a topic's jobs may be handed out.
type Rate struct {
	PerMS int64 // units per millisecond
	Burst int64 // units in a full bucket
}

// RateOf returns the rate in a topic's settings; zero: none. Without a burst, the bucket
// holds the jobs of one second, and at least one.
func RateOf(s *jobpb.TopicSettings) Rate {
	r := Rate{PerMS: int64(s.GetRateMilli())}
	if r.PerMS == 0 {
		return Rate{}
	}
	jobs := int64(s.GetBurst())
	if jobs == 0 {
		jobs = (r.PerMS + 999) / 1000
	}
	r.Burst = jobs * Token
	return r
}

// Bucket is the token bucket of a topic with a rate. Each job that is handed out takes a
// token, so in any time t there are at most burst + rate * t of them.
//
// The tokens are as of the last change of the topic, not of the clock. So the instant of
// the next token depends on the stored bucket alone, and not on how a node divides the log
// into batches.
type Bucket struct {
	Tokens int64 // in units
	At     int64 // the instant of tokens
	Since  int64 // when this rate came into force
}

// Until returns the first instant at which the bucket holds units, at most the burst.
func (r Rate) Until(b *Bucket, units int64) int64 {
	missing := max(units-b.Tokens, 0)
	return b.At + (missing+r.PerMS-1)/r.PerMS
}

// After returns what the bucket holds at an instant that is not before b.at.
func (b *Bucket) After(r Rate, instant int64) int64 {
	if instant >= r.Until(b, r.Burst) {
		return r.Burst
	}
	return b.Tokens + r.PerMS*(instant-b.At)
}

func (b *Bucket) Fill(r Rate, clock int64) {
	b.Tokens, b.At = b.After(r, clock), clock
}

// Refund gives back a token, less what the bucket has gained since it was taken: a full
// bucket would have lost that much. So a refund lets out no more jobs, in any window of
// time, than if the token had never been taken. A token of another rate is not given back,
// nor one of the millisecond in which the rate changed. The bucket must be filled.
func (b *Bucket) Refund(r Rate, taken int64) {
	elapsed := b.At - taken
	if taken <= b.Since || elapsed < 0 || elapsed > Token/r.PerMS {
		return
	}
	b.Tokens = min(b.Tokens+Token-r.PerMS*elapsed, r.Burst)
}
