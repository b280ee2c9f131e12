package fsm

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// scheduleTimes has, earliest first, the instants at which the leader must fire or plan
// schedules: the next planned instant, or atOnce for a schedule without one.
type scheduleTimes struct {
	heap []*scheduleTime
	at   map[string]*scheduleTime
}

type scheduleTime struct {
	name     string
	next     int64
	position int
}

func (h *scheduleTimes) Len() int { return len(h.heap) }

func (h *scheduleTimes) Less(i, j int) bool { return h.heap[i].compare(h.heap[j]) < 0 }

func (h *scheduleTimes) Swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].position, h.heap[j].position = i, j
}

func (h *scheduleTimes) Push(x any) {
	t := x.(*scheduleTime)
	t.position = len(h.heap)
	h.heap = append(h.heap, t)
}

func (h *scheduleTimes) Pop() any {
	last := h.heap[len(h.heap)-1]
	h.heap[len(h.heap)-1] = nil
	h.heap = h.heap[:len(h.heap)-1]
	return last
}

func (t *scheduleTime) compare(u *scheduleTime) int {
	return cmp.Or(cmp.Compare(t.next, u.next), strings.Compare(t.name, u.name))
}

// atOnce is the instant of work that is due now: a schedule without a planned instant,
// ready jobs that are missing from the expiring list.
const atOnce = 1

// set adds or updates a schedule; a nil state removes it.
func (h *scheduleTimes) set(name string, st *jobpb.ScheduleState) {
	next := st.GetNextMs()
	if st.GetUnplanned() {
		next = atOnce
	}
	t := h.at[name]
	switch {
	case t == nil && next == 0:
	case t == nil:
		if h.at == nil {
			h.at = make(map[string]*scheduleTime)
		}
		t = &scheduleTime{name: strings.Clone(name), next: next}
		h.at[t.name] = t
		heap.Push(h, t)
	case next == 0:
		heap.Remove(h, t.position)
		delete(h.at, name)
	default:
		t.next = next
		heap.Fix(h, t.position)
	}
}

// earliest returns the first of the instants; 0: none.
func (h *scheduleTimes) earliest() int64 {
	if len(h.heap) == 0 {
		return 0
	}
	return h.heap[0].next
}

// due returns up to max schedules whose instant has come, earliest first.
func (h *scheduleTimes) due(nowMS int64, max int) []string {
	var found []*scheduleTime
	var walk func(i int)
	walk = func(i int) {
		if i >= len(h.heap) || h.heap[i].next > nowMS {
			return // its children are not earlier
		}
		found = append(found, h.heap[i])
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	slices.SortFunc(found, (*scheduleTime).compare)
	var names []string
	for _, t := range found[:min(len(found), max)] {
		names = append(names, t.name)
	}
	return names
}

// NextSchedule returns the instant, in Unix milliseconds, at which the leader must next
// fire or plan a schedule; 0: none.
func (m *Machine) NextSchedule() int64 { return m.nextSchedule.Load() }

// DueSchedules returns up to max schedules whose instant has come, earliest first.
func (m *Machine) DueSchedules(nowMS int64, max int) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.schedules.due(nowMS, max)
}

// loadSchedules reads when each schedule is due and counts the schedules.
func loadSchedules(db *pebble.DB) (times scheduleTimes, count int, err error) {
	err = record.Scan(db, []byte{record.SpaceSchedule, record.ScheduleState}, []byte{record.SpaceSchedule, record.ScheduleState + 1}, func(key, value []byte) error {
		var st jobpb.ScheduleState
		if err := record.DecodeSchedule(value, &st); err != nil {
			return fmt.Errorf("schedule %q: %w", key[2:], err)
		}
		times.set(string(key[2:]), &st)
		count++
		return nil
	})
	return times, count, err
}
