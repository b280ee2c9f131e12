package schedule

import "time"

// count returns how many runs there are from one time to before another. It does not
// iterate over them: a schedule of every second has 86,400 a day, and with ten thousand
// such schedules that took minutes after an outage of days.
func (t *Timetable) count(from, to int64) uint64 {
	if t.every == 0 {
		return t.countBlocks(from, to, []int64{24 * hourMS, hourMS, minuteMS})
	}
	first := t.Next(from - 1)
	last := min(to-1, lastMS)
	if t.endMS != 0 {
		last = min(last, t.endMS)
	}
	if first == 0 || first > last {
		return 0
	}
	return uint64((last-first)/t.every) + 1
}

const (
	minuteMS = 60_000
	hourMS   = 60 * minuteMS
)

// countBlocks counts by blocks of the clock: days, and in them hours and minutes. An
// expression names as many times in each day as in any other in which it names one, and
// likewise in each hour and minute. So one block of each size is counted by smaller ones,
// and for the others it suffices to know whether they have a run. Partial blocks, and
// those around a change of the zone's offset, are counted by smaller ones too.
func (t *Timetable) countBlocks(from, to int64, sizes []int64) (n uint64) {
	if len(sizes) == 0 {
		for at := t.Next(from - 1); at != 0 && at < to; at = t.Next(at) {
			n++
		}
		return n
	}
	var whole uint64 // runs in a block; 0: not known yet
	for at := t.Next(from - 1); at != 0 && at < to; {
		start, end := t.block(at, sizes[0])
		switch {
		case start < from || end > to || !t.regular(start, end):
			end = min(end, to)
			n += t.countBlocks(at, end, sizes[1:])
		case whole == 0:
			whole = t.countBlocks(start, end, sizes[1:])
			n += whole
		default:
			n += whole
		}
		from, at = end, t.Next(end-1)
	}
	return n
}

// block returns the part of the wall clock, of a size that divides a day, that contains
// at, if the offset at that time holds for all of it.
func (t *Timetable) block(at, size int64) (start, end int64) {
	shown := at + int64(t.OffsetOf(at))*1000
	start = at - (shown%size+size)%size
	return start, start + size
}

// regular reports whether the expression alone determines the runs from start to before
// end: no change of the offset, no times that occur twice or are skipped because of one,
// and not the schedule's start or end.
func (t *Timetable) regular(start, end int64) bool {
	if start < t.startMS || end > lastMS || t.endMS != 0 && end > t.endMS {
		return false
	}
	at := time.UnixMilli(start).In(t.loc)
	since, until := bounds(at)
	return (since.IsZero() || since.Before(at) && !onClock(at).Before(shownBefore(since))) &&
		(until.IsZero() || !until.Before(time.UnixMilli(end)))
}
