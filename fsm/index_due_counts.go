package fsm

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Due counts: how many delayed jobs of each topic, and of all topics together, are due in
// each minute. A job that enters or leaves the list of delayed jobs changes one count. To
// write each would cost as much as the job's place in the list, so changes are gathered. The
// last few are in the state record, which every batch writes anyway. When they are more than
// a few, they are written as one value, which the store adds to those before
// (keyDueChanges). When these are many, they are added to the records of the counts, each of
// which covers a day of one topic.
//
// Invariant: the three add up to the lists of delayed jobs. When changes move on depends on
// the entries alone, not on how they are divided into batches.

// dueChanges are the changes of due counts, except those in the state record.
type dueChanges struct {
	gathered dueSum // those of keyDueChanges
	// entry are those of the running entry. slots finds the last change of a minute there,
	// mostly: jobs of one entry often fall due in the same minutes.
	entry []dueCount
	slots [dueSlots]uint16
	spare []dueCount // memory for the next stateRecord.recentDue
}

const (
	// dueRecent bounds the changes in the state record, and dueGathered those that are
	// gathered. A reader reads all of them.
	dueRecent   = 32
	dueGathered = 1 << 14
	dueSlots    = 1 << 8
)

// change adds jobs to the count of a minute. What an earlier entry left in a slot finds
// nothing: no minute that has the slot is in this entry before one of them is written there.
func (d *dueChanges) change(at topicMinute, jobs int64) {
	slot := &d.slots[uint64(at)*0x9e3779b97f4a7c15>>32%dueSlots]
	if i := int(*slot); i < len(d.entry) && d.entry[i].at == at {
		d.entry[i].jobs += jobs
		return
	}
	*slot = uint16(len(d.entry)) // of a large entry some are not found
	d.entry = append(d.entry, dueCount{at, jobs})
}

// gatherDueChanges gathers the changes of an entry at its end.
func (x *tx) gatherDueChanges() error {
	d, st := &x.m.dueChanges, &x.m.meta.state
	if len(d.entry) == 0 {
		return nil
	}
	st.recentDue, d.spare = addSums(d.spare, st.recentDue, addUp(d.entry)), st.recentDue
	d.entry = d.entry[:0]
	n := len(st.recentDue)
	if n <= x.m.options.dueRecent {
		return nil
	}
	if st.gatheredDue += uint32(n); st.gatheredDue > x.m.options.dueGathered {
		return x.recordDueChanges()
	}
	x.value = appendDueCounts(x.value[:0], st.recentDue)
	must(x.batch.Merge(keyDueChanges, x.value, nil))
	d.gathered.add(slices.Clone(st.recentDue))
	st.recentDue = st.recentDue[:0]
	return nil
}

// recordDueChanges moves all changes to the records, those of their topics and those of all
// topics. The transaction ends after the entry: the next time these must be in the store.
func (x *tx) recordDueChanges() error {
	d, st := &x.m.dueChanges, &x.m.meta.state
	counts := addSums(nil, d.gathered.sum(), st.recentDue)
	if err := x.mergeDueCounts(counts); err != nil {
		return err
	}
	for i := range counts {
		counts[i].at = topicMinute(counts[i].at.minute()) // of all topics
	}
	if err := x.mergeDueCounts(addUp(counts)); err != nil {
		return err
	}
	must(x.batch.Delete(keyDueChanges, nil))
	*d, st.recentDue, st.gatheredDue = dueChanges{}, nil, 0
	x.dueRecorded = true
	return nil
}

// mergeDueCounts adds counts, which are in order, to their records.
func (x *tx) mergeDueCounts(counts []dueCount) error {
	for len(counts) > 0 {
		first, n := counts[0].at, 1
		for n < len(counts) && counts[n].at.topic() == first.topic() && counts[n].at.period() == first.period() {
			n++
		}
		x.key = appendDueKey(x.key[:0], first.period(), first.topic())
		emptied, err := x.emptiesRecord(counts[:n])
		if err != nil {
			return err
		}
		if emptied {
			must(x.batch.Delete(x.key, nil))
		} else {
			x.value = appendDueCounts(x.value[:0], counts[:n])
			must(x.batch.Merge(x.key, x.value, nil))
		}
		counts = counts[n:]
	}
	return nil
}

// emptiesRecord reports whether the record at x.key, with counts added, has nothing left. It
// reads only if that can be: a record has no negative counts.
func (x *tx) emptiesRecord(counts []dueCount) (emptied bool, err error) {
	if slices.ContainsFunc(counts, func(c dueCount) bool { return c.jobs > 0 }) {
		return false, nil
	}
	rest := make([]dueCount, len(counts))
	for i, c := range counts {
		rest[i] = dueCount{c.at, -c.jobs}
	}
	x.value = appendDueCounts(x.value[:0], rest)
	err = readKey(x.db, x.key, func(value []byte) error {
		emptied = bytes.Equal(value, x.value)
		return nil
	})
	return emptied, err
}

// readDueChanges reads the changes that are not in the records of the counts.
func readDueChanges(r pebble.Reader, st *stateRecord) ([]dueCount, error) {
	gathered, err := readDueCounts(r, keyDueChanges)
	return addSums(nil, gathered, st.recentDue), err
}

// readDueCounts reads the counts of a key.
func readDueCounts(r pebble.Reader, key []byte) (counts []dueCount, err error) {
	err = readKey(r, key, func(value []byte) (err error) {
		counts, err = decodeDueCounts(nil, value)
		return err
	})
	return counts, err
}
