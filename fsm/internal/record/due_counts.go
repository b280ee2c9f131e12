package record

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// DueRecent bounds the changes in the state record. A reader reads all of them, and of those
// that are gathered.
const DueRecent = 32

// ReadDueChanges reads the changes that are not in the records of the counts.
func ReadDueChanges(r pebble.Reader, st *State) ([]DueCount, error) {
	gathered, err := ReadDueCounts(r, KeyDueChanges)
	return AddSums(nil, gathered, st.RecentDue), err
}

// ReadDueCounts reads the counts of a key.
func ReadDueCounts(r pebble.Reader, key []byte) (counts []DueCount, err error) {
	err = ReadKey(r, key, func(value []byte) (err error) {
		counts, err = DecodeDueCounts(nil, value)
		return err
	})
	return counts, err
}

const MinuteMS = int64(60_000)

// DuePeriod is how many minutes one record of due counts covers: a day. A longer period
// makes fewer records of jobs whose due instants are far apart, and longer ones to read.
const DuePeriod = 24 * 60

// AllTopics is the number under which due counts are those of all topics together. No topic
// has it.
const AllTopics = 0

// TopicMinute is a minute of a topic's due instants. The order is by topic number, then by
// minute.
type TopicMinute uint64

// TopicMinuteOf returns the minute of an instant.
func TopicMinuteOf(topic uint32, instant int64) TopicMinute {
	return TopicMinute(topic)<<32 | TopicMinute(instant/MinuteMS)
}

func (m TopicMinute) Topic() uint32 { return uint32(m >> 32) }

// Minute counts from 1970.
func (m TopicMinute) Minute() uint32 { return uint32(m) }

func (m TopicMinute) Period() uint32 { return uint32(m) / DuePeriod }

// DueCount is how many delayed jobs are due in a minute, or a change of that number.
type DueCount struct {
	At   TopicMinute
	Jobs int64
}

// KeyDueChanges has the changes since they were last added to the records of periods.
var KeyDueChanges = []byte{SpaceDue}

const dueKeyLen = 1 + 4 + 4

func AppendDueKey(b []byte, period, topic uint32) []byte {
	b = append(b, SpaceDue)
	b = binary.BigEndian.AppendUint32(b, period)
	return binary.BigEndian.AppendUint32(b, topic)
}

func DecodeDueKey(key []byte) (period, topic uint32, err error) {
	if len(key) != dueKeyLen || key[0] != SpaceDue {
		return 0, 0, fmt.Errorf("key of due counts %x is malformed", key)
	}
	return binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:]), nil
}

// AppendDueCounts encodes a sum, each minute as the distance to the last. There is one
// encoding of each.
func AppendDueCounts(b []byte, sum []DueCount) []byte {
	var last TopicMinute
	for _, c := range sum {
		b = binary.AppendUvarint(b, uint64(c.At-last))
		b = binary.AppendVarint(b, c.Jobs)
		last = c.At
	}
	return b
}

var errDueCounts = errors.New("due counts are malformed: a number is, or they are not in order")

// DecodeDueCounts appends the sum that is encoded in b to counts.
func DecodeDueCounts(counts []DueCount, b []byte) ([]DueCount, error) {
	var last TopicMinute
	for first := true; len(b) > 0; first = false {
		distance, n := binary.Uvarint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 {
			return nil, errDueCounts
		}
		jobs, k := binary.Varint(b[n:])
		if k <= 0 || k > 1 && b[n+k-1] == 0 {
			return nil, errDueCounts
		}
		at := last + TopicMinute(distance)
		if at <= last && !first || at < last || jobs == 0 {
			return nil, errDueCounts
		}
		counts = append(counts, DueCount{At: at, Jobs: jobs})
		last, b = at, b[n+k:]
	}
	return counts, nil
}

// AddUp returns the sum of counts in any order: they are in order, each minute once, without
// a zero. It reuses their memory.
func AddUp(counts []DueCount) []DueCount {
	slices.SortFunc(counts, func(a, b DueCount) int { return cmp.Compare(a.At, b.At) })
	sums := counts[:0]
	for _, c := range counts {
		if n := len(sums); n > 0 && sums[n-1].At == c.At {
			sums[n-1].Jobs += c.Jobs
			continue
		}
		sums = append(sums, c)
	}
	return slices.DeleteFunc(sums, func(c DueCount) bool { return c.Jobs == 0 })
}

// AddSums adds up two sums, in the memory of a third slice if that has room.
func AddSums(memory, a, b []DueCount) []DueCount {
	sum := slices.Grow(memory[:0], len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x.At < y.At:
			sum, a = append(sum, x), a[1:]
		case x.At > y.At:
			sum, b = append(sum, y), b[1:]
		default:
			if x.Jobs += y.Jobs; x.Jobs != 0 {
				sum = append(sum, x)
			}
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// DueCountsMerger adds up the values that were written to a key. So counts are changed
// without a read. The sum does not depend on when the store adds them up. A sum of nothing
// stays until the key is deleted: with a pebble.DeletableValueMerger, which would drop it,
// Pebble 2.1 compacts keys wrongly that have an older value below.
var DueCountsMerger = &pebble.Merger{Name: "tarry.due-counts", Merge: mergeDueCounts}

func mergeDueCounts(key, value []byte) (pebble.ValueMerger, error) {
	if len(key) == 0 || key[0] != SpaceDue {
		return nil, fmt.Errorf("key %x has a value that is to be added to others", key)
	}
	s := &DueSum{}
	return s, s.MergeNewer(value)
}

// DueSum adds up counts. It implements pebble.ValueMerger.
type DueSum struct {
	// sums are those of what was added, each more than twice as long as the next: so they
	// are few, and each count is copied a few times.
	sums [][]DueCount
}

// Add adds a sum, and keeps it.
func (s *DueSum) Add(sum []DueCount) {
	s.sums = append(s.sums, sum)
	for n := len(s.sums); n > 1 && len(s.sums[n-2]) <= 2*len(s.sums[n-1]); n-- {
		s.addLast()
	}
}

// addLast adds up the last two sums.
func (s *DueSum) addLast() {
	n := len(s.sums)
	s.sums[n-2] = AddSums(nil, s.sums[n-2], s.sums[n-1])
	s.sums = s.sums[:n-1]
}

// Sum returns the sum of all, which stays that of s.
func (s *DueSum) Sum() []DueCount {
	if len(s.sums) == 0 {
		return nil
	}
	for len(s.sums) > 1 {
		s.addLast()
	}
	return s.sums[0]
}

func (s *DueSum) MergeNewer(value []byte) error {
	counts, err := DecodeDueCounts(make([]DueCount, 0, len(value)/2), value)
	if err == nil {
		s.Add(counts)
	}
	return err
}

func (s *DueSum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *DueSum) Finish(bool) ([]byte, io.Closer, error) {
	return AppendDueCounts(nil, s.Sum()), nil, nil
}
