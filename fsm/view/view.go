// Package view is what readers see of the state machine: a View is the state at one point of
// the log. Start with view.go; read.go lists what nodes ask each other for.
package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// ErrEnded is returned by a View whose state was closed or replaced by an
// installed snapshot. A new View sees what is there now.
var ErrEnded = errors.New("the state under this view was closed or replaced")

// View is the state at one point of the log. It may be used from several goroutines.
// While it is open the store cannot reclaim what was deleted since, so it should be closed
// soon. Its methods return ErrEnded once the state was closed or replaced.
type View struct {
	shard uint32
	ended atomic.Bool // ends long reads
	// examined counts the entries that listings looked at.
	examined atomic.Uint64

	closed   func(*View)      // is called by Close; nil: nobody asks
	mu       sync.RWMutex     // held for reading by every read
	snapshot *pebble.Snapshot // nil once closed or ended
}

// New returns a view of a snapshot, which it closes; nil: one that has ended.
func New(shard uint32, snapshot *pebble.Snapshot, closed func(*View)) *View {
	return &View{shard: shard, snapshot: snapshot, closed: closed}
}

// Close releases the view. Closing it again does nothing.
func (v *View) Close() error {
	err := v.End()
	if v.closed != nil {
		v.closed(v) // not before, because who closes the database waits until its snapshots are
	}
	return err
}

// Stop lets long reads end with ErrEnded.
func (v *View) Stop() { v.ended.Store(true) }

// End is Close without a call of closed, for who made the view.
func (v *View) End() error {
	v.Stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.snapshot
	v.snapshot = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

// With runs f over the snapshot.
func (v *View) With(f func(r pebble.Reader) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.snapshot == nil {
		return ErrEnded
	}
	return f(v.snapshot)
}

// Scan is the function scan, which also ends with the view and at ErrEnough.
func (v *View) Scan(r pebble.Reader, lower, upper []byte, f func(key, value []byte) error) error {
	err := record.Scan(r, lower, upper, func(key, value []byte) error {
		if v.ended.Load() {
			return ErrEnded
		}
		return f(key, value)
	})
	if errors.Is(err, record.ErrEnough) {
		return nil
	}
	return err
}

// Examined returns how many entries the listings of this view have looked at, in
// their pages or not.
func (v *View) Examined() uint64 { return v.examined.Load() }

// Applied returns the point of the log that the view shows.
func (v *View) Applied() (a record.Applied, err error) {
	err = v.With(func(r pebble.Reader) error { a, err = record.ReadApplied(r); return err })
	return a, err
}

// Job returns a job by the producer's or the server's id. Retained jobs are included.
func (v *View) Job(id string) (j *jobpb.Job, found bool, err error) {
	err = v.With(func(r pebble.Reader) error {
		seq, fromServer, err := record.FindID(r, v.shard, id, nil)
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
	err = v.With(func(r pebble.Reader) error { j, found, err = v.job(r, seq); return err })
	return j, found, err
}

func (v *View) job(r pebble.Reader, seq uint64) (*jobpb.Job, bool, error) {
	rec, err := record.ReadJob(r, seq, true)
	if err != nil || rec == nil {
		return nil, false, err
	}
	m, err := record.ReadMeta(r)
	if err != nil {
		return nil, false, err
	}
	list, err := record.ListOf(r, m.MaxClock(), rec)
	if err != nil {
		return nil, false, err
	}
	name, err := record.TopicName(r, rec.Topic())
	if err != nil {
		return nil, false, err
	}
	j, err := v.describe(r, rec, list, name)
	if err != nil {
		return nil, false, err
	}
	j.History, j.HistoryDropped, err = rec.DescribeHistory()
	return j, err == nil, err
}

// describe returns everything that readers see of a job, except the history.
func (v *View) describe(r pebble.Reader, rec *record.Job, list record.List, topic string) (*jobpb.Job, error) {
	options, err := rec.Spec.DecodeOptions()
	if err != nil {
		return nil, err
	}
	j := &jobpb.Job{
		Id: rec.Name(v.shard), Seq: rec.Seq, Topic: topic,
		Body: rec.Body, BodyKind: rec.Spec.BodyKind, State: rec.State(list),
		Priority: rec.Status.Priority, DueMs: rec.Status.DueMS, TtrMs: rec.Status.TtrMS,
		Revision: rec.Status.Revision, Attempts: rec.Status.Attempts, MaxAttempts: rec.Status.MaxAttempts,
		CreatedMs: rec.Spec.CreatedMS, ModifiedMs: rec.Status.ModifiedMS, Reason: rec.Status.Reason,
		Reserves: rec.Status.Reserves, Timeouts: rec.Status.Timeouts, Releases: rec.Status.Releases,
		Buries: rec.Status.Buries, Kicks: rec.Status.Kicks, DelayMs: rec.Status.LastDelayMS,
		Options: options, LastError: rec.Status.LastError,
	}
	switch {
	case list == record.ListDead:
		j.DiedMs = rec.Status.DiedMS()
	case list.Waits():
		s, err := record.ReadSettings(r, topic)
		if err != nil {
			return nil, err
		}
		j.ExpiresMs = rec.ExpiresAt(s)
	case list == record.ListReserved:
		j.ReservedUntilMs, j.ReservedBy = rec.Status.ReservedUntilMS(), rec.Status.ReservedBy
	case list == record.ListEnded:
		j.EndedMs, j.RetainedUntilMs = rec.Status.EndedMS(), rec.Status.RetainedUntilMS()
	}
	return j, nil
}

// Topic returns the counts and settings of a topic; the counts are zero if there is none.
func (v *View) Topic(name string) (t *jobpb.Topic, err error) {
	err = v.With(func(r pebble.Reader) error { t, err = findTopic(r, name); return err })
	return t, err
}

// findTopic describes a topic, which need not have a record.
func findTopic(r pebble.Reader, name string) (t *jobpb.Topic, err error) {
	err = record.ReadKey(r, record.AppendNameKey(nil, record.SpaceTopic, name), func(value []byte) error {
		t, err = describeTopic(r, name, value)
		return err
	})
	if err != nil || t != nil {
		return t, err
	}
	t = &jobpb.Topic{Name: name}
	t.Settings, err = record.ReadSettings(r, name)
	return t, err
}

// Peek returns the head of one of a topic's lists, even if the topic is paused.
func (v *View) Peek(topic string, state jobpb.State) (j *jobpb.Job, found bool, err error) {
	if state <= jobpb.State_STATE_NONE || state > jobpb.State_STATE_DEAD {
		return nil, false, fmt.Errorf("there is no list of %s jobs", job.StateName(state))
	}
	err = v.With(func(r pebble.Reader) error {
		var head record.Place
		err := record.ReadKey(r, record.AppendNameKey(nil, record.SpaceTopic, topic), func(value []byte) error {
			rec, err := record.DecodeTopic(value)
			head = rec.Heads[record.ListOfState(state)]
			return err
		})
		if err != nil || head.Seq == 0 {
			return err
		}
		j, found, err = v.job(r, head.Seq)
		return err
	})
	return j, found, err
}

// Totals returns the number of topics, and of jobs by state. It reads one record.
func (v *View) Totals() (*jobpb.Totals, error) {
	var m record.Meta
	err := v.With(func(r pebble.Reader) (err error) { m, err = record.ReadMeta(r); return err })
	return m.Totals(), err
}

// Topics returns up to n topics in the order of their names, starting after the name
// given.
func (v *View) Topics(after string, n int) ([]*jobpb.Topic, error) {
	return v.listTopics(record.SpaceTopic, after, n, describeTopic)
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
	err = v.With(func(r pebble.Reader) error {
		return v.Scan(r, []byte{record.SpaceTopic}, []byte{record.SpaceTopic + 1}, func(key, value []byte) error {
			rec, err := record.DecodeTopic(value)
			if err != nil {
				return fmt.Errorf("topic %q: %w", key[1:], err)
			}
			largest = append(largest, size{string(key[1:]), rec.Jobs(), rec.Added})
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
func (v *View) ConfiguredTopics(after string, n int) ([]*jobpb.Topic, error) {
	return v.listTopics(record.SpaceSettings, after, n, func(r pebble.Reader, name string, _ []byte) (*jobpb.Topic, error) {
		return findTopic(r, name)
	})
}

// listTopics describes up to n topics that have a key in space.
func (v *View) listTopics(
	space byte, after string, n int, describe func(pebble.Reader, string, []byte) (*jobpb.Topic, error),
) (topics []*jobpb.Topic, err error) {
	if n <= 0 {
		return nil, nil
	}
	lower := append(record.AppendNameKey(nil, space, after), 0)
	if after == "" {
		lower = []byte{space}
	}
	err = v.With(func(r pebble.Reader) error {
		return v.Scan(r, lower, []byte{space + 1}, func(key, value []byte) error {
			t, err := describe(r, string(key[1:]), value)
			if err != nil {
				return err
			}
			topics = append(topics, t)
			if len(topics) == n {
				return record.ErrEnough
			}
			return nil
		})
	})
	return topics, err
}

func describeTopic(r pebble.Reader, name string, value []byte) (*jobpb.Topic, error) {
	rec, err := record.DecodeTopic(value)
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", name, err)
	}
	t := &jobpb.Topic{
		Name:    name,
		Delayed: rec.Counts[record.ListDelayed], Ready: rec.Counts[record.ListReady],
		Reserved: rec.Counts[record.ListReserved], Dead: rec.Counts[record.ListDead],
		Added: rec.Added, Finished: rec.Finished, Deleted: rec.Deleted,
		Timeouts: rec.Timeouts, Died: rec.Died, Expired: rec.Expired,
		Urgent: rec.Urgent, PausedUntilMs: rec.PausedUntil, PauseMs: rec.PauseMS, Pauses: rec.Pauses,
		Retained: rec.Counts[record.ListEnded],
	}
	if t.Settings, err = record.ReadSettings(r, name); err != nil {
		return nil, err
	}
	if b := rec.Bucket; b != nil && b.Tokens < record.Token {
		t.ThrottledUntilMs = record.RateOf(t.Settings).Until(b, record.Token)
	}
	t.OldestDueMs, err = oldestDue(r, rec)
	return t, err
}

// oldestDuePriorities bounds the seeks of oldestDue: it considers the ready jobs of that
// many priorities, the most urgent ones.
const oldestDuePriorities = 256

// oldestDue returns the smallest due instant of the topic's delayed and ready jobs. The
// ready list is ordered by priority first, so this takes a seek for each priority in use.
func oldestDue(r pebble.Reader, rec record.Topic) (oldest int64, err error) {
	oldest = rec.Heads[record.ListDelayed].Instant
	if rec.Counts[record.ListReady] == 0 {
		return oldest, nil
	}
	l := record.ListID{Topic: rec.Number, List: record.ListReady}
	from := rec.Heads[record.ListReady]
	for range oldestDuePriorities {
		p, ok, err := record.FirstOf(r, l, from)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		oldest = record.Earlier(oldest, p.Instant)
		if p.Priority == 1<<32-1 {
			break
		}
		from = record.Place{Priority: p.Priority + 1}
	}
	return oldest, nil
}
