package fsm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
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
	ops                 job.OpReader // of the entry being applied; operations must not be kept

	jobs       map[uint64]*record // read or changed, those that are gone included
	ids        map[string]uint64  // producer ids of new jobs
	touched    []*topic           // must be written at commit, dropped ones included
	dirty      []*topic           // need refreshHeads
	namespaces []*namespace       // must be written at commit
	seen       uint64             // mark of the running Reserve

	deadChanges map[deadGroup]int64 // jobs that joined or left; mostly empty

	term  uint64 // of the entry being applied; a followed one has its primary's
	nowMS int64  // the time of that entry
	// roundedDown: the clock is the entry's time, rounded down.
	roundedDown bool
	followed    bool                // it is one of the primary's
	toFollow    *jobpb.FollowLog    // of the present entry; nil: none
	toReplace   *jobpb.ReplaceState // of the present entry; nil: none

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
		x.jobs, x.ids = make(map[uint64]*record), make(map[string]uint64)
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
func (x *tx) job(seq uint64, withBody bool) (rec *record, err error) {
	rec, ok := x.jobs[seq]
	switch {
	case ok && rec.gone, seq >= x.m.meta.state.nextSeq:
		return nil, nil
	case !ok:
		if rec = x.m.recent.take(seq); rec == nil {
			rec, err = readJob(x.db, seq, withBody)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("job %d: %w", seq, err)
	}
	if rec == nil {
		return nil, nil
	}
	x.jobs[seq] = rec
	if withBody && rec.body == nil {
		if rec.body, err = readBody(x.db, seq); err != nil {
			return nil, fmt.Errorf("job %d: %w", seq, err)
		}
		rec.ownBody = true
	}
	return rec, nil
}

// jobIn returns a job that a list has. If there is no such job, the store is damaged or
// the code is wrong.
func (x *tx) jobIn(t *topic, list listKind, seq uint64, withBody bool) (*record, error) {
	rec, err := x.job(seq, withBody)
	if err == nil && rec == nil {
		err = fmt.Errorf("topic %q lists job %d in %s, but the job does not exist", t.name, seq, list)
	}
	return rec, err
}

// jobByID returns a job by the producer's or the server's id; nil: there is none.
func (x *tx) jobByID(id string) (*record, error) {
	seq, given := x.ids[id]
	fromServer := false
	if !given {
		var err error
		if seq, fromServer, err = findID(x.db, x.m.options.Shard, id, x.key); err != nil {
			return nil, err
		}
	}
	if seq == 0 {
		return nil, nil
	}
	rec, err := x.job(seq, false)
	if rec != nil && fromServer && rec.spec.id != "" {
		return nil, err // it has an id of its own
	}
	return rec, err
}

// rewrite writes the spec of a job with another body. The caller saves the status.
func (x *tx) rewrite(rec *record, kind jobpb.BodyKind, body []byte) {
	x.hold(x.m.byNumber[rec.topic()], 0, int64(len(body)-rec.bodyLen))
	rec.body, rec.bodyLen, rec.ownBody = body, len(body), false
	rec.spec.bodyKind, rec.spec.topic = kind, rec.topic()
	rec.status.rewritten = true
	x.value = rec.spec.append(x.value[:0], body)
	must(x.batch.Set(x.seqKey(spaceSpec, rec.seq), x.value, nil))
}

// create writes a new job and adds it to a list.
func (x *tx) create(t *topic, rec *record, list listKind) {
	x.jobs[rec.seq] = rec
	x.value = rec.spec.append(x.value[:0], rec.body)
	must(x.batch.Set(x.seqKey(spaceSpec, rec.seq), x.value, nil))
	if rec.spec.id != "" {
		x.ids[rec.spec.id] = rec.seq
		x.value = binary.BigEndian.AppendUint64(x.value[:0], rec.seq)
		must(x.idBatch.Set(x.nameKey(spaceID, rec.spec.id), x.value, nil))
	}
	if rec.spec.hasPushURL() {
		t.pushURLs++
	}
	x.hold(t, 1, int64(rec.bodyLen))
	x.list(t, rec, list)
}

// erase deletes a job that is in the list, with all its records.
func (x *tx) erase(t *topic, rec *record, list listKind) error {
	if err := x.unlist(t, rec, list); err != nil {
		return err
	}
	if err := x.reindex(rec, t.settings, nil); err != nil {
		return err
	}
	if list != listEnded && rec.spec.hasPushURL() {
		t.pushURLs--
	}
	if rec.status.rewritten {
		must(x.batch.Delete(x.seqKey(spaceSpec, rec.seq), nil))
	} else {
		must(x.batch.SingleDelete(x.seqKey(spaceSpec, rec.seq), nil))
	}
	must(x.batch.Delete(x.seqKey(spaceStatus, rec.seq), nil))
	if rec.spec.id != "" {
		must(x.idBatch.SingleDelete(x.nameKey(spaceID, rec.spec.id), nil))
	}
	x.hold(t, -1, -int64(rec.bodyLen))
	rec.gone, rec.body = true, nil
	if t.jobs() == 0 {
		x.emptied(t)
	}
	return nil
}

// save writes a job's status as a new revision.
func (x *tx) save(rec *record) {
	rec.status.revision++
	rec.status.modifiedMS = x.clock()
	x.writeStatus(rec)
}

func (x *tx) writeStatus(rec *record) {
	x.value = rec.status.append(x.value[:0], statusFormat(x.m.meta.version))
	must(x.batch.Set(x.seqKey(spaceStatus, rec.seq), x.value, nil))
}

// move removes a job from a list, calls change to change its status, saves it and adds it
// to another list.
func (x *tx) move(t *topic, rec *record, from, to listKind, change func(*jobStatus)) error {
	return x.moveTo(t, t, rec, from, to, change)
}

// moveTo is move to a list of another topic.
func (x *tx) moveTo(t, target *topic, rec *record, from, to listKind, change func(*jobStatus)) error {
	if err := x.unlist(t, rec, from); err != nil {
		return err
	}
	change(&rec.status)
	// A retained job is not counted, and moves within its list when the clock is reset.
	counted, counts := from != listEnded, to != listEnded
	if (t != target || counted != counts) && rec.spec.hasPushURL() {
		if counted {
			t.pushURLs--
		}
		if counts {
			target.pushURLs++
		}
	}
	if t != target {
		x.hold(t, -1, -int64(rec.bodyLen))
		x.hold(target, 1, int64(rec.bodyLen))
		if err := x.reindex(rec, t.settings, target.settings); err != nil {
			return err
		}
		rec.status.movedTo = target.number
		x.recordEvent(target, rec, jobpb.Event_MOVED, to, rec.status.attempts, "from "+t.name)
		if t.jobs() == 0 {
			x.emptied(t)
		}
	}
	x.save(rec)
	x.list(target, rec, to)
	return nil
}

// insertPlace adds a place to a list.
func (x *tx) insertPlace(t *topic, list listKind, p place) {
	x.value = x.value[:0]
	if list == listDelayed {
		x.m.dueChanges.change(topicMinuteOf(t.number, p.instant), 1)
		x.value = binary.BigEndian.AppendUint32(x.value, p.carried)
	}
	must(x.indexBatch.Set(x.indexKey(t, list, p), x.value, nil))
	t.windows[list].insert(p)
	t.counts[list]++
	x.m.meta.state.counts[list]++
	if isUrgent(list, p) {
		t.urgent++
	}
	x.touch(t)
}

// removePlace removes a place from a list.
func (x *tx) removePlace(t *topic, list listKind, p place) error {
	must(x.indexBatch.SingleDelete(x.indexKey(t, list, p), nil))
	if list == listDelayed {
		x.m.dueChanges.change(topicMinuteOf(t.number, p.instant), -1)
	}
	w := &t.windows[list]
	if err := w.remove(p); err != nil {
		return fmt.Errorf("topic %q, jobs in %s: %w", t.name, list, err)
	}
	t.counts[list]--
	x.m.meta.state.counts[list]--
	if isUrgent(list, p) {
		t.urgent--
	}
	if t.counts[list] == 0 {
		w.emptied()
	}
	x.touch(t)
	return nil
}

// head returns the first place of a topic's list.
func (x *tx) head(t *topic, list listKind) (place, bool, error) {
	return x.m.head(x.db, t, list)
}

// listOf returns the list that a job is in; see the function listOf.
func (x *tx) listOf(t *topic, rec *record) (listKind, error) {
	if list := rec.listByPhase(x.m.meta.maxClock()); list != listNone {
		return list, nil
	}
	p := rec.place(listDelayed)
	delayed, known := t.windows[listDelayed].has(p)
	if !known {
		var err error
		if delayed, err = hasPlace(x.db, t.listID(listDelayed), p); err != nil {
			return listNone, err
		}
	}
	return waitingList(delayed), nil
}

// topicOf returns the topic of a job; it exists as long as the job does.
func (x *tx) topicOf(rec *record) (*topic, error) {
	t := x.m.byNumber[rec.topic()]
	if t == nil {
		return nil, fmt.Errorf("job %d is in topic number %d, which does not exist", rec.seq, rec.topic())
	}
	return t, nil
}

// emptied notes that a topic has no jobs from now on.
func (x *tx) emptied(t *topic) {
	t.emptySince = x.clock()
	x.m.allHaveJobs = false
}

// newTopic makes a topic. The caller adds a job to it, or calls emptied.
func (x *tx) newTopic(name string) *topic {
	name = strings.Clone(name) // it outlives the entry
	number := x.m.meta.state.lastTopic + 1
	for number == 0 || x.m.byNumber[number] != nil {
		number++ // after four billion topics the numbers start again
	}
	x.m.meta.state.lastTopic = number
	t := &topic{name: name, topicRecord: topicRecord{number: number}}
	x.m.addTopic(t)
	x.key = appendNumberKey(x.key[:0], number)
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
	must(x.batch.Delete(x.nameKey(spaceTopic, t.name), nil))
	x.key = appendNumberKey(x.key[:0], t.number)
	must(x.batch.Delete(x.key, nil))
}

// dropIdleTopics drops at least so many of the topics that have been without jobs for longest, if there
// are so many. It looks at all topics, so it drops a hundredth of them at a time. Those of keep stay.
func (x *tx) dropIdleTopics(most int, keep func(*topic) bool) {
	idle := x.idleTopics(keep)
	slices.SortFunc(idle, func(a, b *topic) int {
		return cmp.Or(cmp.Compare(a.emptySince, b.emptySince), cmp.Compare(a.number, b.number))
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
		if t.jobs() == 0 {
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
	if t.bucket != nil {
		t.bucket.fill(t.limits.rate, x.clock())
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
		if !rec.gone && rec.status.phase < phaseDead && rec.status.dueMS <= x.clock() {
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

func (x *tx) clock() int64 { return x.m.meta.state.clockMS }

// after returns the first millisecond that is at least ms after the entry was proposed. What lasts
// for a time ends then, so it is never shorter than asked for. Nothing that has no length waits.
func (x *tx) after(ms int64) int64 {
	if ms <= 0 || !x.roundedDown {
		return x.clock() + ms
	}
	return x.clock() + 1 + ms
}

func (x *tx) name(rec *record) string { return rec.name(x.m.options.Shard) }

func (x *tx) seqKey(space byte, seq uint64) []byte {
	x.key = appendSeqKey(x.key[:0], space, seq)
	return x.key
}

func (x *tx) nameKey(space byte, name string) []byte {
	x.key = appendNameKey(x.key[:0], space, name)
	return x.key
}

func (x *tx) indexKey(t *topic, list listKind, p place) []byte {
	x.key = t.listID(list).appendKey(x.key[:0], p)
	return x.key
}
