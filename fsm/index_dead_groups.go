package fsm

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Dead groups: the dead jobs of each topic by reason, and how many each group has, in its
// topic and in all topics together. A job that enters or leaves the list of dead jobs enters
// or leaves its group: a key of its own, by which the jobs of a group are found, and a
// change of the count, of which a transaction writes the sum. The reason of a job does not
// change while it is dead.
//
// Groups are also found by the order of magnitude of their counts, so that the largest of
// very many are found without a look at the others (deadCount.size).
//
// Topics without dead jobs have nothing here, and adds change nothing.

// joinGroup adds a job that was added to the list of dead jobs to its group.
func (x *tx) joinGroup(t *topic, rec *record) {
	g := deadGroup{t.number, rec.deadReason()}
	x.key = g.appendJobKey(x.key[:0], rec.place(listDead))
	must(x.batch.Set(x.key, nil, nil))
	x.countDead(g, 1)
}

// leaveGroup undoes joinGroup.
func (x *tx) leaveGroup(t *topic, rec *record) {
	g := deadGroup{t.number, rec.deadReason()}
	x.key = g.appendJobKey(x.key[:0], rec.place(listDead))
	must(x.batch.SingleDelete(x.key, nil))
	x.countDead(g, -1)
}

func (x *tx) countDead(g deadGroup, jobs int64) {
	if x.deadChanges == nil {
		x.deadChanges = make(map[deadGroup]int64)
	}
	x.deadChanges[g] += jobs
}

// writeDeadCounts writes the counts that the transaction has changed.
func (x *tx) writeDeadCounts() error {
	if len(x.deadChanges) == 0 {
		return nil
	}
	changed := make([]deadGroup, 0, len(x.deadChanges))
	for g, jobs := range x.deadChanges {
		if jobs != 0 {
			changed = append(changed, g)
		}
	}
	slices.SortFunc(changed, func(a, b deadGroup) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.topic, b.topic))
	})
	for len(changed) > 0 {
		all := deadGroup{allTopics, changed[0].reason}
		var jobs, topics int64
		for len(changed) > 0 && changed[0].reason == all.reason {
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
		x.m.meta.state.deadReasons += uint64(appeared(was, is))
	}
	return nil
}

// appeared returns 1 if a group has its first jobs, and -1 if it has lost its last.
func appeared(was, is deadCount) int64 {
	switch {
	case was.jobs == 0 && is.jobs != 0:
		return 1
	case was.jobs != 0 && is.jobs == 0:
		return -1
	}
	return 0
}

// changeDeadCount adds to the count of a group. A transaction does so once for each.
func (x *tx) changeDeadCount(g deadGroup, jobs, topics int64) (was, is deadCount, err error) {
	x.key = g.appendCountKey(x.key[:0])
	if was, err = readDeadCount(x.db, x.key); err != nil {
		return was, is, err
	}
	is = deadCount{was.jobs + uint64(jobs), was.topics + uint64(topics)}
	if is == was {
		return was, is, nil
	}
	if is.jobs == 0 {
		must(x.batch.Delete(x.key, nil))
	} else {
		x.value = is.append(x.value[:0])
		must(x.batch.Set(x.key, x.value, nil))
	}
	if is.size() == was.size() {
		return was, is, nil
	}
	if was.jobs != 0 {
		x.key = g.appendSizeKey(x.key[:0], was.size())
		must(x.batch.Delete(x.key, nil))
	}
	if is.jobs != 0 {
		x.key = g.appendSizeKey(x.key[:0], is.size())
		must(x.batch.Set(x.key, nil, nil))
	}
	return was, is, nil
}

// groupPlaces is places for the jobs of one group of the dead jobs.
func (x *tx) groupPlaces(t *topic, reason string, at progress, most int) ([]place, error) {
	head, ok, err := x.head(t, listDead)
	if err != nil || !ok {
		return nil, err
	}
	g := deadGroup{t.number, reason}
	// Jobs that the transaction has touched are as they are in memory, the others as stored.
	var found []place
	for _, rec := range x.jobs {
		if !rec.gone && rec.status.phase == phaseDead && rec.topic() == g.topic && rec.deadReason() == g.reason {
			if p := rec.place(listDead); p.compare(at.after) > 0 && uint64(p.instant) < at.limit {
				found = append(found, p)
			}
		}
	}
	from := at.after.next()
	if from.compare(head) < 0 {
		from = head // before it there are only tombstones
	}
	stored, err := x.storedGroupPlaces(g, from, at.limit, most)
	if err != nil {
		return nil, err
	}
	found = append(found, stored...)
	slices.SortFunc(found, place.compare)
	return found[:min(len(found), most)], nil
}

// storedGroupPlaces returns the first places of those jobs of a group that the transaction
// has not touched.
func (x *tx) storedGroupPlaces(g deadGroup, from place, limit uint64, most int) (found []place, err error) {
	err = eachDeadJob(x.db, g, from, func(p place) error {
		if uint64(p.instant) >= limit || len(found) == most {
			return errEnough
		}
		if x.jobs[p.seq] == nil && p.compare(from) >= 0 {
			found = append(found, p)
		}
		return nil
	})
	return found, err
}

// eachDeadJob calls f for the places of the jobs of a group that are not before from, until
// it returns errEnough.
func eachDeadJob(r pebble.Reader, g deadGroup, from place, f func(place) error) error {
	err := scan(r, g.appendJobKey(nil, from), keyAfter(g.appendJobsPrefix(nil)), func(key, _ []byte) error {
		_, _, p, err := decodeDeadJob(key)
		if err != nil {
			return err
		}
		return f(p)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
