package fsm

import (
	"bytes"
	"slices"

	"tarry/fsm/internal/record"
)

// Due counts: how many delayed jobs of each topic, and of all topics together, are due in
// each minute. A job that enters or leaves the list of delayed jobs changes one count. To
// write each would cost as much as the job's place in the list, so changes are gathered. The
// last few are in the state record, which every batch writes anyway. When they are more than
// a few, they are written as one value, which the store adds to those before
// (KeyDueChanges). When these are many, they are added to the records of the counts, each of
// which covers a day of one topic.
//
// Invariant: the three add up to the lists of delayed jobs. When changes move on depends on
// the entries alone, not on how they are divided into batches.

// dueChanges are the changes of due counts, except those in the state record.
type dueChanges struct {
	gathered record.DueSum // those of KeyDueChanges
	// entry are those of the running entry. slots finds the last change of a minute there,
	// mostly: jobs of one entry often fall due in the same minutes.
	entry []record.DueCount
	slots [dueSlots]uint16
	spare []record.DueCount // memory for the next State.RecentDue
}

const (
	dueGathered = 1 << 14 // bounds the changes that are gathered
	dueSlots    = 1 << 8
)

// change adds jobs to the count of a minute. What an earlier entry left in a slot finds
// nothing: no minute that has the slot is in this entry before one of them is written there.
func (d *dueChanges) change(at record.TopicMinute, jobs int64) {
	slot := &d.slots[uint64(at)*0x9e3779b97f4a7c15>>32%dueSlots]
	if i := int(*slot); i < len(d.entry) && d.entry[i].At == at {
		d.entry[i].Jobs += jobs
		return
	}
	*slot = uint16(len(d.entry)) // of a large entry some are not found
	d.entry = append(d.entry, record.DueCount{At: at, Jobs: jobs})
}

// gatherDueChanges gathers the changes of an entry at its end.
func (x *tx) gatherDueChanges() error {
	d, st := &x.m.dueChanges, &x.m.meta.State
	if len(d.entry) == 0 {
		return nil
	}
	st.RecentDue, d.spare = record.AddSums(d.spare, st.RecentDue, record.AddUp(d.entry)), st.RecentDue
	d.entry = d.entry[:0]
	n := len(st.RecentDue)
	if n <= x.m.options.bounds.dueRecent {
		return nil
	}
	if st.GatheredDue += uint32(n); st.GatheredDue > x.m.options.bounds.dueGathered {
		return x.recordDueChanges()
	}
	x.value = record.AppendDueCounts(x.value[:0], st.RecentDue)
	must(x.batch.Merge(record.KeyDueChanges, x.value, nil))
	d.gathered.Add(slices.Clone(st.RecentDue))
	st.RecentDue = st.RecentDue[:0]
	return nil
}

// recordDueChanges moves all changes to the records, those of their topics and those of all
// topics. The transaction ends after the entry: the next time these must be in the store.
func (x *tx) recordDueChanges() error {
	d, st := &x.m.dueChanges, &x.m.meta.State
	counts := record.AddSums(nil, d.gathered.Sum(), st.RecentDue)
	if err := x.mergeDueCounts(counts); err != nil {
		return err
	}
	for i := range counts {
		counts[i].At = record.TopicMinute(counts[i].At.Minute()) // of all topics
	}
	if err := x.mergeDueCounts(record.AddUp(counts)); err != nil {
		return err
	}
	must(x.batch.Delete(record.KeyDueChanges, nil))
	*d, st.RecentDue, st.GatheredDue = dueChanges{}, nil, 0
	x.dueRecorded = true
	return nil
}

// mergeDueCounts adds counts, which are in order, to their records.
func (x *tx) mergeDueCounts(counts []record.DueCount) error {
	for len(counts) > 0 {
		first, n := counts[0].At, 1
		for n < len(counts) && counts[n].At.Topic() == first.Topic() && counts[n].At.Period() == first.Period() {
			n++
		}
		x.key = record.AppendDueKey(x.key[:0], first.Period(), first.Topic())
		emptied, err := x.emptiesRecord(counts[:n])
		if err != nil {
			return err
		}
		if emptied {
			must(x.batch.Delete(x.key, nil))
		} else {
			x.value = record.AppendDueCounts(x.value[:0], counts[:n])
			must(x.batch.Merge(x.key, x.value, nil))
		}
		counts = counts[n:]
	}
	return nil
}

// emptiesRecord reports whether the record at x.key, with counts added, has nothing left. It
// reads only if that can be: a record has no negative counts.
func (x *tx) emptiesRecord(counts []record.DueCount) (emptied bool, err error) {
	if slices.ContainsFunc(counts, func(c record.DueCount) bool { return c.Jobs > 0 }) {
		return false, nil
	}
	rest := make([]record.DueCount, len(counts))
	for i, c := range counts {
		rest[i] = record.DueCount{At: c.At, Jobs: -c.Jobs}
	}
	x.value = record.AppendDueCounts(x.value[:0], rest)
	err = record.ReadKey(x.db, x.key, func(value []byte) error {
		emptied = bytes.Equal(value, x.value)
		return nil
	})
	return emptied, err
}
