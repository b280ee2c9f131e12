package logstore

import (
	"math"
	"sync"

	"github.com/hashicorp/raft"
)

const (
	// markBytes is the granularity of the estimate, maxMarks bounds its memory. Together
	// they cover 64 GiB of log.
	markBytes = 1 << 20
	maxMarks  = 1 << 16

	// samples is how many entries of an old log are read to learn their size.
	samples = 64
	// entryOverhead is the approximate number of bytes that the log adds to an entry's data.
	entryOverhead = 40
	// unknownEntryBytes is the assumed size of an entry while the log is empty.
	unknownEntryBytes = 1024
)

// sizes estimates how many bytes the newest entries of a log take. An average
// over all entries would be wrong: after an idle time with small entries, the large
// ones before it would never be truncated.
type sizes struct {
	mu sync.Mutex
	// marks are points of the log about markBytes apart, oldest first.
	marks []mark
	total int64  // bytes appended since the log was opened
	last  uint64 // last index
	// old is the mean size of the entries from before the log was opened.
	old float64
}

// mark is a point of the log: total bytes had been appended when it ended at index.
type mark struct {
	index uint64
	total int64
}

// measure returns the sizes of a log that was just opened. It reads only a sample of the
// entries.
func measure(log raft.LogStore) (*sizes, error) {
	first, err := log.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return nil, err
	}
	s := &sizes{last: last, old: unknownEntryBytes}
	s.restart()
	if last == 0 {
		return s, nil
	}
	var bytes, count int64
	step := (last-first)/samples + 1
	for i := first; i <= last; i += step {
		var e raft.Log
		if err := log.GetLog(i, &e); err != nil {
			return nil, err
		}
		bytes += sizeOf(&e)
		count++
	}
	s.old = float64(bytes) / float64(count)
	return s, nil
}

func sizeOf(e *raft.Log) int64 { return int64(len(e.Data)+len(e.Extensions)) + entryOverhead }

func (s *sizes) appended(entries []*raft.Log) {
	if len(entries) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := entries[0].Index - 1; before != s.last {
		s.last = before // an emptied log continues at the index of the restored state
		s.restart()
	}
	for _, e := range entries {
		s.total += sizeOf(e)
		s.last = e.Index
		if s.total-s.marks[len(s.marks)-1].total >= markBytes {
			s.mark()
		}
	}
}

// mark adds a mark at the log's end. It drops the older half of the marks if there are too
// many.
func (s *sizes) mark() {
	if len(s.marks) == maxMarks {
		s.marks = s.marks[:copy(s.marks, s.marks[maxMarks/2:])]
	}
	s.marks = append(s.marks, mark{index: s.last, total: s.total})
}

// deleted is called after a truncation. At the log's start there is nothing to do,
// because the estimate is only used as a bound. At its end the marks are removed.
func (s *sizes) deleted(first, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last < s.last || first > s.last {
		return
	}
	s.last = first - 1
	keep := len(s.marks)
	for keep > 0 && s.marks[keep-1].index > s.last {
		keep--
	}
	s.marks = s.marks[:keep]
	if keep == 0 {
		s.restart()
	}
}

// restart discards the marks before the log's present end.
func (s *sizes) restart() { s.marks = append(s.marks[:0], mark{index: s.last, total: s.total}) }

func (s *sizes) entriesFor(bytes int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.marks) - 1; i >= 0; i-- {
		if m := s.marks[i]; s.total-m.total >= bytes {
			return max(s.last-m.index, 1)
		}
	}
	oldest := s.marks[0]
	rest := float64(bytes-(s.total-oldest.total)) / s.old
	return max(s.last-oldest.index+uint64(math.Ceil(rest)), 1)
}
