package fsm

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// A schedule is two records: what its owner says of it, written when that changes,
// and what became of it, written with every run. Each is a version and a message.
const (
	scheduleVersion = 1

	scheduleDef   = 'd'
	scheduleState = 's'
)

// schedule is one schedule in the running transaction.
type schedule struct {
	name   string
	def    *jobpb.Schedule
	state  *jobpb.ScheduleState
	newDef bool // def is to be written
	gone   bool
}

func appendScheduleKey(b []byte, part byte, name string) []byte {
	b = append(b, spaceSchedule, part)
	return append(b, name...)
}

// schedule finds a schedule; nil: there is none.
func (x *tx) schedule(name string) (*schedule, error) {
	if s, ok := x.schedules[name]; ok {
		if s.gone {
			return nil, nil
		}
		return s, nil
	}
	info, err := readSchedule(x.db, name)
	if info == nil || err != nil {
		return nil, err
	}
	return &schedule{name: info.Name, def: info.Schedule, state: info.State}, nil
}

// touchSchedule sees to it that a schedule is written.
func (x *tx) touchSchedule(s *schedule) {
	if x.schedules == nil {
		x.schedules = make(map[string]*schedule)
	}
	x.schedules[s.name] = s
}

// writeSchedules adds what changed to the batch. The keys differ, so their order
// makes no difference.
func (x *tx) writeSchedules() error {
	for _, s := range x.schedules {
		key := appendScheduleKey(nil, scheduleDef, s.name)
		stateKey := appendScheduleKey(nil, scheduleState, s.name)
		if s.gone {
			must(x.batch.Delete(key, nil))
			must(x.batch.Delete(stateKey, nil))
			continue
		}
		if s.newDef {
			if err := x.setMessage(key, s.def); err != nil {
				return err
			}
		}
		if err := x.setMessage(stateKey, s.state); err != nil {
			return err
		}
	}
	return nil
}

func (x *tx) setMessage(key []byte, m interface{ MarshalVT() ([]byte, error) }) error {
	b, err := m.MarshalVT()
	if err != nil {
		return fmt.Errorf("encode a schedule: %w", err)
	}
	must(x.batch.Set(key, append([]byte{scheduleVersion}, b...), nil))
	return nil
}

func decodeSchedule(value []byte, m interface{ UnmarshalVTUnsafe([]byte) error }) error {
	if err := checkVersion("schedule record", value, scheduleVersion); err != nil {
		return err
	}
	if err := m.UnmarshalVTUnsafe(bytes.Clone(value[1:])); err != nil {
		return fmt.Errorf("schedule record: %w", err)
	}
	return nil
}

// readSchedule reads both records; nil: there is no such schedule.
func readSchedule(r pebble.Reader, name string) (*jobpb.ScheduleInfo, error) {
	info := &jobpb.ScheduleInfo{}
	err := readKey(r, appendScheduleKey(nil, scheduleState, name), func(value []byte) error {
		info.Name, info.State = strings.Clone(name), new(jobpb.ScheduleState)
		return decodeSchedule(value, info.State)
	})
	if err != nil || info.State == nil {
		return nil, err
	}
	err = readKey(r, appendScheduleKey(nil, scheduleDef, name), func(value []byte) error {
		info.Schedule = new(jobpb.Schedule)
		return decodeSchedule(value, info.Schedule)
	})
	if err == nil && info.Schedule == nil {
		err = fmt.Errorf("schedule %q has a state but no description", name)
	}
	return info, err
}

// scheduleTimes are the instants at which the leader must look after schedules,
// earliest first: the next planned instant, or at once for one that was not worked
// out yet.
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

func (h *scheduleTimes) Less(i, j int) bool { return h.heap[i].before(h.heap[j]) }

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

func (t *scheduleTime) before(u *scheduleTime) bool {
	return cmp.Or(cmp.Compare(t.next, u.next), strings.Compare(t.name, u.name)) < 0
}

// atOnce is when work is due that needs no instant to come: a schedule without a
// planned one, ready jobs to be listed as expiring.
const atOnce = 1

// set gives a schedule its place; a nil state removes it.
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

// earliest is the first of the instants; 0: none.
func (h *scheduleTimes) earliest() int64 {
	if len(h.heap) == 0 {
		return 0
	}
	return h.heap[0].next
}

// due lists up to max schedules whose instant has come, earliest first.
func (h *scheduleTimes) due(nowMS int64, max int) []string {
	var found []*scheduleTime
	var walk func(i int)
	walk = func(i int) {
		if i >= len(h.heap) || h.heap[i].next > nowMS {
			return // and so are those below
		}
		found = append(found, h.heap[i])
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	slices.SortFunc(found, func(a, b *scheduleTime) int {
		return cmp.Or(cmp.Compare(a.next, b.next), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, t := range found[:min(len(found), max)] {
		names = append(names, t.name)
	}
	return names
}

// NextSchedule is the instant, in Unix milliseconds, at which the leader must next
// look after a schedule; 0: none.
func (m *Machine) NextSchedule() int64 { return m.nextSchedule.Load() }

// DueSchedules lists up to max schedules whose instant has come, earliest first.
func (m *Machine) DueSchedules(nowMS int64, max int) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.schedules.due(nowMS, max)
}

// loadSchedules reads when each schedule is due, and counts them.
func loadSchedules(db *pebble.DB) (times scheduleTimes, count int, err error) {
	err = scan(db, []byte{spaceSchedule, scheduleState}, []byte{spaceSchedule, scheduleState + 1}, func(key, value []byte) error {
		var st jobpb.ScheduleState
		if err := decodeSchedule(value, &st); err != nil {
			return fmt.Errorf("schedule %q: %w", key[2:], err)
		}
		times.set(string(key[2:]), &st)
		count++
		return nil
	})
	return times, count, err
}
