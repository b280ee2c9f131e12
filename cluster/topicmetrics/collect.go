package topicmetrics

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/job"
	"tarry/job/jobpb"
)

var (
	topicLabel = []string{"topic"}

	jobsDesc = prometheus.NewDesc("tarry_topic_jobs",
		"Jobs of a topic by state; only the leader has this metric.", []string{"topic", "state"}, nil)
	oldestDesc = prometheus.NewDesc("tarry_topic_oldest_ready_seconds",
		"Time since the oldest ready job of a topic became due, 0 without ready jobs; only the leader has this metric, and not for other.", topicLabel, nil)
	pausedDesc = prometheus.NewDesc("tarry_topic_paused",
		"1 while a topic is paused; only the leader has this metric, and not for other.", topicLabel, nil)
	latenessDesc = prometheus.NewDesc("tarry_topic_lateness_seconds",
		"Time from a job's due instant to its first reservation, by topic, counted by the leader.", topicLabel, nil)

	eventDescs = [len(job.TopicEvents{})]*prometheus.Desc{
		job.TopicAdded:     eventDesc("adds", "Jobs added to a topic"),
		job.TopicDelivered: eventDesc("deliveries", "Jobs of a topic handed to consumers"),
		job.TopicFinished:  eventDesc("finishes", "Jobs of a topic that were finished"),
		job.TopicDeleted:   eventDesc("deletes", "Jobs of a topic that were deleted"),
		job.TopicTimeout:   eventDesc("timeouts", "Reservations of a topic's jobs that expired"),
		job.TopicDied:      eventDesc("deaths", "Jobs of a topic that died"),
		job.TopicExpired:   eventDesc("expiries", "Jobs of a topic that were not reserved in time"),
	}
)

func eventDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tarry_topic_"+name+"_total", help+", counted by the leader.", topicLabel, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(eventDescs[:], jobsDesc, oldestDesc, pausedDesc, latenessDesc) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	state := m.o.State()
	live, totals, err := m.review(state)
	if err := errors.Join(err, state.Close()); err != nil {
		ch <- prometheus.NewInvalidMetric(jobsDesc, err)
		return
	}
	if m.o.Leads() {
		m.collectJobs(ch, live, totals)
	}
	m.mu.Lock()
	counted := make(map[string]series, len(m.topics)+1)
	for name, s := range m.topics {
		counted[name] = *s
	}
	counted[Other] = m.other
	m.mu.Unlock()
	for name, s := range counted {
		s.collect(ch, name)
	}
}

// review ends the series of topics that are gone, or idle while others have no room. Until
// all places were taken once it gives free ones to the largest topics, later only events
// take them. It returns the topics that have series now.
func (m *Metrics) review(state State) (map[string]*jobpb.Topic, *jobpb.Totals, error) {
	totals, err := state.Totals()
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	names := slices.Collect(maps.Keys(m.topics))
	m.mu.Unlock()
	live := make(map[string]*jobpb.Topic, len(names))
	read := func(names []string) error {
		for _, name := range names {
			t, err := state.Topic(name)
			if err != nil {
				return err
			}
			if exists(t) {
				live[name] = t
			}
		}
		return nil
	}
	if err := read(names); err != nil {
		return nil, nil, err
	}
	if full := m.end(names, live); full || len(live) >= int(totals.Topics) {
		return live, totals, nil
	}
	largest, err := state.LargestTopics(m.o.Topics)
	if err != nil {
		return nil, nil, err
	}
	return live, totals, read(m.fill(largest))
}

// exists reports whether there is a topic, which View.Topic does not say: one without jobs
// is kept for an hour, with its totals.
func exists(t *jobpb.Topic) bool {
	return t.Delayed+t.Ready+t.Reserved+t.Dead+t.Retained+t.Added+t.Finished+t.Deleted+t.Died+t.Expired+t.Timeouts > 0
}

// end removes series, and their topics from live. It returns whether all
// places were taken once.
func (m *Metrics) end(names []string, live map[string]*jobpb.Topic) (full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	idleSince := m.o.Now().UnixMilli() - idleMS
	for _, name := range names {
		gone := live[name] == nil
		if m.topics[name].usedMS <= idleSince && (gone || m.wanted) {
			delete(m.topics, name)
			delete(live, name)
		}
	}
	m.wanted = false
	return m.full
}

// fill gives topics series while there is room, and returns the new ones.
func (m *Metrics) fill(names []string) (begun []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now().UnixMilli()
	for _, name := range names {
		if len(m.topics) < m.o.Topics && m.topics[name] == nil && m.add(name, now) {
			begun = append(begun, name)
		}
	}
	return begun
}

// collectJobs sends the numbers of jobs of the topics that have series, and of all others.
func (m *Metrics) collectJobs(ch chan<- prometheus.Metric, live map[string]*jobpb.Topic, totals *jobpb.Totals) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	now := m.o.Now()
	rest := jobpb.Topic{Delayed: totals.Delayed, Ready: totals.Ready, Reserved: totals.Reserved, Dead: totals.Dead, Retained: totals.Retained}
	jobs := func(name string, t *jobpb.Topic) {
		gauge(jobsDesc, float64(t.Delayed), name, "delayed")
		gauge(jobsDesc, float64(t.Ready), name, "ready")
		gauge(jobsDesc, float64(t.Reserved), name, "reserved")
		gauge(jobsDesc, float64(t.Dead), name, "dead")
		gauge(jobsDesc, float64(t.Retained), name, "retained")
	}
	for name, t := range live {
		jobs(name, t)
		oldest := 0.0
		if t.Ready > 0 { // then the oldest of the delayed and ready jobs is ready
			oldest = max(0, now.Sub(time.UnixMilli(t.OldestDueMs)).Seconds())
		}
		gauge(oldestDesc, oldest, name)
		paused := 0.0
		if t.PausedUntilMs != 0 {
			paused = 1
		}
		gauge(pausedDesc, paused, name)
		rest.Delayed -= t.Delayed
		rest.Ready -= t.Ready
		rest.Reserved -= t.Reserved
		rest.Dead -= t.Dead
		rest.Retained -= t.Retained
	}
	jobs(Other, &rest)
}

// collect sends the counters.
func (s *series) collect(ch chan<- prometheus.Metric, topic string) {
	for e, d := range eventDescs {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(s.events[e]), topic)
	}
	buckets := make(map[float64]uint64, len(lateness))
	sum := uint64(0)
	for i, bound := range lateness {
		sum += s.late[i]
		buckets[bound] = sum
	}
	ch <- prometheus.MustNewConstHistogram(latenessDesc, s.count, s.sum, buckets, topic)
}
