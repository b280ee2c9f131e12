package topicmetrics

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// node is the state and the clock that Metrics see.
type node struct {
	topics map[string]*jobpb.Topic
	leads  bool
	now    time.Time
	scans  int // of all topics
	open   int
}

func (n *node) Topic(name string) (*jobpb.Topic, error) {
	if t := n.topics[name]; t != nil {
		return t, nil
	}
	return &jobpb.Topic{Name: name}, nil
}

func (n *node) Totals() (*jobpb.Totals, error) {
	sum := &jobpb.Totals{Topics: uint64(len(n.topics))}
	for _, t := range n.topics {
		sum.Ready += t.Ready
		sum.Dead += t.Dead
	}
	return sum, nil
}

func (n *node) LargestTopics(most int) ([]string, error) {
	n.scans++
	names := slices.SortedFunc(maps.Keys(n.topics), func(a, b string) int {
		return cmp.Compare(n.topics[b].Ready, n.topics[a].Ready)
	})
	return names[:min(most, len(names))], nil
}

func (n *node) Close() error { n.open--; return nil }

func (n *node) metrics(topics int) *Metrics {
	return New(Options{
		Topics: topics, State: func() State { n.open++; return n },
		Leads: func() bool { return n.leads }, Now: func() time.Time { return n.now },
	})
}

func newNode() *node {
	return &node{topics: map[string]*jobpb.Topic{}, leads: true, now: time.UnixMilli(1_700_000_000_000)}
}

func (n *node) ms() int64 { return n.now.UnixMilli() }

// values are the metrics by name and labels.
func values(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, one := range f.Metric {
			key := strings.TrimPrefix(f.GetName(), "tarry_topic_")
			for _, l := range one.Label {
				key += " " + l.GetValue()
			}
			switch {
			case one.Counter != nil:
				all[key] = one.Counter.GetValue()
			case one.Gauge != nil:
				all[key] = one.Gauge.GetValue()
			default:
				all[key] = float64(one.Histogram.GetSampleCount())
				for _, b := range one.Histogram.Bucket {
					all[fmt.Sprintf("%s %v", key, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

func added(n uint64) *job.TopicEvents { return &job.TopicEvents{job.TopicAdded: n} }

func TestTheRestIsSummedAsOther(t *testing.T) {
	n := newNode()
	n.topics["mail"] = &jobpb.Topic{Ready: 3, Added: 5, OldestDueMs: n.ms() - 1500}
	n.topics["work"] = &jobpb.Topic{Ready: 4, Dead: 1, Added: 9, PausedUntilMs: job.NeverMS}
	n.topics["rest"] = &jobpb.Topic{Ready: 2, Dead: 6, Added: 9}
	n.topics[Other] = &jobpb.Topic{Ready: 1, Added: 1}
	m := n.metrics(2)
	m.Record(n.ms(), Other, added(1))
	m.Record(n.ms(), "mail", &job.TopicEvents{job.TopicAdded: 5, job.TopicTimeout: 2})
	m.Record(n.ms(), "work", added(9))
	m.Record(n.ms(), "rest", added(9))
	m.Record(n.ms(), "rest", &job.TopicEvents{})
	v := values(t, m)
	for key, want := range map[string]float64{
		"adds_total mail": 5, "timeouts_total mail": 2, "adds_total work": 9, "adds_total other": 10,
		"jobs ready mail": 3, "jobs ready work": 4, "jobs ready other": 3, "jobs dead other": 6, "jobs dead work": 1,
		"oldest_ready_seconds mail": 1.5, "paused mail": 0, "paused work": 1,
	} {
		require.InDelta(t, want, v[key], 1e-9, key)
	}
	require.NotContains(t, v, "adds_total rest")
	require.NotContains(t, v, "oldest_ready_seconds other")
	n.leads = false
	v = values(t, m)
	require.EqualValues(t, 9, v["adds_total work"], "a node keeps what it counted as the leader")
	require.NotContains(t, v, "jobs ready mail", "the leader has the jobs")
	require.Zero(t, n.open, "views are closed")
}

func TestWithoutTopicsAllIsOther(t *testing.T) {
	n := newNode()
	n.topics["mail"] = &jobpb.Topic{Ready: 3, Added: 5}
	m := n.metrics(0)
	m.Record(n.ms(), "mail", added(5))
	v := values(t, m)
	require.EqualValues(t, 5, v["adds_total other"])
	require.EqualValues(t, 3, v["jobs ready other"])
	require.Zero(t, n.scans)
	for key := range v {
		require.NotContains(t, key, "mail")
	}
}

func TestLatenessIsThatOfFirstDeliveries(t *testing.T) {
	n := newNode()
	m := n.metrics(1)
	late := func(topic string, ms int64, attempt uint32) *jobpb.Reserved {
		return &jobpb.Reserved{Topic: topic, DueMs: n.ms() - ms, Attempts: attempt}
	}
	m.Delivered(n.ms(), []*jobpb.Reserved{
		late("mail", 5, 1), late("mail", 10, 1), late("mail", 50, 1), late("mail", 9000, 2), late("mail", -20, 1), late("mail", 200_000, 1),
		late("work", 5000, 1),
	})
	v := values(t, m)
	for key, want := range map[string]float64{
		"lateness_seconds mail 0.01": 3, "lateness_seconds mail 0.1": 4, "lateness_seconds mail 100": 4, "lateness_seconds mail": 5,
		"lateness_seconds other 1": 0, "lateness_seconds other 10": 1, "lateness_seconds other": 1,
	} {
		require.Equal(t, want, v[key], key)
	}
}

// At the start nothing has happened yet. The largest topics get the places, and keep them.
func TestTheLargestTopicsComeFirst(t *testing.T) {
	n := newNode()
	for i := range 10 {
		n.topics[fmt.Sprint("t", i)] = &jobpb.Topic{Ready: uint64(i + 1), Added: 20}
	}
	m := n.metrics(3)
	v := values(t, m)
	for key, want := range map[string]float64{"jobs ready t9": 10, "jobs ready t8": 9, "jobs ready t7": 8, "jobs ready other": 28} {
		require.Equal(t, want, v[key], key)
	}
	n.topics["t0"].Ready = 1000
	m.Record(n.ms(), "t0", added(1))
	for range 3 {
		require.NotContains(t, values(t, m), "jobs ready t0", "it is the largest now, but there is no room")
	}
	require.Equal(t, 1, n.scans, "topics are searched only while there is room")
}

func TestATopicKeepsItsSeriesUntilItIsIdleOrGone(t *testing.T) {
	n := newNode()
	m := n.metrics(2)
	for _, name := range []string{"a", "b", "c"} {
		n.topics[name] = &jobpb.Topic{Ready: 1, Added: 1}
		m.Record(n.ms(), name, added(1))
	}
	step := func(d time.Duration, active ...string) map[string]float64 {
		n.now = n.now.Add(d)
		for _, name := range active {
			m.Record(n.ms(), name, added(1))
		}
		return values(t, m)
	}
	v := step(59*time.Minute, "a", "c")
	require.EqualValues(t, []float64{2, 1, 2}, []float64{v["adds_total a"], v["adds_total b"], v["adds_total other"]})

	v = step(2*time.Minute, "c")
	require.NotContains(t, v, "adds_total b", "idle for an hour, and c wants its place")
	require.NotContains(t, v, "adds_total c", "it takes the place with its next event")
	require.EqualValues(t, 3, v["adds_total other"])

	v = step(0, "c", "b")
	require.EqualValues(t, []float64{2, 1, 4}, []float64{v["adds_total a"], v["adds_total c"], v["adds_total other"]}, "what b does now is other")

	delete(n.topics, "a")
	delete(n.topics, "b")
	v = step(30*time.Minute, "c")
	require.Contains(t, v, "adds_total a", "its last event was less than an hour ago")
	v = step(31*time.Minute, "c")
	require.NotContains(t, v, "adds_total a", "it is gone")
	v = step(3 * time.Hour)
	require.EqualValues(t, 3, v["adds_total c"], "idle, but nobody wants its place")
	n.topics["a"] = &jobpb.Topic{Ready: 1, Added: 1}
	v = step(0, "a")
	require.EqualValues(t, []float64{1, 4}, []float64{v["adds_total a"], v["adds_total other"]})
}

func TestMemoryIsBoundedHoweverManyTopicsThereAre(t *testing.T) {
	n := newNode()
	m := n.metrics(100)
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprint("topic-", i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, name := range names {
		m.Record(n.ms(), name, added(1))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Len(t, m.topics, 100)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(256<<10))
	runtime.KeepAlive(names)
}
