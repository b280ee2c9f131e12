package fsm

import (
	"cmp"
	"slices"

	"tarry/fsm/internal/record"
)

// Dead groups: the dead jobs of each topic by reason, and how many each group has, in its
// topic and in all topics together. A job that enters or leaves the list of dead jobs enters
// or leaves its group: a key of its own, by which the jobs of a group are found, and a
// change of the count, of which a transaction writes the sum. The reason of a job does not
// change while it is dead.
//
// Groups are also found by the order of magnitude of their counts, so that the largest of
// very many are found without a look at the others (DeadCount.size).
//
// Topics without dead jobs have nothing here, and adds change nothing.

// joinGroup adds a job that was added to the list of dead jobs to its group.
func (x *tx) joinGroup(t *topic, rec *record.Job) {
	g := record.DeadGroup{Topic: t.Number, Reason: rec.DeadReason()}
	x.key = g.AppendJobKey(x.key[:0], rec.Place(record.ListDead))
	must(x.batch.Set(x.key, nil, nil))
	x.countDead(g, 1)
}

// leaveGroup undoes joinGroup.
func (x *tx) leaveGroup(t *topic, rec *record.Job) {
	g := record.DeadGroup{Topic: t.Number, Reason: rec.DeadReason()}
	x.key = g.AppendJobKey(x.key[:0], rec.Place(record.ListDead))
	must(x.batch.SingleDelete(x.key, nil))
	x.countDead(g, -1)
}

func (x *tx) countDead(g record.DeadGroup, jobs int64) {
	if x.deadChanges == nil {
		x.deadChanges = make(map[record.DeadGroup]int64)
	}
	x.deadChanges[g] += jobs
}

// writeDeadCounts writes the counts that the transaction has changed.
func (x *tx) writeDeadCounts() error {
	if len(x.deadChanges) == 0 {
		return nil
	}
	changed := make([]record.DeadGroup, 0, len(x.deadChanges))
	for g, jobs := range x.deadChanges {
		if jobs != 0 {
			changed = append(changed, g)
		}
	}
	slices.SortFunc(changed, func(a, b record.DeadGroup) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Topic, b.Topic))
	})
	for len(changed) > 0 {
		all := record.DeadGroup{Topic: record.AllTopics, Reason: changed[0].Reason}
		var jobs, topics int64
		for len(changed) > 0 && changed[0].Reason == all.Reason {
			g := changed[0]
			was, is, err := x.changeDeadCount(g, x.deadChanges[g], 0)
			if err != nil {
				return err
			}
			jobs += x.deadChanges[g]
			topics += appeared(was, is)
			changed = changed[1:]
		}
		was, is, err := x.changeDeadCount(all, jobs, topics)
		if err != nil {
			return err
		}
		x.m.meta.State.DeadReasons += uint64(appeared(was, is))
	}
	return nil
}

// appeared returns 1 if a group has its first jobs, and -1 if it has lost its last.
func appeared(was, is record.DeadCount) int64 {
	switch {
	case was.Jobs == 0 && is.Jobs != 0:
		return 1
	case was.Jobs != 0 && is.Jobs == 0:
		return -1
	}
	return 0
}

// changeDeadCount adds to the count of a group. A transaction does so once for each.
func (x *tx) changeDeadCount(g record.DeadGroup, jobs, topics int64) (was, is record.DeadCount, err error) {
	x.key = g.AppendCountKey(x.key[:0])
	if was, err = record.ReadDeadCount(x.db, x.key); err != nil {
		return was, is, err
	}
	is = record.DeadCount{Jobs: was.Jobs + uint64(jobs), Topics: was.Topics + uint64(topics)}
	if is == was {
		return was, is, nil
	}
	if is.Jobs == 0 {
		must(x.batch.Delete(x.key, nil))
	} else {
		x.value = is.Append(x.value[:0])
		must(x.batch.Set(x.key, x.value, nil))
	}
	if is.Size() == was.Size() {
		return was, is, nil
	}
	if was.Jobs != 0 {
		x.key = g.AppendSizeKey(x.key[:0], was.Size())
		must(x.batch.Delete(x.key, nil))
	}
	if is.Jobs != 0 {
		x.key = g.AppendSizeKey(x.key[:0], is.Size())
		must(x.batch.Set(x.key, nil, nil))
	}
	return was, is, nil
}

// groupPlaces is places for the jobs of one group of the dead jobs.
func (x *tx) groupPlaces(t *topic, reason string, at progress, most int) ([]record.Place, error) {
	head, ok, err := x.head(t, record.ListDead)
	if err != nil || !ok {
		return nil, err
	}
	g := record.DeadGroup{Topic: t.Number, Reason: reason}
	// Jobs that the transaction has touched are as they are in memory, the others as stored.
	var found []record.Place
	for _, rec := range x.jobs {
		if !rec.Gone && rec.Status.Phase == record.PhaseDead && rec.Topic() == g.Topic && rec.DeadReason() == g.Reason {
			if p := rec.Place(record.ListDead); p.Compare(at.after) > 0 && uint64(p.Instant) < at.limit {
				found = append(found, p)
			}
		}
	}
	from := at.after.Next()
	if from.Compare(head) < 0 {
		from = head // before it there are only tombstones
	}
	stored, err := x.storedGroupPlaces(g, from, at.limit, most)
	if err != nil {
		return nil, err
	}
	found = append(found, stored...)
	slices.SortFunc(found, record.Place.Compare)
	return found[:min(len(found), most)], nil
}

// storedGroupPlaces returns the first places of those jobs of a group that the transaction
// has not touched.
func (x *tx) storedGroupPlaces(g record.DeadGroup, from record.Place, limit uint64, most int) (found []record.Place, err error) {
	err = record.EachDeadJob(x.db, g, from, func(p record.Place) error {
		if uint64(p.Instant) >= limit || len(found) == most {
			return record.ErrEnough
		}
		if x.jobs[p.Seq] == nil && p.Compare(from) >= 0 {
			found = append(found, p)
		}
		return nil
	})
	return found, err
}
