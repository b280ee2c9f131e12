package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/job/jobpb"
)

// shardMetrics are the metrics that a shard updates itself. shardCollector reads the others
// on request.
type shardMetrics struct {
	commitSeconds prometheus.Histogram
	unknown       prometheus.Counter
	forwarded     prometheus.Counter
	batchOps      prometheus.Histogram
	batchBytes    prometheus.Histogram
	lateness      prometheus.Histogram
	runLateness   prometheus.Histogram
	delivered     prometheus.Counter
	elections     prometheus.Counter
	examined      *prometheus.CounterVec
}

func newShardMetrics(r prometheus.Registerer) *shardMetrics {
	m := &shardMetrics{
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_commit_seconds", Help: "Time from proposing an entry on this leader until it was committed and applied.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16)}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_unknown_outcomes_total", Help: "Entries whose outcome this leader did not learn."}),
		forwarded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_forwarded_operations_total", Help: "Operations that this node sent to a leader on another node."}),
		batchOps: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_batch_operations", Help: "Operations per batch that this node proposed or sent to the leader.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13)}),
		batchBytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_batch_bytes", Help: "Bytes per batch that this node proposed or sent to the leader.",
			Buckets: prometheus.ExponentialBuckets(64, 4, 9)}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_delivery_lateness_seconds", Help: "Time from a job's due instant to its first reservation, on this leader.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 20)}),
		runLateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_schedule_lateness_seconds", Help: "Time from a scheduled run's planned instant until it was started or skipped, on this leader; missed runs that are made up count as late.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 20)}),
		delivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_deliveries_total", Help: "Jobs handed to consumers by this leader; jobs reserved by their id count on the node that received the request."}),
		elections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_leaderships_total", Help: "Times this node became the leader."}),
		examined: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tarry_listing_examined_total", Help: "Jobs that this node read for listings and searches, found or not, by what they were listed by: topic, id or header."}, []string{"by"}),
	}
	for _, by := range []string{listingByTopic, listingByID, listingByHeader} {
		m.examined.WithLabelValues(by)
	}
	r.MustRegister(m.examined, m.commitSeconds, m.unknown, m.forwarded, m.batchOps, m.batchBytes, m.lateness, m.runLateness, m.delivered, m.elections)
	return m
}

func (m *shardMetrics) commit(d time.Duration, err error) {
	switch {
	case err == nil:
		m.commitSeconds.Observe(d.Seconds())
	case err != leaderrpc.ErrNotLeader:
		m.unknown.Inc()
	}
}

func (m *shardMetrics) batch(b *groupcommit.Batch) {
	m.batchOps.Observe(float64(b.Count))
	m.batchBytes.Observe(float64(b.Bytes))
}

// What a listing goes by.
const (
	listingByTopic  = "topic"
	listingByID     = "id"
	listingByHeader = "header"
)

// read counts the jobs that a read looked at.
func (m *shardMetrics) read(r *jobpb.Read, examined uint64) {
	if examined == 0 {
		return
	}
	q, by := r.GetJobs(), listingByTopic
	switch {
	case q.GetByHeader():
		by = listingByHeader
	case q.GetFilter().GetIdPrefix() != "":
		by = listingByID
	}
	m.examined.WithLabelValues(by).Add(float64(examined))
}

// handedOut counts jobs that were handed to consumers.
func (s *Shard) handedOut(jobs []*jobpb.Reserved, now time.Time) {
	s.metrics.handedOut(jobs, now)
	s.topics.Delivered(now.UnixMilli(), jobs)
}

// handedOut measures lateness at a job's first delivery. Later deliveries depend on the
// consumers.
func (m *shardMetrics) handedOut(jobs []*jobpb.Reserved, now time.Time) {
	ms := now.UnixMilli()
	for _, j := range jobs {
		if j.Attempts == 1 {
			m.lateness.Observe(float64(max(ms-j.DueMs, 0)) / 1000)
		}
	}
	m.delivered.Add(float64(len(jobs)))
}

// fired measures the lateness of the runs that were added.
func (m *shardMetrics) fired(ops []*jobpb.Op, results []*jobpb.Result, now time.Time) {
	ms := now.UnixMilli()
	for i, r := range results {
		if r.Code != jobpb.Code_OK {
			continue
		}
		for _, run := range ops[i].GetFireSchedule().GetRuns() {
			m.runLateness.Observe(float64(max(ms-run.PlannedMs, 0)) / 1000)
		}
	}
}
