package cluster

import (
	"math"
	"slices"
	"sync"
	"time"

	"tarry/fsm"
	"tarry/internal/tokenbucket"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// rateQuotas holds the rates of the namespaces at which this node takes adds. The tokens of
// adds are taken before these enter the log, so that what waits is counted, and given back
// if they were refused. Who may not add in a namespace takes none of its tokens.
type rateQuotas struct {
	// topicOf returns the topic of the jobs of a schedule; empty: there is none.
	topicOf func(schedule string) string

	mu  sync.Mutex
	all *fsm.Namespaces // whose rates these are
	of  map[string]*tokenbucket.Bucket
}

// maxThenDebt bounds by how much what follows finishes may overdraw a bucket, as the time in
// which the tokens come back: these adds are never refused, so nothing else would.
const maxThenDebt = 5 * time.Second

// taken is what an add of the operation with that number took from a bucket.
type taken struct {
	op     int
	add    int // number of the add in the operation
	bucket *tokenbucket.Bucket
	tokens float64
}

// take reports whether the adds among ops may be done now, and takes their tokens. What
// follows a finish takes tokens too, but is never refused: the work of the finish is done.
// Operations with an add for which may is false are left to the state machine.
func (q *rateQuotas) take(all *fsm.Namespaces, ops []*jobpb.Op, may func(*jobpb.Op, *jobpb.Add) bool, now time.Time) ([]taken, error) {
	if all == nil || !all.Rated() {
		return nil, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.use(all, now)
	var list []taken
	for i, op := range ops {
		adds := q.addsOf(op)
		if slices.ContainsFunc(adds, func(add *jobpb.Add) bool { return !may(op, add) }) {
			continue
		}
		for n, add := range adds {
			b, name := q.bucket(add)
			if b == nil {
				continue
			}
			if b.Fill(now); b.Left < 1 && op.GetAtomicAdd().GetFinish() == nil {
				return nil, rateRefusal(b, name)
			}
			list = append(list, taken{op: i, add: n, bucket: b})
		}
	}
	for i := range list {
		one := &list[i]
		one.tokens = spend(one.bucket, ops[one.op].GetAtomicAdd().GetFinish() != nil)
	}
	return list, nil
}

// addsOf returns the adds of an operation of which the rates count. The run of a schedule that a
// client asks for is one.
func (q *rateQuotas) addsOf(op *jobpb.Op) []*jobpb.Add {
	if fire := op.GetFireSchedule(); fire.GetNow() && q.topicOf != nil {
		return []*jobpb.Add{{Topic: q.topicOf(fire.Name)}}
	}
	return oplog.AddsOf(op)
}

// added reports whether an add has made a job: it may have found one with its id.
func (t taken) added(r *jobpb.Result) bool {
	if parts := r.GetDetails().GetParts(); t.add < len(parts) {
		r = parts[t.add]
	}
	return r.Code == jobpb.Code_OK && !r.Existing
}

// giveBack returns the tokens of adds that made no job. err is that of those without
// a result; nil: there are none.
func (q *rateQuotas) giveBack(list []taken, results []*jobpb.Result, err error) {
	if len(list) == 0 {
		return
	}
	code := job.CodeOf(err)
	mayBeDone := code == job.CodeUnknown || code == job.CodeInternal
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range list {
		done := mayBeDone
		if one.op < len(results) {
			done = one.added(results[one.op])
		}
		if !done {
			one.bucket.Return(one.tokens)
		}
	}
}

// use takes over the rates of all. A bucket stays as long as its namespace has the rate. What is done at
// once may take more than it has: then the next ones wait longer.
func (q *rateQuotas) use(all *fsm.Namespaces, now time.Time) {
	if q.all == all {
		return
	}
	before := q.of
	q.all, q.of = all, make(map[string]*tokenbucket.Bucket)
	for _, n := range all.All() {
		milli := n.GetQuotas().GetRateMilli()
		if milli == 0 {
			continue
		}
		rate := float64(milli) / 1000
		if b := before[n.Name]; b != nil && b.Rate == rate {
			q.of[n.Name] = b
			continue
		}
		full := tokenbucket.New(rate, max(1, rate), now) // what a second brings
		q.of[n.Name] = &full
	}
}

// spend takes one token, and returns how much it took: for what follows a finish no more than
// the greatest debt allows.
func spend(b *tokenbucket.Bucket, then bool) float64 {
	one := 1.0
	if then {
		one = max(0, min(1, b.Left+b.Rate*maxThenDebt.Seconds()))
	}
	b.Left -= one
	return one
}

func rateRefusal(b *tokenbucket.Bucket, name string) error {
	e := job.Errorf(job.CodeOverQuota, "namespace %q has added as many jobs through this node as its quota, rate, allows: %v a second", name, b.Rate)
	e.RetryAfter = time.Duration(math.Ceil((1-b.Left)/b.Rate*1000)) * time.Millisecond
	return e
}

func (q *rateQuotas) bucket(add *jobpb.Add) (*tokenbucket.Bucket, string) {
	name := q.all.Of(add.GetTopic()).GetName()
	return q.of[name], name
}
