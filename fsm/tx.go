package fsm

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// tx is the running transaction: what the entries being applied have changed,
// and the batch that will commit it. The batch cannot be read, so all that a
// later operation may ask of an earlier one is kept here as well: jobs, ids, and
// (in the windows) index entries.
type tx struct {
	m     *Machine
	db    *pebble.DB
	batch *pebble.Batch
	ops   job.OpReader // of the entry being applied; nothing may keep an operation

	jobs    map[uint64]*record // read or changed; gone ones stay, marked
	ids     map[string]uint64  // producer ids given
	touched []*topic           // to write at commit; dropped ones too
	dirty   []*topic           // to settle
	seen    uint64             // mark of the running Reserve

	schedules map[string]*schedule // changed; gone ones stay, marked; mostly nil

	replies  bool
	cluster  bool // the cluster's id or version or the forgotten members changed
	settled  bool // settings of topics changed
	clockSet bool // the clock was set back
	planned  bool // the add under way is a scheduled run's: it is spread although its instant has come
	marks    []string
	forgot   []string

	key, value []byte // scratch
}

// txKeep bounds the memory that an unusually large transaction leaves behind.
const txKeep = 1 << 16

func newTx(m *Machine) *tx {
	x := &tx{m: m, db: m.store.db, batch: m.store.db.NewBatch()}
	x.reset()
	return x
}

// reset makes the transaction an empty one.
func (x *tx) reset() {
	if x.jobs == nil || len(x.jobs) > txKeep {
		x.jobs, x.ids = make(map[uint64]*record), make(map[string]uint64)
	}
	clear(x.jobs)
	clear(x.ids)
	clear(x.touched)
	clear(x.dirty)
	x.touched, x.dirty = x.touched[:0], x.dirty[:0]
	x.marks, x.forgot = nil, nil
	x.cluster, x.settled, x.clockSet = false, false, false
	x.schedules = nil
}

// must turns a failure to add to the batch into a panic: the batch is memory,
// and Pebble documents that it fails only when misused.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("fsm: add to a batch: %v", err))
	}
}

// job finds a job; nil when there is none. withBody makes sure of its body.
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

// jobByID finds a job by the producer's or the server's id; nil: there is none.
func (x *tx) jobByID(id string) (*record, error) {
	seq, given := x.ids[id]
	fromServer := false
	if !given {
		var err error
		if seq, fromServer, err = findID(x.db, x.m.options.Shard, id); err != nil {
			return nil, err
		}
	}
	if seq == 0 {
		return nil, nil
	}
	rec, err := x.job(seq, false)
	if rec != nil && fromServer && rec.id != "" {
		return nil, err // it has an id of its own
	}
	return rec, err
}

// rewrite gives a job another body. The caller saves the fate.
func (x *tx) rewrite(rec *record, kind jobpb.BodyKind, body []byte) {
	rec.bodyKind, rec.bodyLen, rec.body, rec.ownBody = kind, len(body), body, false
	rec.rewritten = true
	x.value = rec.origin.append(x.value[:0], body)
	must(x.batch.Set(x.seqKey(spaceOrigin, rec.seq), x.value, nil))
}

// create writes a new job and puts it into a list.
func (x *tx) create(t *topic, rec *record, state jobpb.State) {
	x.jobs[rec.seq] = rec
	x.value = rec.origin.append(x.value[:0], rec.body)
	must(x.batch.Set(x.seqKey(spaceOrigin, rec.seq), x.value, nil))
	if rec.id != "" {
		x.ids[rec.id] = rec.seq
		x.value = binary.BigEndian.AppendUint64(x.value[:0], rec.seq)
		must(x.batch.Set(x.nameKey(spaceID, rec.id), x.value, nil))
	}
	x.enlist(t, state, rec.place(state, rec.seq))
}

// erase removes every trace of a job that is in the given state.
func (x *tx) erase(t *topic, rec *record, state jobpb.State) error {
	if err := x.delist(t, state, rec.place(state, rec.seq)); err != nil {
		return err
	}
	if rec.rewritten {
		must(x.batch.Delete(x.seqKey(spaceOrigin, rec.seq), nil))
	} else {
		must(x.batch.SingleDelete(x.seqKey(spaceOrigin, rec.seq), nil))
	}
	must(x.batch.Delete(x.seqKey(spaceFate, rec.seq), nil))
	if rec.id != "" {
		must(x.batch.SingleDelete(x.nameKey(spaceID, rec.id), nil))
	}
	rec.gone, rec.body = true, nil
	if t.jobs() == 0 {
		t.emptySince = x.clock()
	}
	return nil
}

// save writes a job's fate, which makes it another revision of the job.
func (x *tx) save(rec *record) {
	rec.revision++
	x.writeFate(rec)
}

func (x *tx) writeFate(rec *record) {
	x.value = rec.fate.append(x.value[:0], fateFormat(x.m.meta.version))
	must(x.batch.Set(x.seqKey(spaceFate, rec.seq), x.value, nil))
}

// move takes a job from one list, lets change alter its fate, saves it and puts
// it into another list.
func (x *tx) move(t *topic, rec *record, from, to jobpb.State, change func(*fate)) error {
	return x.transfer(t, t, rec, from, to, change)
}

// transfer is move to a list of another topic.
func (x *tx) transfer(t, target *topic, rec *record, from, to jobpb.State, change func(*fate)) error {
	if err := x.delist(t, from, rec.place(from, rec.seq)); err != nil {
		return err
	}
	change(&rec.fate)
	if t != target {
		rec.topic, rec.movedTo = target.number, target.number
		x.note(target, rec, jobpb.Event_MOVED, to, rec.attempts, "from "+t.name)
		if t.jobs() == 0 {
			t.emptySince = x.clock()
		}
	}
	x.save(rec)
	x.enlist(target, to, rec.place(to, rec.seq))
	return nil
}

// put adds a place to a list.
func (x *tx) put(t *topic, state jobpb.State, p place) {
	x.value = x.value[:0]
	if state == jobpb.State_STATE_DELAYED {
		x.value = binary.BigEndian.AppendUint32(x.value, p.carried)
	}
	must(x.batch.Set(x.indexKey(t, state, p), x.value, nil))
	t.windows[state].insert(p)
	t.counts[state]++
	x.m.meta.state.counts[state]++
	if isUrgent(state, p) {
		t.urgent++
	}
	x.touch(t)
}

// take removes a place from a list.
func (x *tx) take(t *topic, state jobpb.State, p place) error {
	must(x.batch.SingleDelete(x.indexKey(t, state, p), nil))
	w := &t.windows[state]
	if err := w.remove(p); err != nil {
		return fmt.Errorf("topic %q, jobs in %s: %w", t.name, state, err)
	}
	t.counts[state]--
	x.m.meta.state.counts[state]--
	if isUrgent(state, p) {
		t.urgent--
	}
	if t.counts[state] == 0 {
		w.emptied()
	}
	x.touch(t)
	return nil
}

// head is the first place of a topic's list.
func (x *tx) head(t *topic, state jobpb.State) (place, bool, error) {
	return x.m.head(x.db, t, state)
}

// stateOf tells a job's state.
func (x *tx) stateOf(t *topic, rec *record) (jobpb.State, error) {
	s := rec.settledState(x.m.meta.reached())
	if s != jobpb.State_STATE_NONE {
		return s, nil
	}
	p := rec.place(jobpb.State_STATE_DELAYED, rec.seq)
	found, known := t.windows[jobpb.State_STATE_DELAYED].has(p)
	if !known {
		var err error
		if found, err = hasPlace(x.db, t.list(jobpb.State_STATE_DELAYED), p); err != nil {
			return jobpb.State_STATE_NONE, err
		}
	}
	return waitingState(found), nil
}

// topicOf is the topic of a job, which is there as long as the job is.
func (x *tx) topicOf(rec *record) (*topic, error) {
	t := x.m.byNumber[rec.topic]
	if t == nil {
		return nil, fmt.Errorf("job %d is in topic number %d, which does not exist", rec.seq, rec.topic)
	}
	return t, nil
}

// newTopic makes a topic. The caller adds a job to it, or says since when it has
// none.
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
	x.limit(t)
	return t
}

// dropTopic forgets a topic that has no jobs.
func (x *tx) dropTopic(t *topic) {
	x.touch(t)
	x.m.dropTopic(t)
	must(x.batch.Delete(x.nameKey(spaceTopic, t.name), nil))
	x.key = appendNumberKey(x.key[:0], t.number)
	must(x.batch.Delete(x.key, nil))
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

// keepRecent remembers the jobs that are likely to be asked for next: those that
// are handed out, or could be. It is called after the commit.
func (x *tx) keepRecent() {
	for _, rec := range x.jobs {
		if !rec.gone && rec.standing < dead && rec.fate.dueMS <= x.clock() {
			x.m.recent.put(rec)
		}
	}
}

// settle brings the heads and the due heap up to date with what has changed.
func (x *tx) settle() error {
	for _, t := range x.dirty {
		t.dirty = false
		if t.dropped {
			continue
		}
		if err := x.m.refresh(x.db, t); err != nil {
			return err
		}
		x.m.schedule(t)
	}
	clear(x.dirty)
	x.dirty = x.dirty[:0]
	return nil
}

// limits are those of the cluster version. Operations are judged by no others.
func (x *tx) limits() *job.Limits { return x.m.limits }

func (x *tx) clock() int64 { return x.m.meta.state.clockMS }

// name is the id by which clients know a job.
func (x *tx) name(rec *record) string {
	if rec.id != "" {
		return rec.id
	}
	return job.ServerID(x.m.options.Shard, rec.seq)
}

func (x *tx) seqKey(space byte, seq uint64) []byte {
	x.key = appendSeqKey(x.key[:0], space, seq)
	return x.key
}

func (x *tx) nameKey(space byte, name string) []byte {
	x.key = appendNameKey(x.key[:0], space, name)
	return x.key
}

func (x *tx) indexKey(t *topic, state jobpb.State, p place) []byte {
	x.key = t.list(state).appendKey(x.key[:0], p)
	return x.key
}
