// Package schedule computes when recurring jobs run: cron expressions and fixed
// intervals, in a time zone, across changes of daylight-saving time (timetable.go). It
// also decides which runs of a due schedule start and which are missed (plan.go).
//
// Nothing here reads a clock. Time-zone tables come from the system, or else from the
// binary. Two nodes may have different tables, so only the leader's results enter the
// log, and the state machine computes no times of its own.
//
// The cron parser works on wall-clock time written as if it were UTC, so it never sees
// daylight-saving time. wall.go decides what a gap or a repeated hour means, whatever the
// parser would do.
package schedule
