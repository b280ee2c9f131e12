package fsm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// tx is the running transaction: the changes of the entries being applied, and the batch
// that will commit them. The batch cannot be read, so what a later operation may need of
// an earlier one is also here: jobs, ids, and (in the windows) index entries.
type tx struct {
	m     *Machine
	db    *pebble.DB
	batch *pebble.Batch
	// The changes of index entries and of ids, until the commit adds them to batch: keys that
	// are neighbours are then inserted one after the other, which a memtable does much faster
	// than when they alternate with those of records. A key is always in the same batch.
	indexBatch, idBatch *pebble.Batch
	ops                 oplog.OpReader // of the entry being applied; operations must not be kept

	jobs       map[uint64]*record.Job // read or changed, those that are gone included
	ids        map[string]uint64      // producer ids of new jobs
	touched    []*topic               // must be written at commit, dropped ones included
	dirty      []*topic               // need refreshHeads
	namespaces []*namespace           // must be written at commit
	reserves   uint64                 // so far; the mark of the running one

	deadChanges map[record.DeadGroup]int64 // jobs that joined or left; mostly empty

	term  uint64 // of the entry being applied; a followed one has its primary's
	nowMS int64  // the time of that entry
	// roundedDown: the clock is the entry's time, rounded down.
	roundedDown bool
	followed    bool                // it is one of the primary's
	toFollow    *jobpb.FollowLog    // of the present entry; nil: none
	toReplace   *jobpb.ReplaceState // of the present entry; nil: none

	change *jobpb.ConfigChange // that the running operation of the config group makes; nil: none

	caller  *caller // of the running operation; nil: it may do everything
	callers caller  // what caller points to, so that an operation allocates none

	replies      bool
	quotaChecked bool // the present add was found to fit in its namespace
	planned      bool // the present add is of a scheduled run: it is spread even if it is due
	txNews

	key, value []byte // scratch
}

// txNews is what a transaction tells the machine's readers beside the topics that it touched.
type txNews struct {
	namespacesChanged bool // namespaces were put or deleted
	authChanged       bool // tokens of clients or their settings changed
	configChanged     bool // the config log came further, or the group with it
	cluster           bool // the cluster's id or version, the forgotten members, the removed nodes or the admission changed
	named             bool // the cluster got its id
	settingsChanged   bool // settings of topics changed
	clockSet          bool // the clock was set back
	walkBegan         bool // the walk over headers began
	dueRecorded       bool // due counts were moved to their records
	pendingChanged    bool // meta.pending must be written
	standbyChanged    bool // meta.standby must be written, and is not published yet

	schedules map[string]*schedule // changed, those that are gone included; mostly nil
	effects   []Effect
	timeouts  []job.Timeout
	marks     []string
	forgot    []string
}

// txKeep bounds the memory that is kept after a large transaction.
const txKeep = 1 << 16

func newTx(m *Machine) *tx {
	x := &tx{m: m, db: m.store.db.DB, batch: m.store.db.NewBatch(), indexBatch: m.store.db.NewBatch(), idBatch: m.store.db.NewBatch()}
	x.reset()
	return x
}

// close releases the batches without a commit.
func (x *tx) close() error {
	return errors.Join(x.batch.Close(), x.indexBatch.Close(), x.idBatch.Close())
}

func (x *tx) reset() {
	if x.jobs == nil || len(x.jobs) > txKeep {
		x.jobs, x.ids = make(map[uint64]*record.Job), make(map[string]uint64)
	}
	clear(x.jobs)
	if len(x.deadChanges) > txKeep {
		x.deadChanges = nil
	}
	clear(x.deadChanges)
	clear(x.ids)
	clear(x.touched)
	clear(x.dirty)
	x.touched, x.dirty = x.touched[:0], x.dirty[:0]
	x.txNews = txNews{}
}

// must panics if adding to the batch failed: Pebble documents that this happens only when
// the batch is misused.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("fsm: add to a batch: %v", err))
	}
}

// job returns a job, with its body if withBody; nil: there is none.
func (x *tx) job(seq uint64, withBody bool) (rec *record.Job, err error) {
	rec, ok := x.jobs[seq]
	switch {
	case ok && rec.Gone, seq >= x.m.meta.State.NextSeq:
		return nil, nil
	case !ok:
		if rec = x.m.recent.take(seq); rec == nil {
			rec, err = record.ReadJob(x.db, seq, withBody)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("job %d: %w", seq, err)
	}
	if rec == nil {
		return nil, nil
	}
	x.jobs[seq] = rec
	if withBody && rec.Body == nil {
		if rec.Body, err = record.ReadBody(x.db, seq); err != nil {
			return nil, fmt.Errorf("job %d: %w", seq, err)
		}
		rec.OwnBody = true
	}
	return rec, nil
}

// jobIn returns a job that a list has. If there is no such job, the store is damaged or
// the code is wrong.
func (x *tx) jobIn(t *topic, list record.List, seq uint64, withBody bool) (*record.Job, error) {
	rec, err := x.job(seq, withBody)
	if err == nil && rec == nil {
		err = fmt.Errorf("topic %q lists job %d in %s, but the job does not exist", t.name, seq, list)
	}
	return rec, err
}

// jobByID returns a job by the producer's or the server's id; nil: there is none.
func (x *tx) jobByID(id string) (*record.Job, error) {
	seq, given := x.ids[id]
	fromServer := false
	if !given {
		var err error
		if seq, fromServer, err = record.FindID(x.db, x.m.options.Shard, id, x.key); err != nil {
			return nil, err
		}
	}
	if seq == 0 {
		return nil, nil
	}
	rec, err := x.job(seq, false)
	if rec != nil && fromServer && rec.Spec.ID != "" {
		return nil, err // it has an id of its own
	}
	return rec, err
}

// rewrite writes the spec of a job with another body. The caller saves the status.
func (x *tx) rewrite(rec *record.Job, kind jobpb.BodyKind, body []byte) {
	x.hold(x.m.byNumber[rec.Topic()], 0, int64(len(body)-rec.BodyLen))
	rec.Body, rec.BodyLen, rec.OwnBody = body, len(body), false
	rec.Spec.BodyKind, rec.Spec.Topic = kind, rec.Topic()
	rec.Status.Rewritten = true
	x.value = rec.Spec.Append(x.value[:0], body)
	must(x.batch.Set(x.seqKey(record.SpaceSpec, rec.Seq), x.value, nil))
}

// create writes a new job and adds it to a list.
func (x *tx) create(t *topic, rec *record.Job, list record.List) {
	x.jobs[rec.Seq] = rec
	x.value = rec.Spec.Append(x.value[:0], rec.Body)
	must(x.batch.Set(x.seqKey(record.SpaceSpec, rec.Seq), x.value, nil))
	if rec.Spec.ID != "" {
		x.ids[rec.Spec.ID] = rec.Seq
		x.value = binary.BigEndian.AppendUint64(x.value[:0], rec.Seq)
		must(x.idBatch.Set(x.nameKey(record.SpaceID, rec.Spec.ID), x.value, nil))
	}
	if rec.Spec.HasPushURL() {
		t.PushURLs++
	}
	x.hold(t, 1, int64(rec.BodyLen))
	x.list(t, rec, list)
}

// erase deletes a job that is in the list, with all its records.
func (x *tx) erase(t *topic, rec *record.Job, list record.List) error {
	if err := x.unlist(t, rec, list); err != nil {
		return err
	}
	if err := x.reindex(rec, t.settings, nil); err != nil {
		return err
	}
	if list != record.ListEnded && rec.Spec.HasPushURL() {
		t.PushURLs--
	}
	if rec.Status.Rewritten {
		must(x.batch.Delete(x.seqKey(record.SpaceSpec, rec.Seq), nil))
	} else {
		must(x.batch.SingleDelete(x.seqKey(record.SpaceSpec, rec.Seq), nil))
	}
	must(x.batch.Delete(x.seqKey(record.SpaceStatus, rec.Seq), nil))
	if rec.Spec.ID != "" {
		must(x.idBatch.SingleDelete(x.nameKey(record.SpaceID, rec.Spec.ID), nil))
	}
	x.hold(t, -1, -int64(rec.BodyLen))
	rec.Gone, rec.Body = true, nil
	if t.Jobs() == 0 {
		x.emptied(t)
	}
	return nil
}

// save writes a job's status as a new revision.
func (x *tx) save(rec *record.Job) {
	rec.Status.Revision++
	rec.Status.ModifiedMS = x.clock()
	x.writeStatus(rec)
}

func (x *tx) writeStatus(rec *record.Job) {
	x.value = rec.Status.Append(x.value[:0], record.StatusFormat(x.m.meta.Version))
	must(x.batch.Set(x.seqKey(record.SpaceStatus, rec.Seq), x.value, nil))
}

// move removes a job from a list, calls change to change its status, saves it and adds it
// to another list.
func (x *tx) move(t *topic, rec *record.Job, from, to record.List, change func(*record.Status)) error {
	return x.moveTo(t, t, rec, from, to, change)
}

// moveTo is move to a list of another topic.
func (x *tx) moveTo(t, target *topic, rec *record.Job, from, to record.List, change func(*record.Status)) error {
	if err := x.unlist(t, rec, from); err != nil {
		return err
	}
	change(&rec.Status)
	// A retained job is not counted, and moves within its list when the clock is reset.
	counted, counts := from != record.ListEnded, to != record.ListEnded
	if (t != target || counted != counts) && rec.Spec.HasPushURL() {
		if counted {
			t.PushURLs--
		}
		if counts {
			target.PushURLs++
		}
	}
	if t != target {
		x.hold(t, -1, -int64(rec.BodyLen))
		x.hold(target, 1, int64(rec.BodyLen))
		if err := x.reindex(rec, t.settings, target.settings); err != nil {
			return err
		}
		rec.Status.MovedTo = target.Number
		x.recordEvent(target, rec, jobpb.Event_MOVED, to, rec.Status.Attempts, "from "+t.name)
		if t.Jobs() == 0 {
			x.emptied(t)
		}
	}
	x.save(rec)
	x.list(target, rec, to)
	return nil
}

// insertPlace adds a place to a list.
func (x *tx) insertPlace(t *topic, list record.List, p record.Place) {
	x.value = x.value[:0]
	if list == record.ListDelayed {
		x.m.dueChanges.change(record.TopicMinuteOf(t.Number, p.Instant), 1)
		x.value = binary.BigEndian.AppendUint32(x.value, p.Carried)
	}
	must(x.indexBatch.Set(x.indexKey(t, list, p), x.value, nil))
	t.windows[list].Insert(p)
	t.Counts[list]++
	x.m.meta.State.Counts[list]++
	if record.IsUrgent(list, p) {
		t.Urgent++
	}
	x.touch(t)
}

// removePlace removes a place from a list.
func (x *tx) removePlace(t *topic, list record.List, p record.Place) error {
	must(x.indexBatch.SingleDelete(x.indexKey(t, list, p), nil))
	if list == record.ListDelayed {
		x.m.dueChanges.change(record.TopicMinuteOf(t.Number, p.Instant), -1)
	}
	w := &t.windows[list]
	if err := w.Remove(p); err != nil {
		return fmt.Errorf("topic %q, jobs in %s: %w", t.name, list, err)
	}
	t.Counts[list]--
	x.m.meta.State.Counts[list]--
	if record.IsUrgent(list, p) {
		t.Urgent--
	}
	if t.Counts[list] == 0 {
		w.Emptied()
	}
	x.touch(t)
	return nil
}

// head returns the first place of a topic's list.
func (x *tx) head(t *topic, list record.List) (record.Place, bool, error) {
	return x.m.head(x.db, t, list)
}

// listOf returns the list that a job is in; see the function listOf.
func (x *tx) listOf(t *topic, rec *record.Job) (record.List, error) {
	if list := rec.ListByPhase(x.m.meta.MaxClock()); list != record.ListNone {
		return list, nil
	}
	p := rec.Place(record.ListDelayed)
	delayed, known := t.windows[record.ListDelayed].Has(p)
	if !known {
		var err error
		if delayed, err = record.HasPlace(x.db, t.listID(record.ListDelayed), p); err != nil {
			return record.ListNone, err
		}
	}
	return record.WaitingList(delayed), nil
}

// topicOf returns the topic of a job; it exists as long as the job does.
func (x *tx) topicOf(rec *record.Job) (*topic, error) {
	t := x.m.byNumber[rec.Topic()]
	if t == nil {
		return nil, fmt.Errorf("job %d is in topic number %d, which does not exist", rec.Seq, rec.Topic())
	}
	return t, nil
}

// emptied notes that a topic has no jobs from now on.
func (x *tx) emptied(t *topic) {
	t.EmptySince = x.clock()
	x.m.allHaveJobs = false
}

// newTopic makes a topic. The caller adds a job to it, or calls emptied.
func (x *tx) newTopic(name string) *topic {
	name = strings.Clone(name) // it outlives the entry
	number := x.m.meta.State.LastTopic + 1
	for number == 0 || x.m.byNumber[number] != nil {
		number++ // after four billion topics the numbers start again
	}
	x.m.meta.State.LastTopic = number
	t := &topic{name: name, Topic: record.Topic{Number: number}}
	x.m.addTopic(t)
	x.key = record.AppendNumberKey(x.key[:0], number)
	must(x.batch.Set(x.key, []byte(name), nil))
	x.updateLimits(t)
	x.countTopic(t, 1)
	return t
}

// dropTopic deletes a topic that has no jobs.
func (x *tx) dropTopic(t *topic) {
	x.touch(t)
	x.m.dropTopic(t)
	x.countTopic(t, -1)
	must(x.batch.Delete(x.nameKey(record.SpaceTopic, t.name), nil))
	x.key = record.AppendNumberKey(x.key[:0], t.Number)
	must(x.batch.Delete(x.key, nil))
}

// dropIdleTopics drops at least so many of the topics that have been without jobs for longest, if there
// are so many. It looks at all topics, so it drops a hundredth of them at a time. Those of keep stay.
func (x *tx) dropIdleTopics(most int, keep func(*topic) bool) {
	idle := x.idleTopics(keep)
	slices.SortFunc(idle, func(a, b *topic) int {
		return cmp.Or(cmp.Compare(a.EmptySince, b.EmptySince), cmp.Compare(a.Number, b.Number))
	})
	for _, t := range idle[:min(len(idle), max(most, x.limits().MaxTopics/100+1))] {
		x.dropTopic(t)
	}
}

// idleTopics returns the idle topics other than those of keep, in no order. It does not look at all
// topics when all have jobs.
func (x *tx) idleTopics(keep func(*topic) bool) (idle []*topic) {
	if x.m.allHaveJobs {
		return nil
	}
	x.m.allHaveJobs = true
	for _, t := range x.m.topics {
		if t.Jobs() == 0 {
			x.m.allHaveJobs = false
		}
		if t.idle(x.clock()) && !keep(t) {
			idle = append(idle, t)
		}
	}
	return idle
}

// touch marks a topic as changed.
func (x *tx) touch(t *topic) {
	if t.Bucket != nil {
		t.Bucket.Fill(t.limits.rate, x.clock())
	}
	if !t.touched {
		t.touched = true
		x.touched = append(x.touched, t)
	}
	if !t.dirty {
		t.dirty = true
		x.dirty = append(x.dirty, t)
	}
}

// keepRecent caches the jobs that are likely to be needed next: reserved ones and those
// that are due. It is called after the commit.
func (x *tx) keepRecent() {
	for _, rec := range x.jobs {
		if !rec.Gone && rec.Status.Phase < record.PhaseDead && rec.Status.DueMS <= x.clock() {
			x.m.recent.put(rec)
		}
	}
}

// refreshHeads updates the heads and the due heap for the dirty topics.
func (x *tx) refreshHeads() error {
	for _, t := range x.dirty {
		t.dirty = false
		if t.dropped {
			continue
		}
		if err := x.m.refresh(x.db, t); err != nil {
			return err
		}
		x.m.updateDue(t)
	}
	clear(x.dirty)
	x.dirty = x.dirty[:0]
	return nil
}

// limits returns the limits of the cluster version, by which all operations are checked.
func (x *tx) limits() *job.Limits { return x.m.limits }

func (x *tx) clock() int64 { return x.m.meta.State.ClockMS }

// after returns the first millisecond that is at least ms after the entry was proposed. What lasts
// for a time ends then, so it is never shorter than asked for. Nothing that has no length waits.
func (x *tx) after(ms int64) int64 {
	if ms <= 0 || !x.roundedDown {
		return x.clock() + ms
	}
	return x.clock() + 1 + ms
}

func (x *tx) name(rec *record.Job) string { return rec.Name(x.m.options.Shard) }

func (x *tx) seqKey(space byte, seq uint64) []byte {
	x.key = record.AppendSeqKey(x.key[:0], space, seq)
	return x.key
}

func (x *tx) nameKey(space byte, name string) []byte {
	x.key = record.AppendNameKey(x.key[:0], space, name)
	return x.key
}

func (x *tx) indexKey(t *topic, list record.List, p record.Place) []byte {
	x.key = t.listID(list).AppendKey(x.key[:0], p)
	return x.key
}

// recordEvent adds an event to a job's history, if its topic keeps one. The status must be
// as after the change; to is the job's list then. The caller saves the status.
func (x *tx) recordEvent(t *topic, rec *record.Job, kind jobpb.Event_Kind, to record.List, attempt uint32, text string) {
	if t.retention() == 0 {
		return
	}
	e := &jobpb.Event{Kind: kind, AtMs: x.clock(), State: rec.State(to), Attempt: attempt}
	if rec.Status.Phase == record.PhaseWaiting {
		e.DueMs = rec.Status.DueMS
	}
	rec.Status.History = record.AddEvent(rec.Status.History, rec.Spec.CreatedMS, e, record.Cut(text, job.MaxHistoryText))
}
