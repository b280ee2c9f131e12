package fsm

import (
	"cmp"
	"slices"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// atomicAdd finishes a job and adds others, all or nothing: all checks come before the
// first change.
func (x *tx) atomicAdd(op *jobpb.AtomicAdd, r *jobpb.Result) error {
	var done *record.Job
	var t *topic
	var from record.List // of done
	if op.Finish != nil {
		var err error
		if done, t, from, err = x.findDone(op.Finish.Ref, r); done == nil || err != nil {
			return err
		}
	}
	if x.m.meta.Sharding != nil && !x.inOneSlot(op.Adds, done, r) {
		return nil
	}
	// Ending a job may drop a retained one, which an add may have found. So done ends last,
	// unless an add takes its id.
	taken := done != nil && done.Spec.ID != "" && slices.ContainsFunc(op.Adds, func(add *jobpb.Add) bool { return add.Id == done.Spec.ID })
	var freed *topic // loses a waiting job before the adds
	if taken && from.Waits() {
		freed = t
	}
	made, ok, err := x.checkAtomicAdd(op.Adds, done, freed, r)
	if !ok || err != nil || !x.fitAll(op.Adds, done, t, taken, r) {
		return err
	}
	if over := len(x.m.topics) + made - x.limits().MaxTopics; over > 0 {
		x.dropIdleTopics(over, named(op.Adds))
	}
	if taken { // nothing is retained of it
		t.Finished++
		if err := x.erase(t, done, from); err != nil {
			return err
		}
	}
	x.quotaChecked = true
	parts := make([]*jobpb.Result, len(op.Adds))
	for i, add := range op.Adds {
		parts[i] = new(jobpb.Result)
		if err := x.add(add, parts[i]); err != nil {
			return err
		}
	}
	x.quotaChecked = false
	r.Details = &jobpb.Details{Parts: parts}
	if done == nil || taken {
		return nil
	}
	t.Finished++
	return x.endJob(t, done, from, jobpb.Event_FINISHED, "")
}

// checkAtomicAdd reports whether all the adds would succeed, and returns how many topics they make; if
// not, it refuses the operation. Of done and freed, which may be nil, the job is gone and the topic has one
// waiting job less by then.
func (x *tx) checkAtomicAdd(adds []*jobpb.Add, done *record.Job, freed *topic, r *jobpb.Result) (newTopics int, ok bool, err error) {
	field := "jobs" // as the client knows the list
	if done != nil {
		field = "then"
	}
	added := map[string]uint64{}                                // jobs by topic
	room, looked := x.limits().MaxTopics-len(x.m.topics), false // for topics
	for i, add := range adds {
		if err := x.limits().CheckDue("due_at", add.DueMs, x.clock()); err != nil {
			return 0, false, x.refuseInvalid(job.InItem(field, i, err), r)
		}
		old, err := x.holderOfID(add, done)
		if err != nil {
			return 0, false, err
		}
		if old != nil {
			t, err := x.topicOf(old)
			if err != nil || !x.mayFindID(add, t, r) {
				return 0, false, err
			}
			differs, err := x.conflict(add, old)
			if err != nil {
				return 0, false, err
			}
			if differs != "" {
				return 0, false, x.refuse(r, jobpb.Code_ID_CONFLICT, "%s[%d]: id %.40q is taken by a job with another %s", field, i, add.Id, differs)
			}
			continue
		}
		if err := x.checkExpiry(add); err != nil {
			return 0, false, x.refuseInvalid(job.InItem(field, i, err), r)
		}
		t := x.m.topics[add.Topic]
		pending := t.pending() + added[add.Topic]
		if t != nil && t == freed {
			pending--
		}
		s := x.settingsOf(add.Topic, t)
		if err := record.CheckPushURL(add.Topic, s, add.Options.GetPushUrl()); err != nil {
			return 0, false, x.refuseInvalid(job.InItem(field, i, err), r)
		}
		if isFull(s, pending) {
			return 0, false, x.refuseFull(add.Topic, s, pending, r)
		}
		if t == nil && added[add.Topic] == 0 {
			if newTopics++; newTopics > room && !looked {
				room, looked = x.topicRoom(adds), true
			}
			if newTopics > room {
				return 0, false, x.refuseTopic(add.Topic, r)
			}
		}
		added[add.Topic]++
	}
	return newTopics, true, nil
}

// topicRoom returns how many topics can be made for adds: at the limit idle ones go, but none that an
// add names.
func (x *tx) topicRoom(adds []*jobpb.Add) int {
	room := x.limits().MaxTopics - len(x.m.topics)
	if x.m.meta.Version >= 2 {
		room += len(x.idleTopics(named(adds)))
	}
	return room
}

// named returns whether one of adds names a topic.
func named(adds []*jobpb.Add) func(*topic) bool {
	names := make(map[string]bool, len(adds))
	for _, add := range adds {
		names[add.Topic] = true
	}
	return func(t *topic) bool { return names[t.name] }
}

// holderOfID returns the job other than done that has an add's id; nil: there is none.
func (x *tx) holderOfID(add *jobpb.Add, done *record.Job) (*record.Job, error) {
	if add.Id == "" {
		return nil, nil
	}
	old, err := x.jobByID(add.Id)
	if old != nil && done != nil && old.Seq == done.Seq {
		return nil, err
	}
	return old, err
}

// fitAll reports whether all new jobs of adds fit in their namespaces together; if not, it
// refuses the operation. The job that is finished, done of topic t, makes room if nothing of
// it is retained: so the next step of a chain is added although the quota is reached.
func (x *tx) fitAll(adds []*jobpb.Add, done *record.Job, t *topic, taken bool, r *jobpb.Result) bool {
	if len(x.m.namespaces) == 0 {
		return true
	}
	grown, made := map[*namespace]growth{}, map[string]bool{}
	if done != nil && t.namespace != nil && (taken || t.retention() == 0) {
		grown[t.namespace] = growth{jobs: -1, bytes: -int64(done.BodyLen)}
	}
	for i, add := range adds {
		to := x.m.topics[add.Topic]
		n := x.namespaceFor(add.Topic, to)
		if n == nil {
			continue
		}
		if old, err := x.holderOfID(add, done); old != nil || err != nil {
			continue // it is the job of the add, and checkAtomicAdd has returned the error
		}
		if err := n.checkID(add.Id); err != nil {
			field := "jobs"
			if done != nil {
				field = "then"
			}
			_ = x.refuseInvalid(job.InItem(field, i, err), r)
			return false
		}
		more := grown[n]
		more.jobs++
		more.bytes += int64(len(add.Body))
		if !made[add.Topic] {
			more.topics += newTopics(to)
			made[add.Topic] = true
		}
		if !x.fits(n, more, r) {
			return false
		}
		grown[n] = more
	}
	return true
}

// findDone is findReserved for a finish. It also returns the job's list, which is not
// ListReserved if the finish is late and its topic accepts that.
//
// A late finish is accepted unless the job was reserved since, which is another
// generation, or an update or a postpone asked for another run. Falling due, dying, a kick
// and a move do not matter: the work is done.
func (x *tx) findDone(ref *jobpb.Ref, r *jobpb.Result) (rec *record.Job, t *topic, from record.List, err error) {
	rec, t, err = x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, record.ListNone, err
	}
	generation := ref.GetGeneration()
	switch {
	case generation == 0:
		if !x.checkReserved(ref, rec, t, r) {
			return nil, nil, record.ListNone, nil
		}
	case rec.IsHeldBy(generation):
	case rec.Status.TimedOut && rec.Status.Generation == generation && t.settings.GetLateFinish() == jobpb.LateFinish_LATE_FINISH_ACCEPT:
		from, err = x.listOf(t, rec)
		return rec, t, from, err
	default:
		return nil, nil, record.ListNone, x.refuseStale(rec, r)
	}
	return rec, t, record.ListReserved, nil
}

// finish ends a job whose work is done.
func (x *tx) finish(op *jobpb.Finish, r *jobpb.Result) error {
	rec, t, from, err := x.findDone(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	t.Finished++
	return x.endJob(t, rec, from, jobpb.Event_FINISHED, "")
}

// delete deletes a job in any state; with spare_reserved, a reserved one only with its
// token.
func (x *tx) delete(op *jobpb.Delete, r *jobpb.Result) error {
	rec, t, list, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if op.SpareReserved && list == record.ListReserved && op.Ref.GetGeneration() == 0 {
		return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved; only its holder can delete it", x.name(rec))
	}
	if ok, err := x.meets(op.Condition, t, rec, list, r); !ok || err != nil {
		return err
	}
	t.Deleted++
	return x.endJob(t, rec, list, jobpb.Event_DELETED, "")
}

// retentionStepMS is the unit to which ends of retentions are rounded up, so that a busy
// topic needs an Advance per second and not per job.
const retentionStepMS = 1000

// retention returns how long the topic retains finished and deleted jobs; 0: not at all.
func (t *topic) retention() int64 { return t.settings.GetRetainMs() }

// endJob ends a job of the list from: it is erased, or retained. as is FINISHED, DELETED
// or EXPIRED.
//
// The end of the retention is fixed here: a later change of the setting does not move it.
func (x *tx) endJob(t *topic, rec *record.Job, from record.List, as jobpb.Event_Kind, reason string) error {
	keep := t.retention()
	if keep == 0 {
		return x.erase(t, rec, from)
	}
	how := record.PhaseDeleted
	if as == jobpb.Event_FINISHED {
		how = record.PhaseFinished
	}
	err := x.move(t, rec, from, record.ListEnded, func(s *record.Status) {
		until := x.clock() + keep + retentionStepMS - 1
		s.SetEnded(how, x.clock(), until-until%retentionStepMS)
		x.recordEvent(t, rec, as, record.ListEnded, s.Attempts, reason)
	})
	// Two for each job that ends, so that a topic above a lowered maximum comes down to it.
	for n := 0; n < 2 && err == nil && t.Counts[record.ListEnded] > x.maxRetained(t); n++ {
		err = x.dropFirstRetained(t)
	}
	return err
}

// maxRetained returns how many jobs a topic retains at most.
func (x *tx) maxRetained(t *topic) uint64 {
	return cmp.Or(t.settings.GetRetainMax(), x.limits().MaxRetained)
}

// dropFirstRetained drops the job of a topic whose retention ends first.
func (x *tx) dropFirstRetained(t *topic) error {
	p, ok, err := x.head(t, record.ListEnded)
	if err != nil || !ok {
		return err
	}
	return x.dropRetained(t, p.Seq)
}

// dropRetained ends the retention of a job.
func (x *tx) dropRetained(t *topic, seq uint64) error {
	rec, err := x.jobIn(t, record.ListEnded, seq, false)
	if err != nil {
		return err
	}
	return x.erase(t, rec, record.ListEnded)
}
