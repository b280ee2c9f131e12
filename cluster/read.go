package cluster

import (
	"context"
	"errors"
	"sync"

	"tarry/cluster/noderpc"
	"tarry/internal/hook"
	"tarry/job"
	"tarry/job/jobpb"
)

// A read is linearizable unless it is asked to be stale. Linearizable reads are
// answered by the leader, once it has applied all that was committed when the read
// began (what was acknowledged, and what a follower may have shown to a stale
// read), and has checked with a majority that it still leads. Stale reads are answered by the node that is
// asked; its state never goes back, so neither do its answers.

// Job implements api.Queue.
func (s *Shard) Job(ctx context.Context, id string, stale bool) (*jobpb.Job, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Job{Job: id}}, stale)
	if err == nil && a.job == nil {
		err = job.Errorf(job.CodeNotFound, "there is no job with the id %q", id)
	}
	return a.job, err
}

// JobBySeq implements api.Inspector.
func (s *Shard) JobBySeq(ctx context.Context, seq uint64, stale bool) (*jobpb.Job, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_JobSeq{JobSeq: seq}}, stale)
	if err == nil && a.job == nil {
		err = job.Errorf(job.CodeNotFound, "there is no job with the number %d", seq)
	}
	return a.job, err
}

// Peek implements api.Inspector.
func (s *Shard) Peek(ctx context.Context, topic string, state jobpb.State, stale bool) (*jobpb.Job, error) {
	switch state {
	case jobpb.State_STATE_READY, jobpb.State_STATE_DELAYED, jobpb.State_STATE_DEAD:
	default:
		return nil, job.Errorf(job.CodeInvalid, "state is %s; it must be ready, delayed or dead", state)
	}
	peek := &noderpc.Peek{Topic: topic, State: uint32(state)}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Peek{Peek: peek}}, stale)
	if err == nil && a.job == nil {
		err = job.Errorf(job.CodeNotFound, "topic %.40q has no job in %s", topic, state)
	}
	return a.job, err
}

// Topics implements api.Queue.
func (s *Shard) Topics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &noderpc.TopicPage{After: after, Max: uint32(max)}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Topics{Topics: page}}, stale)
	return a.topics, err
}

// ConfiguredTopics implements api.Queue.
func (s *Shard) ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &noderpc.TopicPage{After: after, Max: uint32(max), Configured: true}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Topics{Topics: page}}, stale)
	return a.topics, err
}

// Topic implements api.Queue.
func (s *Shard) Topic(ctx context.Context, name string, stale bool) (*jobpb.Topic, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Topic{Topic: name}}, stale)
	if err != nil {
		return nil, err
	}
	if len(a.topics) == 0 {
		return &jobpb.Topic{Name: name}, nil
	}
	return a.topics[0], nil
}

// Totals implements api.Queue.
func (s *Shard) Totals(ctx context.Context, stale bool) (*jobpb.Totals, error) {
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Totals{Totals: true}}, stale)
	if err == nil && a.totals == nil {
		a.totals = &jobpb.Totals{} // all zero has an empty encoding
	}
	return a.totals, err
}

// Jobs implements api.Queue.
func (s *Shard) Jobs(ctx context.Context, q *jobpb.JobQuery, stale bool) (*jobpb.JobPage, error) {
	// A query that is refused would be asked again until the time is over.
	if err := job.CheckJobQuery(q); err != nil {
		return nil, err
	}
	query, err := q.MarshalVT()
	if err != nil {
		return nil, job.Errorf(job.CodeInternal, "the query does not encode: %w", err)
	}
	a, err := s.read(ctx, &noderpc.ReadRequest{What: &noderpc.ReadRequest_Jobs{Jobs: query}}, stale)
	if err == nil && a.page == nil {
		a.page = &jobpb.JobPage{} // an empty one has an empty encoding
	}
	return a.page, err
}

// answer is what a read found.
type answer struct {
	job    *jobpb.Job // nil: there is none
	topics []*jobpb.Topic
	totals *jobpb.Totals
	page   *jobpb.JobPage

	schedules []*jobpb.ScheduleInfo
}

func (s *Shard) read(ctx context.Context, r *noderpc.ReadRequest, stale bool) (answer, error) {
	if stale || hook.Mutant(hook.StaleRead) {
		return s.look(r)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HoldTime)
	defer cancel()
	again := retry{of: &s.readRetries}
	defer again.end()
	for {
		l, changed := s.leaders.get()
		a, err := s.readFromLeader(ctx, l, r)
		if err != errRetry {
			return a, err
		}
		if !again.wait(ctx, changed) {
			return answer{}, errNoLeader()
		}
	}
}

// look answers from this node's state.
func (s *Shard) look(r *noderpc.ReadRequest) (a answer, err error) {
	v := s.machine.View()
	defer func() {
		if cerr := v.Close(); err == nil {
			err = cerr
		}
	}()
	switch what := r.What.(type) {
	case *noderpc.ReadRequest_Job:
		a.job, _, err = v.Job(what.Job)
	case *noderpc.ReadRequest_JobSeq:
		a.job, _, err = v.JobBySeq(what.JobSeq)
	case *noderpc.ReadRequest_Peek:
		a.job, _, err = v.Peek(what.Peek.GetTopic(), jobpb.State(what.Peek.GetState()))
	case *noderpc.ReadRequest_Topic:
		var t *jobpb.Topic
		if t, err = v.Topic(what.Topic); t != nil {
			a.topics = []*jobpb.Topic{t}
		}
	case *noderpc.ReadRequest_Topics:
		list := v.Topics
		if what.Topics.GetConfigured() {
			list = v.ConfiguredTopics
		}
		a.topics, err = list(what.Topics.GetAfter(), int(what.Topics.GetMax()))
	case *noderpc.ReadRequest_Totals:
		a.totals, err = v.Totals()
	case *noderpc.ReadRequest_Jobs:
		q := new(jobpb.JobQuery)
		if err = q.UnmarshalVT(what.Jobs); err == nil {
			a.page, err = v.Jobs(q)
		}
	case *noderpc.ReadRequest_Schedule:
		a.schedules, err = lookSchedule(v, what.Schedule)
	case *noderpc.ReadRequest_Schedules:
		a.schedules, err = v.Schedules(what.Schedules.GetAfter(), int(what.Schedules.GetMax()))
	default:
		err = job.Errorf(job.CodeInvalid, "this release does not know the read %T", r.What)
	}
	return a, err
}

// readFromLeader asks l, which leads. A read has no effect, so whatever fails may
// be asked again: errRetry.
func (s *Shard) readFromLeader(ctx context.Context, l leader, r *noderpc.ReadRequest) (answer, error) {
	switch l.id {
	case "":
		return answer{}, errRetry
	case s.cfg.ServerID:
		return s.readAsLeader(ctx, r)
	}
	client, err := s.cfg.Peer(ctx, l.id, l.addr)
	if err != nil {
		return answer{}, errRetry
	}
	ctx, cancel := s.leaders.while(ctx, l)
	defer cancel()
	r.Shard = s.cfg.Number
	resp, err := client.Read(ctx, r)
	if err != nil || resp.Refusal != noderpc.Refusal_NONE {
		return answer{}, errRetry
	}
	return decodeAnswer(resp)
}

// readAsLeader answers on this node if it is the established leader and a
// majority still follows it.
func (s *Shard) readAsLeader(ctx context.Context, r *noderpc.ReadRequest) (answer, error) {
	established := s.established(ctx)
	if established == nil { // before, what earlier leaders acknowledged may not be applied
		return answer{}, errRetry
	}
	committed := s.raft.CommitIndex()
	if term, err := s.leadership.confirm(ctx); err != nil || term != established.number {
		return answer{}, errRetry
	}
	if err := s.progress.reach(ctx, committed); err != nil {
		return answer{}, errRetry
	}
	return s.look(r)
}

// confirmLeadership asks a majority whether this node leads still. A leader that
// reaches none within its lease steps down, so nothing longer is worth waiting for.
func (s *Shard) confirmLeadership() (term uint64, err error) {
	established := s.term.Load()
	if established == nil {
		return 0, errRetry
	}
	ctx, cancel := context.WithTimeout(established.ctx, s.cfg.Lease)
	defer cancel()
	return s.cfg.ConfirmLeader(ctx)
}

func encodeAnswer(a answer) (*noderpc.ReadResponse, error) {
	resp := new(noderpc.ReadResponse)
	var err error
	if a.job != nil {
		if resp.Job, err = a.job.MarshalVT(); err != nil {
			return nil, err
		}
	}
	if a.page != nil {
		if resp.Page, err = a.page.MarshalVT(); err != nil {
			return nil, err
		}
	}
	if a.totals != nil {
		if resp.Totals, err = a.totals.MarshalVT(); err != nil {
			return nil, err
		}
	}
	for _, t := range a.topics {
		b, err := t.MarshalVT()
		if err != nil {
			return nil, err
		}
		resp.Topics = append(resp.Topics, b)
	}
	for _, s := range a.schedules {
		b, err := s.MarshalVT()
		if err != nil {
			return nil, err
		}
		resp.Schedules = append(resp.Schedules, b)
	}
	return resp, nil
}

func decodeAnswer(resp *noderpc.ReadResponse) (a answer, err error) {
	if len(resp.Job) > 0 {
		a.job = new(jobpb.Job)
		err = a.job.UnmarshalVT(resp.Job)
	}
	if len(resp.Page) > 0 {
		a.page = new(jobpb.JobPage)
		err = errors.Join(err, a.page.UnmarshalVT(resp.Page))
	}
	if len(resp.Totals) > 0 {
		a.totals = new(jobpb.Totals)
		err = errors.Join(err, a.totals.UnmarshalVT(resp.Totals))
	}
	for _, b := range resp.Topics {
		t := new(jobpb.Topic)
		if terr := t.UnmarshalVT(b); terr != nil {
			err = terr
		}
		a.topics = append(a.topics, t)
	}
	for _, b := range resp.Schedules {
		s := new(jobpb.ScheduleInfo)
		if serr := s.UnmarshalVT(b); serr != nil {
			err = serr
		}
		a.schedules = append(a.schedules, s)
	}
	if err != nil {
		return answer{}, job.Errorf(job.CodeInternal, "the leader's answer does not decode: %w", err)
	}
	return a, nil
}

// confirmations lets all reads that begin while a confirmation of leadership is
// under way share the next one: one that began before a read did must not serve
// it. One goroutine asks, so one question at a time is under way.
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

// confirm takes part in the next question and blocks for its answer, the term in
// which this node leads, or for ctx.
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

// run asks until ctx ends; readers have contexts of their own.
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
