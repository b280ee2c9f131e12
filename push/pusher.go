package push

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"tarry/auth"
	"tarry/internal/secretkeys"
	"tarry/job/jobpb"
)

const (
	// MaxPosts bounds the posts in flight. At most so many jobs are in memory, plus one
	// for each topic that has a target (job.MaxPushTargets).
	MaxPosts = 256

	// settingsPause is the interval of checks for changed settings, and the wait after an
	// error.
	settingsPause = time.Second

	// pageSize is how many topics are read at once.
	pageSize = 1000
)

// Queue is what a Pusher needs of the node; api.Queue documents the methods.
type Queue interface {
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)
	ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error)
	// SettingsVersion changes whenever the settings of a topic may have. It does
	// not block.
	SettingsVersion() uint64
}

// Options configures a Pusher.
type Options struct {
	Allow  Allow
	Logger *slog.Logger // nil: nothing is logged
	// Secrets opens the secrets that are sealed; nil: this node has no keys.
	Secrets *secretkeys.Ring
	// Trace starts a span of a post. It returns the traceparent to send instead of the job's,
	// unless it is empty, and the function that ends the span with the status of the response,
	// 0 for none, and why the post failed, if it did. nil: there are no spans.
	Trace func(j *jobpb.Reserved, target string) (parent string, end func(status int, failure string))
}

// Pusher posts the jobs of topics that have a target. It is a prometheus.Collector
// of its own metrics.
type Pusher struct {
	allow   Allow
	log     *slog.Logger
	trace   func(*jobpb.Reserved, string) (string, func(int, string))
	toTopic *http.Client        // for the URLs of topics
	toJob   *http.Client        // for those of jobs
	posts   *semaphore.Weighted // one for each post
	known   *targets
	metrics *metrics
	secrets *secretkeys.Ring

	mu     sync.Mutex
	sealed map[string][]byte // the sealed secrets of the topics that this node posts for
}

// New returns a Pusher that does nothing until Run.
func New(o Options) *Pusher {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pusher{allow: o.Allow, log: o.Logger, trace: o.Trace, toTopic: newClient(o.Allow, topicTLS()), toJob: newClient(o.Allow, jobTLS()), posts: semaphore.NewWeighted(MaxPosts), known: newTargets(), metrics: newMetrics(), secrets: o.Secrets}
}

// Run pushes until ctx ends. Only the leader may call it. It blocks, and returns when
// every goroutine that it started has ended. The outcome of posts in flight is not
// recorded: their jobs become ready again when their reservations expire.
func (p *Pusher) Run(ctx context.Context, q Queue) {
	ctx = auth.NewContext(ctx, auth.System()) // who set the target had the right to
	defer p.toTopic.CloseIdleConnections()
	defer p.toJob.CloseIdleConnections()
	defer p.metrics.topics.Set(0)
	defer p.setSealed(nil)
	running := map[string]*consumer{}
	var work sync.WaitGroup
	defer work.Wait()
	tick := time.NewTicker(settingsPause)
	defer tick.Stop()
	for known := q.SettingsVersion() - 1; ; {
		if v := q.SettingsVersion(); v != known {
			if err := p.follow(ctx, q, running, &work); err == nil {
				known = v
			} else if ctx.Err() == nil {
				p.log.Warn("the targets of topics cannot be read; trying again", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// follow starts and stops consumers to match the current settings. A consumer that
// another one replaces reserves no more jobs; its posts complete.
func (p *Pusher) follow(ctx context.Context, q Queue, running map[string]*consumer, work *sync.WaitGroup) error {
	wanted, err := p.targets(ctx, q)
	if err != nil {
		return err
	}
	p.setSealed(wanted)
	for topic, c := range running {
		if !c.matches(wanted[topic]) {
			c.stop()
			delete(running, topic)
		}
	}
	for topic, s := range wanted {
		if running[topic] == nil {
			running[topic] = p.consume(ctx, q, topic, s, work)
		}
	}
	p.metrics.topics.Set(float64(len(running)))
	return nil
}

// targets returns the settings of the topics that have a target.
func (p *Pusher) targets(ctx context.Context, q Queue) (map[string]*jobpb.TopicSettings, error) {
	wanted := map[string]*jobpb.TopicSettings{}
	for after := ""; ; {
		page, err := q.ConfiguredTopics(ctx, after, pageSize, true)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			switch {
			case t.Settings.GetPush() == nil:
			case p.allow.Empty():
				p.log.Warn("a topic has a target, but this node was started without --push-allow: its jobs are not pushed", "topic", t.Name)
			default:
				wanted[t.Name] = t.Settings
			}
		}
		if len(page) < pageSize {
			return wanted, nil
		}
		after = page[len(page)-1].Name
	}
}

type metrics struct {
	posts   *prometheus.CounterVec
	seconds prometheus.Histogram
	topics  prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		posts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tarry_pushes_total",
			Help: "Jobs posted to targets, by outcome: taken, 1xx, 4xx, 5xx, redirect, timeout, blocked, error; no_target: there was no URL for one; no_key: the secret of the topic cannot be opened; put_off: not now, because targets do not reply.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_push_seconds", Help: "Time until a target replied.",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60},
		}),
		topics: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tarry_push_topics", Help: "Topics whose jobs this node posts to a target.",
		}),
	}
	for _, outcome := range []string{"taken", "redirect", "4xx", "5xx", "timeout", "blocked", "error", "no_target", "no_key", "put_off"} {
		m.posts.WithLabelValues(outcome) // 0 before the first, so that a rate sees it
	}
	return m
}

// Describe implements prometheus.Collector.
func (p *Pusher) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, to) }

// Collect implements prometheus.Collector.
func (p *Pusher) Collect(to chan<- prometheus.Metric) {
	p.metrics.posts.Collect(to)
	p.metrics.seconds.Collect(to)
	p.metrics.topics.Collect(to)
}
