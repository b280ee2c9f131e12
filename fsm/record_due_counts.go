package fsm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

const minuteMS = int64(60_000)

// duePeriod is how many minutes one record of due counts covers: a day. A longer period
// makes fewer records of jobs whose due instants are far apart, and longer ones to read.
const duePeriod = 24 * 60

// allTopics is the number under which due counts are those of all topics together. No topic
// has it.
const allTopics = 0

// topicMinute is a minute of a topic's due instants. The order is by topic number, then by
// minute.
type topicMinute uint64

// topicMinuteOf returns the minute of an instant.
func topicMinuteOf(topic uint32, instant int64) topicMinute {
	return topicMinute(topic)<<32 | topicMinute(instant/minuteMS)
}

func (m topicMinute) topic() uint32 { return uint32(m >> 32) }

// minute counts from 1970.
func (m topicMinute) minute() uint32 { return uint32(m) }

func (m topicMinute) period() uint32 { return uint32(m) / duePeriod }

// dueCount is how many delayed jobs are due in a minute, or a change of that number.
type dueCount struct {
	at   topicMinute
	jobs int64
}

// keyDueChanges has the changes since they were last added to the records of periods.
var keyDueChanges = []byte{spaceDue}

const dueKeyLen = 1 + 4 + 4

func appendDueKey(b []byte, period, topic uint32) []byte {
	b = append(b, spaceDue)
	b = binary.BigEndian.AppendUint32(b, period)
	return binary.BigEndian.AppendUint32(b, topic)
}

func decodeDueKey(key []byte) (period, topic uint32, err error) {
	if len(key) != dueKeyLen || key[0] != spaceDue {
		return 0, 0, fmt.Errorf("key of due counts %x is malformed", key)
	}
	return binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:]), nil
}

// appendDueCounts encodes a sum, each minute as the distance to the last. There is one
// encoding of each.
func appendDueCounts(b []byte, sum []dueCount) []byte {
	var last topicMinute
	for _, c := range sum {
		b = binary.AppendUvarint(b, uint64(c.at-last))
		b = binary.AppendVarint(b, c.jobs)
		last = c.at
	}
	return b
}

var errDueCounts = errors.New("due counts are malformed: a number is, or they are not in order")

// decodeDueCounts appends the sum that is encoded in b to counts.
func decodeDueCounts(counts []dueCount, b []byte) ([]dueCount, error) {
	var last topicMinute
	for first := true; len(b) > 0; first = false {
		distance, n := binary.Uvarint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 {
			return nil, errDueCounts
		}
		jobs, k := binary.Varint(b[n:])
		if k <= 0 || k > 1 && b[n+k-1] == 0 {
			return nil, errDueCounts
		}
		at := last + topicMinute(distance)
		if at <= last && !first || at < last || jobs == 0 {
			return nil, errDueCounts
		}
		counts = append(counts, dueCount{at: at, jobs: jobs})
		last, b = at, b[n+k:]
	}
	return counts, nil
}

// addUp returns the sum of counts in any order: they are in order, each minute once, without
// a zero. It reuses their memory.
func addUp(counts []dueCount) []dueCount {
	slices.SortFunc(counts, func(a, b dueCount) int { return cmp.Compare(a.at, b.at) })
	sums := counts[:0]
	for _, c := range counts {
		if n := len(sums); n > 0 && sums[n-1].at == c.at {
			sums[n-1].jobs += c.jobs
			continue
		}
		sums = append(sums, c)
	}
	return slices.DeleteFunc(sums, func(c dueCount) bool { return c.jobs == 0 })
}

// addSums adds up two sums, in the memory of a third slice if that has room.
func addSums(memory, a, b []dueCount) []dueCount {
	sum := slices.Grow(memory[:0], len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x.at < y.at:
			sum, a = append(sum, x), a[1:]
		case x.at > y.at:
			sum, b = append(sum, y), b[1:]
		default:
			if x.jobs += y.jobs; x.jobs != 0 {
				sum = append(sum, x)
			}
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// dueCountsMerger adds up the values that were written to a key. So counts are changed
// without a read. The sum does not depend on when the store adds them up. A sum of nothing
// stays until the key is deleted: with a pebble.DeletableValueMerger, which would drop it,
// Pebble 2.1 compacts keys wrongly that have an older value below.
var dueCountsMerger = &pebble.Merger{Name: "tarry.due-counts", Merge: mergeDueCounts}

func mergeDueCounts(key, value []byte) (pebble.ValueMerger, error) {
	if len(key) == 0 || key[0] != spaceDue {
		return nil, fmt.Errorf("key %x has a value that is to be added to others", key)
	}
	s := &dueSum{}
	return s, s.MergeNewer(value)
}

// dueSum adds up counts. It implements pebble.ValueMerger.
type dueSum struct {
	// sums are those of what was added, each more than twice as long as the next: so they
	// are few, and each count is copied a few times.
	sums [][]dueCount
}

// add adds a sum, and keeps it.
func (s *dueSum) add(sum []dueCount) {
	s.sums = append(s.sums, sum)
	for n := len(s.sums); n > 1 && len(s.sums[n-2]) <= 2*len(s.sums[n-1]); n-- {
		s.addLast()
	}
}

// addLast adds up the last two sums.
func (s *dueSum) addLast() {
	n := len(s.sums)
	s.sums[n-2] = addSums(nil, s.sums[n-2], s.sums[n-1])
	s.sums = s.sums[:n-1]
}

// sum returns the sum of all, which stays that of s.
func (s *dueSum) sum() []dueCount {
	if len(s.sums) == 0 {
		return nil
	}
	for len(s.sums) > 1 {
		s.addLast()
	}
	return s.sums[0]
}

func (s *dueSum) MergeNewer(value []byte) error {
	counts, err := decodeDueCounts(make([]dueCount, 0, len(value)/2), value)
	if err == nil {
		s.add(counts)
	}
	return err
}

func (s *dueSum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *dueSum) Finish(bool) ([]byte, io.Closer, error) {
	return appendDueCounts(nil, s.sum()), nil, nil
}
