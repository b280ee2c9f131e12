package cluster

import (
	"math"
	"sync"
	"time"

	"tarry/auth"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

// Tenants share a node and a leader: what waits to be committed takes turns between them
// (groupcommit), and the rate of a namespace is held here, before anything enters the log.

// tenantFrom is the tenant of batches from other nodes, in which those nodes' tenants took
// turns already. It is not the name of a namespace or the id of a token.
const tenantFrom = "."

// tenantOf returns whose a run of operations is: the namespace of the topic that the first
// one names, or of its job's id; else the token of the caller. Empty: nobody's, as is all
// while there are no namespaces.
func (s *Shard) tenantOf(ops []*jobpb.Op, principal string) string {
	all := s.machine.Namespaces()
	if all == nil || len(ops) == 0 {
		return ""
	}
	if topic := topicOf(ops[0]); topic != "" {
		return all.Of(topic).GetName()
	}
	if n := all.OfID(refOf(ops[0]).GetId()); n != nil {
		return n.Name
	}
	return auth.DecodePrincipal(principal).TokenID()
}

// topicOf returns a topic that an operation names; empty: it names none.
func topicOf(op *jobpb.Op) string {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		return k.Add.GetTopic()
	case *jobpb.Op_AtomicAdd:
		if adds := k.AtomicAdd.GetAdds(); len(adds) > 0 {
			return adds[0].GetTopic()
		}
	case *jobpb.Op_Reserve:
		if topics := k.Reserve.GetTopics(); len(topics) > 0 {
			return topics[0]
		}
	case *jobpb.Op_KickTopic:
		return k.KickTopic.GetTopic()
	case *jobpb.Op_Purge:
		return k.Purge.GetTopic()
	case *jobpb.Op_MoveJobs:
		return k.MoveJobs.GetTopic()
	case *jobpb.Op_ReleaseTopic:
		return k.ReleaseTopic.GetTopic()
	case *jobpb.Op_PauseTopic:
		return k.PauseTopic.GetTopic()
	case *jobpb.Op_SetTopic:
		return k.SetTopic.GetTopic()
	}
	return ""
}

// refOf returns the job that an operation names; nil: it names none.
func refOf(op *jobpb.Op) *jobpb.Ref {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		return k.Finish.GetRef()
	case *jobpb.Op_Delete:
		return k.Delete.GetRef()
	case *jobpb.Op_Release:
		return k.Release.GetRef()
	case *jobpb.Op_Touch:
		return k.Touch.GetRef()
	case *jobpb.Op_Bury:
		return k.Bury.GetRef()
	case *jobpb.Op_Kick:
		return k.Kick.GetRef()
	case *jobpb.Op_Update:
		return k.Update.GetRef()
	case *jobpb.Op_ReserveJob:
		return k.ReserveJob.GetRef()
	}
	return nil
}

// rateQuotas holds the rates of the namespaces at which this node takes adds.
type rateQuotas struct {
	mu  sync.Mutex
	all *fsm.Namespaces // whose rates these are
	of  map[string]*addBucket
}

// addBucket is a token bucket with as many tokens as a second brings, and at least one. What
// is done at once may take more than it has: then the next ones wait longer.
type addBucket struct {
	rate   float64 // tokens a second
	tokens float64
	at     time.Time
}

// take reports whether the adds among ops may be done now, and takes their tokens. What
// follows a finish takes tokens too, but is never refused: the work of the finish is done.
func (q *rateQuotas) take(all *fsm.Namespaces, ops []*jobpb.Op, now time.Time) error {
	if all == nil || !all.Rated() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.use(all, now)
	for _, op := range ops {
		if add := op.GetAdd(); add != nil {
			if err := q.check(add, now); err != nil {
				return err
			}
		}
		if batch := op.GetAtomicAdd(); batch != nil && batch.Finish == nil {
			for _, add := range batch.Adds {
				if err := q.check(add, now); err != nil {
					return err
				}
			}
		}
	}
	for _, op := range ops {
		q.spend(op.GetAdd())
		for _, add := range op.GetAtomicAdd().GetAdds() {
			q.spend(add)
		}
	}
	return nil
}

// use takes over the rates of all. The tokens of namespaces that were there before stay.
func (q *rateQuotas) use(all *fsm.Namespaces, now time.Time) {
	if q.all == all {
		return
	}
	before := q.of
	q.all, q.of = all, make(map[string]*addBucket)
	for _, n := range all.All() {
		milli := n.GetQuotas().GetRateMilli()
		if milli == 0 {
			continue
		}
		rate := float64(milli) / 1000
		b := &addBucket{rate: rate, tokens: max(1, rate), at: now}
		if old := before[n.Name]; old != nil {
			old.fill(now)
			b.tokens = min(old.tokens, b.tokens)
		}
		q.of[n.Name] = b
	}
}

func (b *addBucket) fill(now time.Time) {
	if more := now.Sub(b.at).Seconds() * b.rate; more > 0 {
		b.tokens, b.at = min(b.tokens+more, max(1, b.rate)), now
	}
}

func (q *rateQuotas) bucket(add *jobpb.Add) (*addBucket, string) {
	name := q.all.Of(add.GetTopic()).GetName()
	return q.of[name], name
}

func (q *rateQuotas) check(add *jobpb.Add, now time.Time) error {
	b, name := q.bucket(add)
	if b == nil {
		return nil
	}
	if b.fill(now); b.tokens >= 1 {
		return nil
	}
	e := job.Errorf(job.CodeOverQuota, "namespace %q has added as many jobs through this node as its quota, rate, allows: %v a second", name, b.rate)
	e.RetryAfter = time.Duration(math.Ceil((1-b.tokens)/b.rate*1000)) * time.Millisecond
	return e
}

func (q *rateQuotas) spend(add *jobpb.Add) {
	if add == nil {
		return
	}
	if b, _ := q.bucket(add); b != nil {
		b.tokens--
	}
}
