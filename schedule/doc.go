// Package schedule works out when recurring jobs run: cron expressions and fixed
// intervals, in a time zone, with what daylight-saving time does to them
// (timetable.go), and what is to be done with a schedule whose instant has come
// (plan.go).
//
// All of it are functions of what they are given; nothing here reads a clock.
// Time-zone tables are read: the ones of the system, else those that are built
// in. Two nodes may have different tables, so only the leader's answer enters the
// log, and the state machine works nothing out by itself.
//
// The cron parser is only ever asked about a clock without daylight-saving time:
// wall-clock time written as if it were UTC. What a gap or a repeated hour means is
// decided here (wall.go), so it is the same whatever a parser thinks of it.
package schedule
