package api

import (
	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// defaultDeadGroups is how many groups of dead jobs a response has.
	defaultDeadGroups = 100
	// deadTopicsStep is how many topics a sweep over all topics reads at a time.
	deadTopicsStep = 1000
)

// dead handles GET /v1/dead.
func (s *server) dead(x *call) (wire.DeadReasons, error) { return s.deadReasons(x, "") }

// topicDead handles GET /v1/topics/{topic}/dead.
func (s *server) topicDead(x *call) (r wire.DeadReasons, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	return s.deadReasons(x, topic)
}

// deadReasons responds with the reasons that most dead jobs of a topic have, of all topics if
// topic is empty.
func (s *server) deadReasons(x *call, topic string) (r wire.DeadReasons, err error) {
	most, stale, err := x.deadQuery()
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.reads.DeadReasons(ctx, &jobpb.DeadReasonsQuery{Topic: topic, Max: most}, stale)
	if err == nil {
		err = x.claim(deadRoom(a.Groups))
	}
	if err != nil {
		return r, err
	}
	r = wire.DeadReasons{Topic: topic, Jobs: a.Jobs, More: a.More, Incomplete: a.Incomplete}
	if topic == "" {
		r.Reasons = &a.Reasons
	}
	r.Groups = each(a.Groups, func(g *jobpb.DeadGroup) wire.DeadReason {
		shown := wire.DeadReason{Reason: g.Reason, Jobs: g.Jobs, Example: g.FirstId, FirstDiedAt: wire.Time(g.FirstDiedMs)}
		if topic == "" {
			shown.Topics = g.Topics
		}
		return shown
	})
	return r, nil
}

// deadTopics handles GET /v1/dead/topics.
func (s *server) deadTopics(x *call) (r wire.DeadTopics, err error) {
	query := x.r.URL.Query()
	if !query.Has("exact_reason") {
		return r, job.Invalid("exact_reason", "is missing; an empty one is that of jobs without a reason")
	}
	most, stale, err := x.deadQuery()
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.reads.DeadTopics(ctx, &jobpb.DeadTopicsQuery{Reason: query.Get("exact_reason"), Max: most}, stale)
	if err == nil {
		err = x.claim(deadRoom(a.Groups))
	}
	if err != nil {
		return r, err
	}
	r = wire.DeadTopics{Reason: query.Get("exact_reason"), Jobs: a.Jobs, Topics: a.Topics, More: a.Topics > uint64(len(a.Groups)), Incomplete: a.Incomplete}
	r.Groups = each(a.Groups, func(g *jobpb.DeadGroup) wire.DeadTopic {
		return wire.DeadTopic{Topic: g.Topic, Jobs: g.Jobs, Example: g.FirstId, FirstDiedAt: wire.Time(g.FirstDiedMs)}
	})
	return r, nil
}

// deadQuery parses the query parameters of reads of dead jobs by reason.
func (x *call) deadQuery() (most uint32, stale bool, err error) {
	n := wire.Opt[int64]{V: defaultDeadGroups}
	if err = wire.NumberIn(x.r.URL.Query(), "max", &n); err != nil {
		return 0, false, err
	}
	if most, err = wire.Within("max", n.V, job.MaxDeadGroups); err != nil {
		return 0, false, err
	}
	stale, err = x.stale()
	return most, stale, err
}

// deadRoom returns how many bytes groups take in a response, about.
func deadRoom(groups []*jobpb.DeadGroup) int64 {
	room := int64(answerOverhead)
	for _, g := range groups {
		room += answerOverhead + int64(len(g.Topic)+len(g.Reason)+len(g.FirstId))
	}
	return room
}

// kickDead handles POST /v1/dead/kick.
func (s *server) kickDead(x *call, q *wire.KickDeadRequest) (r wire.Kicked, err error) {
	most, filter, err := q.PurgeDeadRequest.Check()
	if err != nil {
		return r, err
	}
	rate, err := q.KickOptions.Check()
	if err != nil {
		return r, err
	}
	r.Kicked, r.More, err = s.sweepDead(x, most, filter, func(topic string, max uint32, sweep *jobpb.Sweep) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{
			Topic: topic, Max: max, RateMilli: rate, ToTopic: q.ToTopic.V, Sweep: sweep,
		}}}
	})
	return r, err
}

// purgeDead handles POST /v1/dead/purge.
func (s *server) purgeDead(x *call, q *wire.PurgeDeadRequest) (r wire.Purged, err error) {
	most, filter, err := q.Check()
	if err != nil {
		return r, err
	}
	r.Deleted, r.More, err = s.sweepDead(x, most, filter, func(topic string, max uint32, sweep *jobpb.Sweep) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{Topic: topic, State: jobpb.State_STATE_DEAD, Max: max, Sweep: sweep}}}
	})
	return r, err
}

// sweepDead is sweep over all topics that have dead jobs with the reason of the filter. A
// rate holds for all of them together, because each topic goes on with the number of jobs
// that were done.
func (s *server) sweepDead(x *call, most uint64, filter *jobpb.Filter, op func(topic string, max uint32, sweep *jobpb.Sweep) *jobpb.Op) (done uint64, more bool, err error) {
	b, cancel := s.bulk(x, most)
	defer cancel()
	var topics []*jobpb.DeadGroup // that are left of those read
	var from *jobpb.Progress      // in the first of them
	unread := true                // there are more topics
	more, err = b.run(func(left uint64) (bool, error) {
		if len(topics) == 0 {
			read, err := s.reads.DeadTopics(b.ctx, &jobpb.DeadTopicsQuery{Reason: *filter.ExactReason, Max: deadTopicsStep}, false)
			if err != nil || len(read.Groups) == 0 {
				return false, err
			}
			topics, unread = read.Groups, read.Topics > uint64(len(read.Groups))
		}
		last, more, err := b.apply(op(topics[0].Topic, uint32(min(left, sweepStep)), &jobpb.Sweep{Filter: filter, Scan: sweepStep, From: from}))
		if err != nil {
			return false, err
		}
		if from = last.GetDetails().GetNext(); more {
			return true, nil
		}
		topics = topics[1:]
		if b.done > 0 {
			from = &jobpb.Progress{Done: b.done}
		}
		return len(topics) > 0 || unread, nil
	})
	return b.done, more, err
}
