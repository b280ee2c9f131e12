package fsm

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// memory is what the applying goroutine keeps of the state. All of it is in the
// store too, or follows from it, so it makes no difference to any result.
type memory struct {
	meta     meta
	limits   *job.Limits // of the cluster version
	topics   map[string]*topic
	byNumber map[uint32]*topic
	settings map[string]*jobpb.TopicSettings // by topic, which need not be in topics
	targets  int                             // settings with a target
	due      dueHeap
	recent   recent

	windowCap    int
	windowBudget int
	held         int // places in all windows, as of the last commit

	scheduleCount int
}

// load reads everything that is kept in memory.
func load(db *pebble.DB, o Options) (mem memory, pub public, err error) {
	mem = memory{
		topics: make(map[string]*topic), byNumber: make(map[uint32]*topic),
		windowCap: o.windowCap, windowBudget: o.windowBudget,
	}
	pub = public{forgotten: make(map[string]struct{}), topics: make(map[string]TopicChange)}
	if mem.meta, err = readMeta(db); err != nil {
		return mem, pub, err
	}
	mem.limits = o.limits(mem.meta.version)
	mem.meta.state.nextSeq = max(mem.meta.state.nextSeq, 1)
	err = scan(db, []byte{spaceForgotten}, []byte{spaceForgotten + 1}, func(key, _ []byte) error {
		pub.forgotten[string(key[1:])] = struct{}{}
		return nil
	})
	if err != nil {
		return mem, pub, err
	}
	if mem.settings, err = readAllSettings(db); err != nil {
		return mem, pub, err
	}
	for _, s := range mem.settings {
		if s.Push != nil {
			mem.targets++
		}
	}
	err = scan(db, []byte{spaceTopic}, []byte{spaceTopic + 1}, func(key, value []byte) error {
		rec, err := decodeTopic(value)
		if err != nil {
			return fmt.Errorf("topic %q: %w", key[1:], err)
		}
		mem.addTopic(&topic{topicRecord: rec, name: string(key[1:])})
		return nil
	})
	if err != nil {
		return mem, pub, err
	}
	for _, t := range mem.topics {
		pub.topics[t.name] = mem.schedule(t)
	}
	if pub.schedules, mem.scheduleCount, err = loadSchedules(db); err != nil {
		return mem, pub, err
	}
	pub.applied, pub.witness, pub.clusterID = mem.meta.own(), mem.meta.witness, mem.meta.clusterID
	return mem, pub, nil
}

// addTopic adds a topic with its windows as its record allows: a list without
// jobs is known, any other is to be read, from its head on, when it is asked for.
func (mem *memory) addTopic(t *topic) {
	t.position = -1
	t.settings = mem.settings[t.name]
	t.limits = limitsOf(t.settings)
	mem.topics[t.name] = t
	mem.byNumber[t.number] = t
	for s := range t.windows {
		t.windows[s] = window{complete: t.counts[s] == 0, bound: t.heads[s], capacity: mem.capacity()}
	}
}

// dropTopic forgets a topic.
func (mem *memory) dropTopic(t *topic) {
	t.dropped = true
	delete(mem.topics, t.name)
	delete(mem.byNumber, t.number)
	mem.due.set(t, 0)
	mem.held -= t.held
	t.held = 0
}

// head is the first place of a topic's list, read from the store if the window
// does not have it.
func (mem *memory) head(db *pebble.DB, t *topic, state jobpb.State) (place, bool, error) {
	w := &t.windows[state]
	if t.counts[state] == 0 {
		return place{}, false, nil
	}
	if w.len() == 0 {
		err := w.load(t.counts[state], func(from place) (reader, func() error, error) {
			s, err := placesFrom(db, t.list(state), from)
			if err != nil {
				return nil, nil, err
			}
			return s, s.close, nil
		})
		if err != nil {
			return place{}, false, fmt.Errorf("topic %q, jobs in %s: %w", t.name, state, err)
		}
	}
	return w.live()[0], true, nil
}

// refresh brings the heads in a topic's record up to date.
func (mem *memory) refresh(db *pebble.DB, t *topic) error {
	for s := jobpb.State_STATE_DELAYED; int(s) < listCount; s++ {
		p, _, err := mem.head(db, t, s)
		if err != nil {
			return err
		}
		p.carried = 0
		t.heads[s] = p
	}
	return nil
}

// schedule puts a topic into the due heap where its record says it belongs, and
// says how it stands.
func (mem *memory) schedule(t *topic) TopicChange {
	var next int64
	for _, s := range [...]jobpb.State{jobpb.State_STATE_DELAYED, jobpb.State_STATE_RESERVED} {
		if t.counts[s] > 0 && (next == 0 || t.heads[s].instant < next) {
			next = t.heads[s].instant
		}
	}
	change := TopicChange{Name: t.name, Ready: t.counts[jobpb.State_STATE_READY], NextDue: next}
	var nextToken int64
	if t.limits != nil {
		nextToken = t.narrow(&change)
	}
	switch {
	case t.paused():
		// Nobody gets a job before the pause ends.
		switch {
		case t.pausedUntil == job.NeverMS:
			change.NextDue = 0
		case change.Ready > 0:
			change.NextDue = t.pausedUntil
		case change.NextDue != 0:
			change.NextDue = max(change.NextDue, t.pausedUntil)
		}
		change.Ready = 0
		if t.pausedUntil != job.NeverMS && (next == 0 || t.pausedUntil < next) {
			next = t.pausedUntil
		}
	case t.jobs() == 0:
		next = t.keptUntil()
	case nextToken != 0 && (next == 0 || nextToken < next):
		next = nextToken
	}
	if t.counts[stateEnded] > 0 && (next == 0 || t.heads[stateEnded].instant < next) {
		next = t.heads[stateEnded].instant
	}
	if at := t.nextExpiry(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	if t.uncovered() {
		next = atOnce
	}
	mem.due.set(t, next)
	return change
}

// earliest is the instant of the next Advance; 0: there is nothing to do.
func (mem *memory) earliest() int64 {
	if mem.meta.reset.underWay() {
		return atOnce
	}
	return mem.due.earliest()
}

// capacity is one window's share of the budget.
func (mem *memory) capacity() int {
	share := mem.windowBudget / (int(stateCount-1) * max(len(mem.topics), 1))
	return min(mem.windowCap, max(share, min(windowFloor, mem.windowCap)))
}

// count brings held up to date with one topic, after a commit.
func (mem *memory) count(t *topic) {
	mem.held -= t.held
	t.held = 0
	for s := range t.windows {
		t.windows[s].capacity = mem.capacity()
		t.held += t.windows[s].len()
	}
	mem.held += t.held
}

// economize cuts every window down to half of its share once they hold more
// than the budget together. It runs between transactions, and seldom: half the
// budget must be read again before the next time.
func (mem *memory) economize() {
	floor := int(stateCount-1) * len(mem.topics) * mem.capacity()
	if mem.held <= max(mem.windowBudget, floor) {
		return
	}
	for _, t := range mem.topics {
		for s := range t.windows {
			t.windows[s].trim(mem.capacity() / 2)
			t.windows[s].committed()
		}
		mem.count(t)
	}
}
