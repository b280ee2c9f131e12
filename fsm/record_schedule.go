package fsm

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// A schedule is two records, each a version byte and a message: its definition, written
// when it changes, and its state, written with every run.
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
	newDef bool // def has changed and must be written
	gone   bool
}

func appendScheduleKey(b []byte, part byte, name string) []byte {
	b = append(b, spaceSchedule, part)
	return append(b, name...)
}

// schedule returns a schedule; nil: there is none.
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

// touchSchedule marks a schedule as changed.
func (x *tx) touchSchedule(s *schedule) {
	if x.schedules == nil {
		x.schedules = make(map[string]*schedule)
	}
	x.schedules[s.name] = s
}

// writeSchedules adds the changed schedules to the batch. The keys differ, so their order
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
		err = fmt.Errorf("schedule %q has a state but no definition", name)
	}
	return info, err
}
