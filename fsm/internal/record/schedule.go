package record

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
	ScheduleVersion = 1

	ScheduleDef   = 'd'
	ScheduleState = 's'
)

func AppendScheduleKey(b []byte, part byte, name string) []byte {
	b = append(b, SpaceSchedule, part)
	return append(b, name...)
}

// EncodeSchedule encodes a definition or a state.
func EncodeSchedule(m interface{ MarshalVT() ([]byte, error) }) ([]byte, error) {
	b, err := m.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode a schedule: %w", err)
	}
	return append([]byte{ScheduleVersion}, b...), nil
}

func DecodeSchedule(value []byte, m interface{ UnmarshalVTUnsafe([]byte) error }) error {
	if err := checkVersion("schedule record", value, ScheduleVersion); err != nil {
		return err
	}
	if err := m.UnmarshalVTUnsafe(bytes.Clone(value[1:])); err != nil {
		return fmt.Errorf("schedule record: %w", err)
	}
	return nil
}

// ReadSchedule reads both records; nil: there is no such schedule.
func ReadSchedule(r pebble.Reader, name string) (*jobpb.ScheduleInfo, error) {
	info := &jobpb.ScheduleInfo{}
	err := ReadKey(r, AppendScheduleKey(nil, ScheduleState, name), func(value []byte) error {
		info.Name, info.State = strings.Clone(name), new(jobpb.ScheduleState)
		return DecodeSchedule(value, info.State)
	})
	if err != nil || info.State == nil {
		return nil, err
	}
	err = ReadKey(r, AppendScheduleKey(nil, ScheduleDef, name), func(value []byte) error {
		info.Schedule = new(jobpb.Schedule)
		return DecodeSchedule(value, info.Schedule)
	})
	if err == nil && info.Schedule == nil {
		err = fmt.Errorf("schedule %q has a state but no definition", name)
	}
	return info, err
}

// EachScheduleState is Scan of the states of all schedules.
func EachScheduleState(r pebble.Reader, f func(key, value []byte) error) error {
	return Scan(r, []byte{SpaceSchedule, ScheduleState}, []byte{SpaceSchedule, ScheduleState + 1}, f)
}
