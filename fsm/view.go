package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// View is the state at one point of the log. It may be used from several goroutines.
// While it is open the store cannot reclaim what was deleted since, so it should be closed
// soon. Its methods return ErrViewEnded once the state was closed or replaced.
type View struct {
	shard uint32
	store *database
	ended atomic.Bool // ends long reads
	// examined counts the entries that listings looked at.
	examined atomic.Uint64

	mu       sync.RWMutex     // held for reading by every read
	snapshot *pebble.Snapshot // nil once closed or ended
}

// Close releases the view. Closing it again does nothing.
func (v *View) Close() error {
	// The database must have the view until its snapshot is closed: database.close waits
	// for that.
	err := v.end()
	v.store.forget(v)
	return err
}

func (v *View) end() error {
	v.ended.Store(true)
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.snapshot
	v.snapshot = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

// read runs f over the snapshot.
func (v *View) read(f func(r pebble.Reader) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.snapshot == nil {
		return ErrViewEnded
	}
	return f(v.snapshot)
}

// errEnough, returned by the function that a scan of a view calls, ends the scan early.
var errEnough = errors.New("enough")

// scan is the function scan, which also ends with the view and at errEnough.
func (v *View) scan(r pebble.Reader, lower, upper []byte, f func(key, value []byte) error) error {
	err := scan(r, lower, upper, func(key, value []byte) error {
		if v.ended.Load() {
			return ErrViewEnded
		}
		return f(key, value)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Examined returns how many entries the listings of this view have looked at, in$
// their pages or not.
func (v *View) Examined() uint64 { return v.examined.Load() }

// Applied returns the point of the log that the view shows.
func (v *View) Applied() (a Applied, err error) {
	err = v.read(func(r pebble.Reader) error { a, err = readApplied(r); return err })
	return a, err
}

// Job returns a job by the producer's or the server's id. Retained jobs are included.
func (v *View) Job(id string) (j *jobpb.Job, found bool, err error) {
	err = v.read(func(r pebble.Reader) error {
		seq, fromServer, err := findID(r, v.shard, id, nil)
		if err != nil || seq == 0 {
			return err
		}
		j, found, err = v.job(r, seq)
		if found && fromServer && j.Id != id {
			j, found = nil, false // it has an id of its own
		}
		return err
	})
	return j, found, err
}

// JobBySeq is Job by seq.
func (v *View) JobBySeq(seq uint64) (j *jobpb.Job, found bool, err error) {
	err = v.read(func(r pebble.Reader) error { j, found, err = v.job(r, seq); return err })
	return j, found, err
}

func (v *View) job(r pebble.Reader, seq uint64) (*jobpb.Job, bool, error) {
	rec, err := readJob(r, seq, true)
	if err != nil || rec == nil {
		return nil, false, err
	}
	m, err := readMeta(r)
	if err != nil {
		return nil, false, err
	}
	list, err := listOf(r, m.maxClock(), rec)
	if err != nil {
		return nil, false, err
	}
	name, err := topicName(r, rec.topic())
	if err != nil {
		return nil, false, err
	}
	j, err := v.describe(r, rec, list, name)
	if err != nil {
		return nil, false, err
	}
	j.History, j.HistoryDropped, err = rec.describeHistory()
	return j, err == nil, err
}

// describe returns everything that readers see of a job, except the history.
func (v *View) describe(r pebble.Reader, rec *record, list listKind, topic string) (*jobpb.Job, error) {
	options, err := rec.spec.decodeOptions()
	if err != nil {
		return nil, err
	}
	j := &jobpb.Job{
		Id: rec.name(v.shard), Seq: rec.seq, Topic: topic,
		Body: rec.body, BodyKind: rec.spec.bodyKind, State: rec.state(list),
		Priority: rec.status.priority, DueMs: rec.status.dueMS, TtrMs: rec.status.ttrMS,
		Revision: rec.status.revision, Attempts: rec.status.attempts, MaxAttempts: rec.status.maxAttempts,
		CreatedMs: rec.spec.createdMS, ModifiedMs: rec.status.modifiedMS, Reason: rec.status.reason,
		Reserves: rec.status.reserves, Timeouts: rec.status.timeouts, Releases: rec.status.releases,
		Buries: rec.status.buries, Kicks: rec.status.kicks, DelayMs: rec.status.lastDelayMS,
		Options: options, LastError: rec.status.lastError,
	}
	switch {
	case list == listDead:
		j.DiedMs = rec.status.diedMS()
	case list.waits():
		s, err := readSettings(r, topic)
		if err != nil {
			return nil, err
		}
		j.ExpiresMs = rec.expiresAt(s)
	case list == listReserved:
		j.ReservedUntilMs, j.ReservedBy = rec.status.reservedUntilMS(), rec.status.reservedBy
	case list == listEnded:
		j.EndedMs, j.RetainedUntilMs = rec.status.endedMS(), rec.status.retainedUntilMS()
	}
	return j, nil
}

// Topic returns the counts and settings of a topic; the counts are zero if there is none.
func (v *View) Topic(name string) (t *jobpb.Topic, err error) {
	err = v.read(func(r pebble.Reader) error { t, err = findTopic(r, name); return err })
	return t, err
}

// findTopic describes a topic, which need not have a record.
func findTopic(r pebble.Reader, name string) (t *jobpb.Topic, err error) {
	err = readKey(r, appendNameKey(nil, spaceTopic, name), func(value []byte) error {
		t, err = describeTopic(r, name, value)
		return err
	})
	if err != nil || t != nil {
		return t, err
	}
	t = &jobpb.Topic{Name: name}
	t.Settings, err = readSettings(r, name)
	return t, err
}

// Peek returns the head of one of a topic's lists, even if the topic is paused.
func (v *View) Peek(topic string, state jobpb.State) (j *jobpb.Job, found bool, err error) {
	if state <= jobpb.State_STATE_NONE || state > jobpb.State_STATE_DEAD {
		return nil, false, fmt.Errorf("there is no list of %s jobs", job.StateName(state))
	}
	err = v.read(func(r pebble.Reader) error {
		var head place
		err := readKey(r, appendNameKey(nil, spaceTopic, topic), func(value []byte) error {
			rec, err := decodeTopic(value)
			head = rec.heads[listOfState(state)]
			return err
		})
		if err != nil || head.seq == 0 {
			return err
		}
		j, found, err = v.job(r, head.seq)
		return err
	})
	return j, found, err
}

// Totals returns the number of topics, and of jobs by state. It reads one record.
func (v *View) Totals() (*jobpb.Totals, error) {
	var m meta
	err := v.read(func(r pebble.Reader) (err error) { m, err = readMeta(r); return err })
	return m.totals(), err
}

// Topics returns up to max topics in the order of their names, starting after the name
// given.
func (v *View) Topics(after string, max int) ([]*jobpb.Topic, error) {
	return v.listTopics(spaceTopic, after, max, describeTopic)
}

// LargestTopics returns the names of the topics with the most jobs, n at most, and of those
// with equally many the ones to which most were added. It reads the records of all topics.
func (v *View) LargestTopics(n int) (names []string, err error) {
	type size struct {
		name        string
		jobs, added uint64
	}
	var largest []size
	keep := func() {
		slices.SortFunc(largest, func(a, b size) int {
			return cmp.Or(cmp.Compare(b.jobs, a.jobs), cmp.Compare(b.added, a.added), cmp.Compare(a.name, b.name))
		})
		largest = largest[:min(len(largest), n)]
	}
	err = v.read(func(r pebble.Reader) error {
		return v.scan(r, []byte{spaceTopic}, []byte{spaceTopic + 1}, func(key, value []byte) error {
			rec, err := decodeTopic(value)
			if err != nil {
				return fmt.Errorf("topic %q: %w", key[1:], err)
			}
			largest = append(largest, size{string(key[1:]), rec.jobs(), rec.added})
			if len(largest) >= 2*n+1000 {
				keep()
			}
			return nil
		})
	})
	keep()
	for _, s := range largest {
		names = append(names, s.name)
	}
	return names, err
}

// ConfiguredTopics is Topics for those that have settings, with or without jobs.
func (v *View) ConfiguredTopics(after string, max int) ([]*jobpb.Topic, error) {
	return v.listTopics(spaceSettings, after, max, func(r pebble.Reader, name string, _ []byte) (*jobpb.Topic, error) {
		return findTopic(r, name)
	})
}

// listTopics describes up to max topics that have a key in space.
func (v *View) listTopics(space byte, after string, max int, describe func(pebble.Reader, string, []byte) (*jobpb.Topic, error)) (topics []*jobpb.Topic, err error) {
	if max <= 0 {
		return nil, nil
	}
	lower := append(appendNameKey(nil, space, after), 0)
	if after == "" {
		lower = []byte{space}
	}
	err = v.read(func(r pebble.Reader) error {
		return v.scan(r, lower, []byte{space + 1}, func(key, value []byte) error {
			t, err := describe(r, string(key[1:]), value)
			if err != nil {
				return err
			}
			topics = append(topics, t)
			if len(topics) == max {
				return errEnough
			}
			return nil
		})
	})
	return topics, err
}

func describeTopic(r pebble.Reader, name string, value []byte) (*jobpb.Topic, error) {
	rec, err := decodeTopic(value)
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", name, err)
	}
	t := &jobpb.Topic{
		Name:    name,
		Delayed: rec.counts[listDelayed], Ready: rec.counts[listReady],
		Reserved: rec.counts[listReserved], Dead: rec.counts[listDead],
		Added: rec.added, Finished: rec.finished, Deleted: rec.deleted,
		Timeouts: rec.timeouts, Died: rec.died, Expired: rec.expired,
		Urgent: rec.urgent, PausedUntilMs: rec.pausedUntil, PauseMs: rec.pauseMS, Pauses: rec.pauses,
		Retained: rec.counts[listEnded],
	}
	if t.Settings, err = readSettings(r, name); err != nil {
		return nil, err
	}
	if b := rec.bucket; b != nil && b.tokens < token {
		t.ThrottledUntilMs = rateOf(t.Settings).until(b, token)
	}
	t.OldestDueMs, err = oldestDue(r, rec)
	return t, err
}

// oldestDuePriorities bounds the seeks of oldestDue: it considers the ready jobs of that
// many priorities, the most urgent ones.
const oldestDuePriorities = 256

// oldestDue returns the smallest due instant of the topic's delayed and ready jobs. The
// ready list is ordered by priority first, so this takes a seek for each priority in use.
func oldestDue(r pebble.Reader, rec topicRecord) (oldest int64, err error) {
	oldest = rec.heads[listDelayed].instant
	if rec.counts[listReady] == 0 {
		return oldest, nil
	}
	l := listID{rec.number, listReady}
	from := rec.heads[listReady]
	for range oldestDuePriorities {
		p, ok, err := firstOf(r, l, from)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		oldest = earlier(oldest, p.instant)
		if p.priority == 1<<32-1 {
			break
		}
		from = place{priority: p.priority + 1}
	}
	return oldest, nil
}

// findID returns the seq of an id; 0: none. fromServer reports whether the server made the
// id; then the job may not exist, or may have an id of its producer. buf is scratch space for
// the key, or nil.
func findID(r pebble.Reader, shard uint32, id string, buf []byte) (seq uint64, fromServer bool, err error) {
	if job.IsServerID(id) {
		of, seq, ok := job.ParseServerID(id)
		if !ok || of != shard {
			return 0, true, nil
		}
		return seq, true, nil
	}
	err = readKey(r, appendNameKey(buf[:0], spaceID, id), func(value []byte) error {
		seq, err = decodeSeq(value)
		return err
	})
	return seq, false, err
}
