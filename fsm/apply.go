package fsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Entry is one committed entry of the Raft log.
type Entry struct {
	Index, Term uint64
	Data        []byte
	// Configuration is true if Data has not operations but the Raft configuration,
	// which is stored and not decoded.
	Configuration bool
}

// Changes is what the leader acts on after an Apply.
type Changes struct {
	Topics []TopicChange // those that changed; a dropped one is all zero
	// Events counts what happened to the jobs of Topics, in the same order. It is empty
	// if that is not known, because the state was replaced.
	Events    []job.TopicEvents
	NextDue   int64 // as Machine.NextDue
	Marks     []MarkPoint
	Cluster   bool // the cluster's id or version, the forgotten members, the removed nodes or the admission changed
	Schedules bool // NextSchedule may have changed
	Effects   []Effect
	// Timeouts are the reservations that expired, in order.
	Timeouts []job.Timeout
}

// MarkPoint is a Mark with the state at its entry. The receiver closes the view.
type MarkPoint struct {
	Name  string
	Index uint64
	View  *view.View
}

const (
	// commitBytes ends a batch early, between entries: a batch larger than half a
	// memtable is expensive for the store.
	commitBytes = 4 << 20

	// maxClockMS is the end of the year 9999. A leader's clock beyond it is
	// broken; it is limited here so that no sum of instants can overflow.
	maxClockMS = job.MaxInstantMS
)

// Apply applies committed entries, in order. An entry's changes are committed
// whole or not at all, together with its index; one batch usually holds all the
// entries. Entries at or below the applied index are skipped.
//
// With replies it returns one list of results per entry: one result per
// operation, nil for a configuration or skipped entry. Without, results are not
// built and the list is nil.
//
// It does not wait for the disk, because the Raft log is the write-ahead log; only the
// cluster's id is flushed. Any error is fatal: the process must end, because the state in
// memory may be ahead of the store. Every later call returns the same error. One goroutine only.
func (m *Machine) Apply(entries []Entry, replies bool) ([][]*jobpb.Result, Changes, error) {
	if m.broken != nil {
		return nil, Changes{}, m.broken
	}
	results, changes, err := m.apply(entries, replies)
	if err != nil {
		for _, p := range changes.Marks {
			err = errors.Join(err, p.View.Close())
		}
		m.broken = fmt.Errorf("the state machine stopped: %w", err)
		return nil, Changes{}, m.broken
	}
	return results, changes, nil
}

func (m *Machine) apply(entries []Entry, replies bool) (results [][]*jobpb.Result, changes Changes, err error) {
	x := m.tx
	x.replies = replies
	if replies {
		results = make([][]*jobpb.Result, len(entries))
	}
	applied := m.Applied().Index
	changed := make(map[string]int) // index in changes.Topics
	pending := false
	for i, e := range entries {
		if e.Index <= applied {
			continue
		}
		applied = e.Index
		nowMS, err := x.begin(e)
		before := Entry{Index: m.meta.State.Index, Term: m.meta.State.Term}
		if err == nil && !m.follows() {
			err = m.effectsBefore(e, nowMS, &changes, changed)
		}
		var rs []*jobpb.Result
		if err == nil {
			rs, err = x.entry(e, nowMS)
		}
		if err == nil {
			err = m.follow(before, e, &changes, changed)
		}
		replaced := x.toReplace != nil
		if err == nil && replaced {
			err = m.replaceState(before, e, &changes, changed)
			x = m.tx // of the new state
			x.replies = replies
		}
		if err != nil {
			return nil, changes, fmt.Errorf("log entry %d: %w", e.Index, err)
		}
		if replies {
			results[i] = rs
		}
		pending = !replaced
		if x.mustCommit() {
			if err := m.commit(&changes, changed); err != nil {
				return nil, changes, err
			}
			pending = false
		}
	}
	if pending {
		if err := m.commit(&changes, changed); err != nil {
			return nil, changes, err
		}
	}
	changes.NextDue = m.NextDue()
	return results, changes, nil
}

// mustCommit reports whether the transaction must end before the next entry.
func (x *tx) mustCommit() bool {
	return len(x.marks) > 0 || x.clockSet || x.walkBegan || x.dueRecorded || x.batch.Len()+x.indexBatch.Len()+x.idBatch.Len() > commitBytes
}

// begin begins to read an entry, and returns its time. A configuration has none.
func (x *tx) begin(e Entry) (nowMS int64, err error) {
	if e.Configuration {
		return 0, nil
	}
	return x.ops.ReadEntry(e.Data)
}

// entry applies one entry to the transaction.
func (x *tx) entry(e Entry, nowMS int64) ([]*jobpb.Result, error) {
	meta := &x.m.meta
	meta.State.Index, meta.State.Term = e.Index, e.Term
	if e.Configuration {
		meta.Configuration, meta.ConfigurationIndex = append([]byte(nil), e.Data...), e.Index
		x.value = record.AppendConfiguration(x.value[:0], e.Index, e.Data)
		must(x.batch.Set(record.KeyConfiguration, x.value, nil))
		return nil, nil
	}
	return x.operations(e.Term, nowMS)
}

// operations applies the operations of the entry that begin has read. A standby's clock is that
// of its primary.
func (x *tx) operations(term uint64, nowMS int64) ([]*jobpb.Result, error) {
	meta := &x.m.meta
	x.term, x.nowMS, x.roundedDown = term, nowMS, false
	if (x.followed || !x.m.follows()) && x.ops.ClockEpoch() == meta.Reset.Epoch {
		meta.State.ClockMS = max(meta.State.ClockMS, min(nowMS, maxClockMS))
		x.roundedDown = x.ops.RoundedDown() && nowMS == meta.State.ClockMS
	}
	x.hear()
	var results []*jobpb.Result
	n := 1 // without replies, for all the operations
	if x.replies {
		n = x.ops.Left()
		results = make([]*jobpb.Result, n)
	}
	made := make([]jobpb.Result, n) // one allocation
	for i := 0; ; i++ {
		op, err := x.ops.Next()
		if err != nil {
			return results, err
		}
		if op == nil {
			return results, x.gatherDueChanges()
		}
		r := &made[0]
		if x.replies {
			r = &made[i]
			results[i] = r
		} else {
			r.Reset() // an operation must find what it finds with replies
		}
		if err := x.op(op, r); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
}

// op applies one operation and fills in its result, which a follower discards. An
// error is a failure of the machine, not of the operation.
func (x *tx) op(op *jobpb.Op, r *jobpb.Result) error {
	if x.m.follows() && x.offStandby(x.ops.Number(), r) {
		return nil
	}
	if x.m.meta.Sharding != nil && x.isElsewhere(op, r) {
		return nil
	}
	if err := oplog.CheckOp(op, x.limits()); err != nil {
		return x.refuseInvalid(err, r)
	}
	if x.m.followsConfig() && isClients(op) && x.refuseOutOfTouch(x.term, x.nowMS, r) {
		return nil
	}
	var err error
	if x.m.auth.Mode() != jobpb.AuthMode_AUTH_OFF {
		err = x.checked(op, r)
	} else {
		err = x.do(op, r)
	}
	if x.change == nil || err != nil {
		return err
	}
	return x.logChange()
}

// refuse makes r an error result.
func (x *tx) refuse(r *jobpb.Result, code jobpb.Code, format string, args ...any) error {
	if x.replies {
		r.Code, r.Message = code, fmt.Sprintf(format, args...)
	}
	return nil
}

// refuseInvalid refuses an operation that breaks a rule of package job.
func (x *tx) refuseInvalid(err error, r *jobpb.Result) error {
	return x.refuseField(jobpb.Code_INVALID, err, r)
}

// refuseField refuses an operation because of the field that err names.
func (x *tx) refuseField(code jobpb.Code, err error, r *jobpb.Result) error {
	var e *job.Error
	if x.replies && errors.As(err, &e) && e.Field != "" {
		r.Details = &jobpb.Details{Field: e.Field}
	}
	return x.refuse(r, code, "%s", err)
}

// commit writes the transaction and publishes it. changed has the index in changes.Topics
// of each topic that an earlier commit of the same Apply changed.
func (m *Machine) commit(changes *Changes, changed map[string]int) error {
	x := m.tx
	if err := x.refreshHeads(); err != nil {
		return err
	}
	if err := x.write(); err != nil {
		return err
	}
	news := make([]TopicChange, 0, len(x.touched))
	for _, t := range x.touched {
		t.endTransaction()
		m.noteEmpty(t)
		switch {
		case !t.dropped:
			m.count(t)
			news = append(news, m.updateDue(t))
		case m.topics[t.name] == nil:
			news = append(news, TopicChange{Name: t.name})
		default:
			// Made again since; that one is touched too.
		}
	}
	m.trimWindows()
	x.keepRecent()
	m.storeEffects() // first: who sees the index must see what waits then
	m.publish(news)
	x.notifyWatches()
	if x.settingsChanged {
		m.settingsVersion.Add(1)
	}
	for _, c := range news {
		if t := m.topics[c.Name]; t != nil && x.replies {
			c.Soon = t.soon()
		}
		changes.set(c, changed)
	}
	for _, t := range x.touched {
		more := t.takeEvents()
		changes.Events[changed[t.name]].Add(&more)
	}
	changes.Cluster = changes.Cluster || x.cluster
	changes.Schedules = changes.Schedules || len(x.schedules) > 0
	changes.Effects = append(changes.Effects, x.effects...)
	changes.Timeouts = append(changes.Timeouts, x.timeouts...)
	for _, name := range x.marks {
		changes.Marks = append(changes.Marks, MarkPoint{Name: name, Index: m.meta.State.Index, View: m.View()})
	}
	x.reset()
	m.nextDue.Store(m.earliest())
	return nil
}

// set records the state of a topic. changed has the index in c.Topics of each that is there.
func (c *Changes) set(t TopicChange, changed map[string]int) {
	if at, ok := changed[t.Name]; ok {
		c.Topics[at] = t
		return
	}
	changed[t.Name] = len(c.Topics)
	c.Topics = append(c.Topics, t)
	c.Events = append(c.Events, job.TopicEvents{})
}

// write commits the batch.
func (x *tx) write() error {
	for _, t := range x.touched {
		if t.dropped {
			continue
		}
		x.value = t.Topic.Append(x.value[:0])
		must(x.batch.Set(x.nameKey(record.SpaceTopic, t.name), x.value, nil))
	}
	if err := x.writeSchedules(); err != nil {
		return err
	}
	if err := x.writeDeadCounts(); err != nil {
		return err
	}
	x.writePending()
	x.writeNamespaces()
	if err := x.writeStandby(); err != nil {
		return err
	}
	x.m.meta.State.Topics = uint32(len(x.m.topics)) // there are at most job.MaxTopics
	x.value = x.m.meta.State.Append(x.value[:0])
	must(x.batch.Set(record.KeyState, x.value, nil))
	for _, b := range []*pebble.Batch{x.indexBatch, x.idBatch} {
		must(x.batch.Apply(b, nil))
		b.Reset()
	}
	if err := x.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("commit up to log entry %d: %w", x.m.meta.State.Index, err)
	}
	if err := x.batch.Close(); err != nil {
		return err
	}
	x.batch = x.db.NewBatch()
	if x.named { // once; a node that had forgotten its cluster in a crash could join another one
		return x.m.store.db.Flush()
	}
	return nil
}

// publish makes what was committed visible to other goroutines.
func (m *Machine) publish(news []TopicChange) {
	x := m.tx
	m.mu.Lock()
	defer m.mu.Unlock()
	m.public.applied = m.meta.Applied()
	m.public.clusterID, m.public.sharding = m.meta.ClusterID, m.meta.Sharding
	m.public.standby, m.public.upload = m.meta.Standby, m.meta.Upload.ID
	m.following.Store(m.follows())
	m.version.Store(m.meta.Version)
	m.migrating.Store(m.meta.Migrating != nil)
	if x.authChanged {
		m.publishAuth()
	}
	if x.configChanged {
		m.publishConfig()
	}
	if x.namespacesChanged {
		m.namespaceSet.Store(newNamespaces(m.namespaces))
	}
	m.public.removed, m.public.admission = m.memory.removed, m.memory.admission
	m.public.uses = m.memory.uses()
	for _, id := range x.forgot {
		m.public.forgotten[id] = struct{}{}
	}
	for name, s := range x.schedules {
		st := s.state
		if s.gone {
			st = nil
		}
		m.public.schedules.set(name, st)
	}
	if len(x.schedules) > 0 {
		m.nextSchedule.Store(m.public.schedules.earliest())
	}
	for _, c := range news {
		if _, live := m.topics[c.Name]; live {
			m.public.topics[c.Name] = c
		} else {
			delete(m.public.topics, c.Name)
		}
	}
}

// endTransaction discards what only the running transaction needed.
func (t *topic) endTransaction() {
	t.touched, t.dirty = false, false
	for s := range t.windows {
		t.windows[s].Committed()
	}
}
