package fsm

import (
	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// Schedule returns a schedule by its name.
func (v *View) Schedule(name string) (s *jobpb.ScheduleInfo, found bool, err error) {
	err = v.read(func(r pebble.Reader) error { s, err = readSchedule(r, name); return err })
	return s, s != nil && err == nil, err
}

// Schedules returns up to max schedules in the order of their names, starting after the
// name given. The page ends early once it has more than job.MaxScheduleListBytes.
func (v *View) Schedules(after string, max int) (list []*jobpb.ScheduleInfo, err error) {
	if max <= 0 {
		return nil, nil
	}
	lower := appendScheduleKey(nil, scheduleState, after)
	if after != "" {
		lower = append(lower, 0)
	}
	size := 0
	err = v.read(func(r pebble.Reader) error {
		return v.scan(r, lower, []byte{spaceSchedule, scheduleState + 1}, func(key, _ []byte) error {
			s, err := readSchedule(r, string(key[2:]))
			if err != nil {
				return err
			}
			list = append(list, s)
			if size += s.Schedule.SizeVT() + s.State.SizeVT(); len(list) == max || size > job.MaxScheduleListBytes {
				return errEnough
			}
			return nil
		})
	})
	return list, err
}
