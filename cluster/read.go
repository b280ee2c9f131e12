package cluster

import (
	"context"
	"sync"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/internal/hook"
	"tarry/job"
	"tarry/job/jobpb"
)

// A read is linearizable unless the client asks for a stale one. The leader serves a
// linearizable read once it has applied everything that was committed when the read
// began, and has checked with a majority that it still leads. (Committed by then is
// what was acknowledged, and what a follower may have returned to a stale read.) The
// node that receives a stale read serves it. Its state never goes back, so a client
// that stays with a node never sees an older state.

// Job implements api.Queue.
func (s *Shard) Job(ctx context.Context, id string, stale bool) (*jobpb.Job, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Job{Job: id}}, stale)
	if err == nil && a.GetJob() == nil {
		err = job.Errorf(job.CodeNotFound, "there is no job with the id %q", id)
	}
	return a.GetJob(), err
}

// JobBySeq implements api.Inspector.
func (s *Shard) JobBySeq(ctx context.Context, seq uint64, stale bool) (*jobpb.Job, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_JobSeq{JobSeq: seq}}, stale)
	if err == nil && a.GetJob() == nil {
		err = job.Errorf(job.CodeNotFound, "there is no job with the number %d", seq)
	}
	return a.GetJob(), err
}

// Peek implements api.Inspector.
func (s *Shard) Peek(ctx context.Context, topic string, state jobpb.State, stale bool) (*jobpb.Job, error) {
	switch state {
	case jobpb.State_STATE_READY, jobpb.State_STATE_DELAYED, jobpb.State_STATE_DEAD:
	default:
		return nil, job.Errorf(job.CodeInvalid, "state is %s; it must be ready, delayed or dead", state)
	}
	peek := &noderpc.Peek{Topic: topic, State: state}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Peek{Peek: peek}}, stale)
	if err == nil && a.GetJob() == nil {
		err = job.Errorf(job.CodeNotFound, "topic %.40q has no job in %s", topic, state)
	}
	return a.GetJob(), err
}

// Topics implements api.Queue.
func (s *Shard) Topics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &noderpc.Page{After: after, Max: uint32(max)}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Topics{Topics: page}}, stale)
	return a.GetTopics(), err
}

// ConfiguredTopics implements api.Queue.
func (s *Shard) ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &noderpc.Page{After: after, Max: uint32(max)}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_ConfiguredTopics{ConfiguredTopics: page}}, stale)
	return a.GetTopics(), err
}

// Topic implements api.Queue.
func (s *Shard) Topic(ctx context.Context, name string, stale bool) (*jobpb.Topic, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Topic{Topic: name}}, stale)
	if err == nil && a.GetTopic() == nil {
		return &jobpb.Topic{Name: name}, nil
	}
	return a.GetTopic(), err
}

// Totals implements api.Queue.
func (s *Shard) Totals(ctx context.Context, stale bool) (*jobpb.Totals, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Totals{Totals: &noderpc.Empty{}}}, stale)
	return a.GetTotals(), err
}

// Jobs implements api.Queue.
func (s *Shard) Jobs(ctx context.Context, q *jobpb.JobQuery, stale bool) (*jobpb.JobPage, error) {
	if err := job.CheckJobQuery(q); err != nil {
		return nil, err
	}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Jobs{Jobs: q}}, stale)
	return a.GetJobs(), err
}

// read serves r here or at the leader. A read has no effect, so it is sent again after
// any failure.
func (s *Shard) read(ctx context.Context, r *noderpc.ReadRequest, stale bool) (*noderpc.ReadResponse, error) {
	if stale || hook.Mutant(hook.StaleRead) {
		return s.look(r)
	}
	r.Shard = s.cfg.Number
	rules := leaderrpc.Rules{Within: s.cfg.HoldTime, Hold: s.cfg.HoldTime, Read: true}
	return leaderrpc.Call(ctx, &s.toLeader, rules, r, s.readAsLeader, noderpc.NodeClient.Read)
}

// look serves a read from this node's state.
func (s *Shard) look(r *noderpc.ReadRequest) (a *noderpc.ReadResponse, err error) {
	v := s.machine.View()
	defer func() {
		if cerr := v.Close(); err == nil {
			err = cerr
		}
	}()
	a = new(noderpc.ReadResponse)
	switch what := r.What.(type) {
	case *noderpc.ReadRequest_Job:
		a.Job, _, err = v.Job(what.Job)
	case *noderpc.ReadRequest_JobSeq:
		a.Job, _, err = v.JobBySeq(what.JobSeq)
	case *noderpc.ReadRequest_Peek:
		a.Job, _, err = v.Peek(what.Peek.Topic, what.Peek.State)
	case *noderpc.ReadRequest_Jobs:
		a.Jobs, err = v.Jobs(what.Jobs)
	case *noderpc.ReadRequest_Topic:
		a.Topic, err = v.Topic(what.Topic)
	case *noderpc.ReadRequest_Topics:
		a.Topics, err = v.Topics(what.Topics.After, int(what.Topics.Max))
	case *noderpc.ReadRequest_ConfiguredTopics:
		a.Topics, err = v.ConfiguredTopics(what.ConfiguredTopics.After, int(what.ConfiguredTopics.Max))
	case *noderpc.ReadRequest_Totals:
		a.Totals, err = v.Totals()
	case *noderpc.ReadRequest_Schedule:
		a.Schedule, _, err = v.Schedule(what.Schedule)
	case *noderpc.ReadRequest_Schedules:
		a.Schedules, err = v.Schedules(what.Schedules.After, int(what.Schedules.Max))
	default:
		err = job.Errorf(job.CodeInvalid, "this release does not know the read %T", r.What)
	}
	return a, err
}

// readAsLeader serves a read on this node if it is the established leader and a
// majority still follows it.
func (s *Shard) readAsLeader(ctx context.Context, r *noderpc.ReadRequest) (*noderpc.ReadResponse, error) {
	established := s.established(ctx)
	if established == nil { // what earlier leaders acknowledged may not be applied yet
		return nil, errRetry
	}
	committed := s.raft.CommitIndex()
	if term, err := s.confirmations.confirm(ctx); err != nil || term != established.term {
		return nil, errRetry
	}
	if err := s.progress.reach(ctx, committed); err != nil {
		return nil, errRetry
	}
	return s.look(r)
}

// confirmLeadership checks with a majority that this node still leads. It waits for the
// lease at most, because a leader that reaches no majority in that time steps down.
func (s *Shard) confirmLeadership() (term uint64, err error) {
	established := s.leadership.Load()
	if established == nil {
		return 0, errRetry
	}
	ctx, cancel := context.WithTimeout(established.ctx, s.cfg.Lease)
	defer cancel()
	return s.cfg.ConfirmLeader(ctx)
}

// confirmations batches confirmations of leadership. All reads that begin while one is
// in flight share the next one, because a confirmation that began before a read must
// not serve it. One goroutine makes them, so at most one is in flight.
type confirmations struct {
	ask func() (term uint64, err error)

	mu   sync.Mutex
	next *confirmation // collects readers; nil while none wait
	wake chan struct{}
}

type confirmation struct {
	done chan struct{}
	term uint64
	err  error
}

func newConfirmations(ask func() (uint64, error)) *confirmations {
	return &confirmations{ask: ask, wake: make(chan struct{}, 1)}
}

// confirm waits for the next confirmation, or for ctx. It returns the term in which
// this node leads.
func (c *confirmations) confirm(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &confirmation{done: make(chan struct{})}
	}
	mine := c.next
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	select {
	case <-mine.done:
		return mine.term, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run makes confirmations until ctx ends; readers have contexts of their own.
func (c *confirmations) run(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		mine := c.next
		c.next = nil
		c.mu.Unlock()
		if mine != nil {
			mine.term, mine.err = c.ask()
			close(mine.done)
		}
	}
}
