package rates

import (
	"container/list"
	"sync"
	"time"

	"tarry/job"
)

const (
	// Step is the time that one sample counts.
	Step = 10 * time.Second
	// Steps is how many complete steps are kept.
	Steps = 90
	// MaxTopics bounds the topics that have a series. While so many topics were active
	// within the kept time, others are not recorded.
	MaxTopics = 1000

	window = Steps + 1 // with the step under way
	stepMS = int64(Step / time.Millisecond)
)

// Recorder records the events of topics. Its methods may be called from many goroutines.
// They do not block.
type Recorder struct {
	mu     sync.Mutex
	all    *ring
	topics map[string]*list.Element
	// active has the rings of the topics, the one that was active last in front.
	active list.List
	// refused is the last step in which a topic could not be recorded; 0: none.
	refused int64
}

// ring counts the events of one topic, or of all, by step: step n is at index n % window.
type ring struct {
	topic string
	first int64 // the first step that was recorded
	last  int64 // the last step in which something happened
	steps [window][len(job.TopicEvents{})]uint32
}

// NewRecorder returns a Recorder that has recorded nothing.
func NewRecorder() *Recorder { return &Recorder{topics: make(map[string]*list.Element)} }

// Record records what happened to the jobs of a topic at an instant of the queue's clock,
// in Unix milliseconds. After the clock was set back everything before is forgotten.
func (r *Recorder) Record(nowMS int64, topic string, events *job.TopicEvents) {
	if *events == (job.TopicEvents{}) {
		return
	}
	step := nowMS / stepMS
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || step < r.all.last {
		r.all = &ring{first: step, last: step}
		clear(r.topics)
		r.active.Init()
		r.refused = 0
	}
	r.all.add(step, events)
	if own := r.ringOf(step, topic); own != nil {
		own.add(step, events)
	}
}

// ringOf returns the ring of a topic that is active now; nil: there is no room. It is
// called with r.mu held.
func (r *Recorder) ringOf(step int64, topic string) *ring {
	if e := r.topics[topic]; e != nil {
		r.active.MoveToFront(e)
		return e.Value.(*ring)
	}
	var own *ring
	if r.active.Len() < MaxTopics {
		own = new(ring)
	} else {
		idle := r.active.Back()
		if own = idle.Value.(*ring); step-own.last < window {
			r.refused = step
			return nil
		}
		r.active.Remove(idle)
		delete(r.topics, own.topic)
	}
	*own = ring{topic: topic, first: r.knownFrom(step), last: step}
	r.topics[topic] = r.active.PushFront(own)
	return own
}

// knownFrom returns the first step from which on a topic without a ring is known to have
// had no events. It is called with r.mu held.
func (r *Recorder) knownFrom(step int64) int64 {
	if r.refused > step-window {
		return step
	}
	return r.all.first
}

// add counts events in a step that is not before the last one.
func (g *ring) add(step int64, events *job.TopicEvents) {
	for s := max(g.last, step-window) + 1; s <= step; s++ {
		g.steps[s%window] = [len(job.TopicEvents{})]uint32{}
	}
	g.last = step
	at := &g.steps[step%window]
	for e, n := range events {
		at[e] += uint32(n)
	}
}

// Total returns the series of all topics together, up to an instant of the queue's clock.
func (r *Recorder) Total(now time.Time) Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		return Series{}
	}
	return r.all.series(r.upTo(now))
}

// Topic returns the series of a topic, up to an instant of the queue's clock. It is all
// zero if the topic had no events, and empty if that is not known.
func (r *Recorder) Topic(now time.Time, topic string) Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		return Series{}
	}
	to := r.upTo(now)
	if e := r.topics[topic]; e != nil {
		return e.Value.(*ring).series(to)
	}
	from := r.knownFrom(to)
	if from == to {
		return Series{}
	}
	return (&ring{first: from, last: from}).series(to)
}

// upTo returns the step under way. It is called with r.mu held.
func (r *Recorder) upTo(now time.Time) int64 { return max(now.UnixMilli()/stepMS, r.all.last) }

// series returns the kept steps up to one that is not before the last.
func (g *ring) series(to int64) Series {
	from := max(g.first, to-Steps)
	s := Series{Start: time.UnixMilli(from * stepMS), Samples: make([]job.TopicEvents, to-from+1)}
	for step := max(from, g.last-Steps); step <= g.last; step++ {
		for e, n := range g.steps[step%window] {
			s.Samples[step-from][e] = uint64(n)
		}
	}
	return s
}
