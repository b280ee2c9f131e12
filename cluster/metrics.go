package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/job/jobpb"
)

// shardMetrics are the metrics that a shard updates itself. collector.go reads the others
// on request.
type shardMetrics struct {
	commitSeconds prometheus.Histogram
	unknown       prometheus.Counter
	batchOps      prometheus.Histogram
	batchBytes    prometheus.Histogram
	lateness      prometheus.Histogram
	runLateness   prometheus.Histogram
	delivered     prometheus.Counter
	elections     prometheus.Counter
}

func newShardMetrics(r prometheus.Registerer) *shardMetrics {
	m := &shardMetrics{
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_commit_seconds", Help: "Time from proposing an entry on this leader until it was committed and applied.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16)}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_unknown_outcomes_total", Help: "Entries of which this leader never learned the outcome."}),
		batchOps: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_batch_operations", Help: "Operations per batch sent towards the log by this node.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13)}),
		batchBytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_batch_bytes", Help: "Bytes per batch sent towards the log by this node.",
			Buckets: prometheus.ExponentialBuckets(64, 4, 9)}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_delivery_lateness_seconds", Help: "Time from a job's due instant to its first reservation, on this leader.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 20)}),
		runLateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tarry_schedule_lateness_seconds", Help: "Time from a scheduled run's planned instant until it was started or skipped, on this leader; runs made good are late by the time they were missed.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 20)}),
		delivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_deliveries_total", Help: "Jobs handed to consumers by this leader; those reserved by their id: by the node that was asked."}),
		elections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_leaderships_total", Help: "Times this node became the leader."}),
	}
	r.MustRegister(m.commitSeconds, m.unknown, m.batchOps, m.batchBytes, m.lateness, m.runLateness, m.delivered, m.elections)
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
