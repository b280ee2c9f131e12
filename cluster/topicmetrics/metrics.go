package topicmetrics

import (
	"sync"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// Other is the topic of all events of topics without series of their own.
	Other = "other"

	// MaxTopics bounds Options.Topics.
	MaxTopics = 10_000

	// idleMS is how long a topic keeps its series without events while others have none.
	idleMS = int64(time.Hour / time.Millisecond)
)

// lateness has the upper bounds of the buckets, in seconds. They are few, because each is
// a series for every topic.
var lateness = [...]float64{0.01, 0.1, 1, 10, 100}

// State is a consistent view of a node's state, such as view.View of fsm.
type State interface {
	Topic(name string) (*jobpb.Topic, error)
	Totals() (*jobpb.Totals, error)
	// LargestTopics returns the names of the topics with the most jobs, n at most.
	LargestTopics(n int) ([]string, error)
	Close() error
}

// Options configures Metrics.
type Options struct {
	Topics int // how many topics have series of their own; 0: none
	// State opens a view of the node's state.
	State func() State
	// Leads reports whether the node leads, and thus exports the numbers of jobs.
	Leads func() bool
	// Now is the queue's clock.
	Now func() time.Time
}

// Metrics is a prometheus.Collector. Its methods may be called from many goroutines.
// Record and Delivered do not block.
type Metrics struct {
	o          Options
	collecting sync.Mutex // held by Collect, which must not hold mu while it reads the state

	mu     sync.Mutex
	other  series
	topics map[string]*series
	full   bool // all places were taken at some time
	wanted bool // a topic had no room since the last review
}

// series are the counters of one topic.
type series struct {
	events job.TopicEvents
	late   [len(lateness)]uint64 // jobs by bucket, those of smaller buckets not included
	count  uint64
	sum    float64 // seconds
	usedMS int64   // the last event, in Unix milliseconds of the queue's clock
}

// New returns Metrics that have counted nothing.
func New(o Options) *Metrics {
	return &Metrics{o: o, topics: make(map[string]*series), full: o.Topics == 0}
}

// Record counts what happened to the jobs of a topic at an instant of the queue's clock.
func (m *Metrics) Record(nowMS int64, topic string, events *job.TopicEvents) {
	if *events == (job.TopicEvents{}) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(topic, nowMS).events.Add(events)
}

// Delivered counts how late jobs were at their first delivery, at an instant of the
// queue's clock.
func (m *Metrics) Delivered(nowMS int64, jobs []*jobpb.Reserved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var s *series
	topic := ""
	for _, j := range jobs {
		if j.Attempts != 1 {
			continue
		}
		if s == nil || j.Topic != topic {
			s, topic = m.of(j.Topic, nowMS), j.Topic
		}
		s.observe(float64(max(nowMS-j.DueMs, 0)) / 1000)
	}
}

func (s *series) observe(seconds float64) {
	s.count++
	s.sum += seconds
	for i, bound := range lateness {
		if seconds <= bound {
			s.late[i]++
			return
		}
	}
}

// of returns the series that count for a topic. It is called with m.mu held.
func (m *Metrics) of(topic string, nowMS int64) *series {
	if s := m.topics[topic]; s != nil {
		s.usedMS = nowMS
		return s
	}
	if m.add(topic, nowMS) {
		return m.topics[topic]
	}
	return &m.other
}

// add gives a topic series of its own; false: there is no room. It is called with m.mu
// held.
func (m *Metrics) add(topic string, nowMS int64) bool {
	if topic == Other {
		return false
	}
	if len(m.topics) >= m.o.Topics {
		m.wanted = true
		return false
	}
	m.topics[topic] = &series{usedMS: nowMS}
	m.full = m.full || len(m.topics) == m.o.Topics
	return true
}
