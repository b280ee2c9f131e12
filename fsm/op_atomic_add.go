package fsm

import (
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
