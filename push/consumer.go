package push

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

const (
	// reserveWait is the longest wait of one reserve.
	reserveWait = time.Minute
	// placeWait is how long a job waits for the node's limit on posts; margin is the time
	// after the target's timeout to record the outcome. The reservation covers both.
	placeWait = 5 * time.Second
	margin    = 5 * time.Second
	// burstBytes bounds the bodies that are reserved at once.
	burstBytes = 4 << 20

	// Without a backoff of the job or the topic, a failed post is retried after so long,
	// doubling each time.
	firstWait = time.Second
	longWait  = 5 * time.Minute

	// putOffPace is the time between two jobs that were put off.
	putOffPace = 20 * time.Millisecond
)

// consumer takes one topic's jobs and posts them.
type consumer struct {
	p        *Pusher
	q        Queue
	topic    string
	settings *jobpb.TopicSettings
	places   chan struct{} // one for each post of the topic
	share    *share        // nil: all jobs go to one target
	laterMu  sync.Mutex
	later    time.Time // until when the last job was put off
	logMu    sync.Mutex
	logged   time.Time // when the last failure without a response was
	stop     context.CancelFunc
	work     *sync.WaitGroup
}

// consume starts a consumer. A stopped consumer reserves no more jobs; its posts in
// flight complete or end with ctx.
func (p *Pusher) consume(ctx context.Context, q Queue, topic string, s *jobpb.TopicSettings, work *sync.WaitGroup) *consumer {
	c := &consumer{p: p, q: q, topic: topic, settings: s, work: work, places: make(chan struct{}, concurrencyOf(s.Push))}
	if s.Push.JobUrls {
		c.share = p.known.shareOf(topic, cap(c.places))
	}
	taking, stop := context.WithCancel(ctx)
	c.stop = stop
	c.work.Go(func() {
		defer stop()
		for taking.Err() == nil {
			if err := c.take(taking, ctx); err != nil && taking.Err() == nil {
				sleep.For(taking, settingsPause) // between leaders, or too many reserves
			}
		}
	})
	return c
}

// matches reports whether the consumer has these settings; nil means none.
func (c *consumer) matches(s *jobpb.TopicSettings) bool {
	return s != nil && proto.Equal(s.Push, c.settings.Push) && (s.Backoff == nil) == (c.settings.Backoff == nil)
}

// take waits for one job and posts it, and then more while there are jobs and places.
// Only the first may wait for a place of the node: no consumer holds one while it waits
// for jobs.
func (c *consumer) take(taking, posting context.Context) error {
	select {
	case c.places <- struct{}{}:
	case <-taking.Done():
		return nil
	}
	jobs, err := c.reserve(taking, 1, reserveWait)
	if len(jobs) == 0 {
		<-c.places
		return err
	}
	c.start(posting, jobs[0], false)
	for {
		free := 0
		for free < cap(c.places)-len(c.places) && c.p.posts.TryAcquire(1) {
			free++
		}
		if free == 0 {
			return nil
		}
		jobs, err := c.reserve(taking, free, 0)
		for _, j := range jobs {
			c.places <- struct{}{} // only this goroutine sends to it
			c.start(posting, j, true)
		}
		c.p.posts.Release(int64(free - len(jobs)))
		if len(jobs) < free {
			return err
		}
	}
}

func (c *consumer) reserve(ctx context.Context, most int, wait time.Duration) ([]*jobpb.Reserved, error) {
	ttr := timeoutOf(c.settings.Push) + placeWait + margin
	return c.q.Reserve(ctx, &jobpb.Reserve{
		Topics: []string{c.topic}, Max: uint32(most), TtrMs: ttr.Milliseconds(), MaxBytes: burstBytes,
	}, wait)
}

// start posts a job that has a place of the topic, and one of the node if placed.
func (c *consumer) start(ctx context.Context, j *jobpb.Reserved, placed bool) {
	c.work.Go(func() {
		defer func() { <-c.places }()
		if placed {
			defer c.p.posts.Release(1)
		}
		ref := &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}
		target, host, o := c.p.allow.targetOf(c.settings.Push, j)
		if target == "" {
			c.p.metrics.posts.WithLabelValues(o.label).Inc()
			c.write(ctx, c.end(ref, j, o))
			return
		}
		t, err := c.p.opened(c.topic, c.settings.Push)
		if err != nil {
			c.p.metrics.posts.WithLabelValues("no_key").Inc()
			c.write(ctx, c.end(ref, j, outcome{label: "no_key", reason: "push: the secret of the topic cannot be used: " + err.Error()}))
			return
		}
		permit, why := c.share.begin(host)
		if why != "" {
			c.p.metrics.posts.WithLabelValues("put_off").Inc()
			c.write(ctx, giveBack(j, c.putOff(time.Now()), "push: put off: "+why))
			return
		}
		defer func() { permit.end(o) }()
		if !placed {
			wait, cancel := context.WithTimeout(ctx, placeWait)
			err := c.p.posts.Acquire(wait, 1)
			cancel()
			if err != nil {
				c.write(ctx, giveBack(j, 0, ""))
				return
			}
			defer c.p.posts.Release(1)
		}
		started := time.Now()
		o = outcome{label: "taken", answered: true}
		if !unposted(j) {
			o = c.p.post(ctx, t, target, j)
		}
		if ctx.Err() != nil {
			o = outcome{}
			return // it is unknown whether the target has it
		}
		c.p.metrics.posts.WithLabelValues(o.label).Inc()
		c.p.metrics.seconds.Observe(time.Since(started).Seconds())
		c.explain(o, host, started)
		c.write(ctx, c.end(ref, j, o))
	})
}

// explain logs why there was no response, once a minute for each topic.
func (c *consumer) explain(o outcome, host string, now time.Time) {
	if o.detail == nil {
		return
	}
	c.logMu.Lock()
	due := now.Sub(c.logged) >= time.Minute
	if due {
		c.logged = now
	}
	c.logMu.Unlock()
	if due {
		c.p.log.Warn("a target of push does not reply; other failures of the topic are not logged for a minute", "topic", c.topic, "host", host, "error", o.detail)
	}
}

// post posts a job, and makes a span of it if there are any.
func (p *Pusher) post(ctx context.Context, t *jobpb.PushTarget, target string, j *jobpb.Reserved) outcome {
	if p.trace == nil {
		return post(ctx, p.clientOf(j), t, target, j, "")
	}
	parent, end := p.trace(j, target)
	o := post(ctx, p.clientOf(j), t, target, j, parent)
	end(o.status, o.reason)
	return o
}

// clientOf returns the client that posts a job.
func (p *Pusher) clientOf(j *jobpb.Reserved) *http.Client {
	if j.Options.GetPushUrl() != "" {
		return p.toJob
	}
	return p.toTopic
}

// giveBack returns the operation for a job that was not posted. The attempt does not count.
func giveBack(j *jobpb.Reserved, wait time.Duration, reason string) *jobpb.Op {
	release := oplog.GiveBack(j, 0)
	release.DelayMs, release.Reason = wait.Milliseconds(), reason
	return &jobpb.Op{Kind: &jobpb.Op_Release{Release: release}}
}

// putOff returns how long a job is put off. Jobs that are put off together come back one
// after the other, so that they take few entries of the log, but all within longWait.
func (c *consumer) putOff(now time.Time) time.Duration {
	c.laterMu.Lock()
	defer c.laterMu.Unlock()
	c.later = c.later.Add(putOffPace)
	if first := now.Add(firstWait); c.later.Before(first) {
		c.later = first
	}
	if c.later.After(now.Add(longWait)) {
		return firstWait + rand.N(longWait-firstWait)
	}
	return c.later.Sub(now)
}

// end returns the operation for an outcome.
func (c *consumer) end(ref *jobpb.Ref, j *jobpb.Reserved, o outcome) *jobpb.Op {
	if o.reason == "" {
		return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}
	}
	r := &jobpb.Release{Ref: ref, Reason: o.reason, Entropy: rand.Uint64()}
	switch {
	case o.retryAfter > 0:
		r.DelayMs = o.retryAfter.Milliseconds()
	case c.settings.Backoff != nil || j.Options.GetBackoff() != nil:
		r.Backoff = true
	default:
		r.DelayMs = defaultWait(j.Attempts).Milliseconds()
	}
	return &jobpb.Op{Kind: &jobpb.Op_Release{Release: r}}
}

// defaultWait returns the wait after a failed attempt, less up to a tenth, so that jobs that
// failed together do not return together.
func defaultWait(attempt uint32) time.Duration {
	d := min(firstWait<<min(attempt-1, 20), longWait)
	return d - time.Duration(rand.Int64N(int64(d/10)))
}

// write applies an operation. It retries while that is safe and the reservation may last.
func (c *consumer) write(ctx context.Context, op *jobpb.Op) {
	ctx, cancel := context.WithTimeout(ctx, margin)
	defer cancel()
	for {
		results, err := c.q.Do(ctx, []*jobpb.Op{op})
		switch {
		case err == nil:
			if err := job.ResultError(results[0]); err != nil {
				c.p.log.Debug("a job ended otherwise while it was pushed", "topic", c.topic, "error", err)
			}
			return
		case ctx.Err() == nil && (job.CodeOf(err) == job.CodeNotApplied || job.CodeOf(err) == job.CodeOverloaded):
			sleep.For(ctx, 100*time.Millisecond)
			continue
		}
		if ctx.Err() == nil {
			c.p.log.Warn("the outcome of a push could not be written; the job becomes ready again when its reservation expires", "topic", c.topic, "error", err)
		}
		return
	}
}
