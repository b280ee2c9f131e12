package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/fsm/internal/window"
	"tarry/job"
	"tarry/job/jobpb"
)

// topicKeepMS is how long, on the FSM clock, a topic without jobs is kept, with
// its totals. Then an Advance drops it. At the limit of topics it goes earlier.
const topicKeepMS = 60 * 60 * 1000

// topic is a topic in memory: its record, and the heads of its lists.
type topic struct {
	record.Topic
	name     string
	windows  [record.ListCount]window.Window // by list
	settings *jobpb.TopicSettings            // nil: none; never changed, only replaced
	limits   *limits                         // those in the settings; nil: none
	// namespace is that whose prefix the name begins with; nil: none.
	namespace *namespace

	// dirty: the record or a head changed since refreshHeads last ran.
	dirty bool
	// touched: the record changed in the transaction and must be written.
	touched bool
	dropped bool
	spare   bool   // counted in memory.spares
	namedBy uint64 // the last Reserve that named the topic
	held    int    // places in its windows, as memory.held counts them

	delivered uint64          // reservations made since the topic was read or created
	counted   job.TopicEvents // that earlier commits reported

	next     int64 // the instant at which the topic next needs an Advance; 0: never
	position int   // in the due heap; -1: not there
}

// idle reports whether nothing is lost with a topic but its totals.
func (t *topic) idle(now int64) bool {
	return t.Jobs() == 0 && !t.Paused() && (t.Bucket == nil || t.limits.rate.Until(t.Bucket, t.limits.rate.Burst) <= now)
}

// keptUntil returns when a topic without jobs is dropped. Its bucket is full then, like
// that of a new topic.
func (t *topic) keptUntil() int64 {
	end := t.EmptySince + topicKeepMS
	if t.Bucket != nil {
		end = max(end, t.limits.rate.Until(t.Bucket, t.limits.rate.Burst))
	}
	return end
}

// events returns the counts of the topic's events so far.
func (t *topic) events() job.TopicEvents {
	return job.TopicEvents{
		job.TopicAdded: t.Added, job.TopicDelivered: t.delivered, job.TopicFinished: t.Finished,
		job.TopicDeleted: t.Deleted, job.TopicTimeout: t.Timeouts, job.TopicDied: t.Died, job.TopicExpired: t.Expired,
	}
}

// takeEvents returns the events since the last call.
func (t *topic) takeEvents() job.TopicEvents {
	now := t.events()
	more := now.Since(&t.counted)
	t.counted = now
	return more
}

func (t *topic) listID(list record.List) record.ListID {
	return record.ListID{Topic: t.Number, List: list}
}

// soonMax bounds TopicChange.Soon: as many jobs as often fall due at once.
const soonMax = 16

// soon returns TopicChange.Soon. It is empty while a pause or a limit may hold the jobs
// back at those instants.
func (t *topic) soon() []int64 {
	live := t.windows[record.ListDelayed].Live()
	if len(live) == 0 || t.Paused() || t.limits != nil {
		return nil
	}
	instants := make([]int64, min(len(live), soonMax))
	for i := range instants {
		instants[i] = live[i].Instant
	}
	return instants
}
