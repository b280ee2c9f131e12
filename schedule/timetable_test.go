package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func at(t *testing.T, text string) int64 {
	i, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return i.UnixMilli()
}

// runs returns the first n instants after an instant, in the zone's time.
func runs(t *testing.T, s *jobpb.Schedule, after string, n int) []string {
	table, err := New(s, at(t, after))
	require.NoError(t, err)
	var list []string
	for _, ms := range table.List(at(t, after), n) {
		list = append(list, time.UnixMilli(ms).In(table.loc).Format(time.RFC3339))
	}
	return list
}

// The rules of docs/schedules.md for daylight-saving time.
func TestClocksThatAreSetForwardAndBack(t *testing.T) {
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"a skipped time runs at the first instant after", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"skipped times of one day run together, once", "0,15,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:15:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"a repeated time runs the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"asked in the repeated hour, it is over", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z",
			[]string{"2026-10-26T02:30:00+01:00"}},
		{"every hour goes on", "30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		{"every hour leaves nothing out", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-29T04:30:00+02:00"}},
		{"@hourly too", "@hourly", "America/New_York", "2026-11-01T04:30:00Z",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"}},
		{"New York, forward", "15 2 * * *", "America/New_York", "2026-03-07T20:00:00Z",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:15:00-04:00"}},
		{"New York, back", "30 1 * * *", "America/New_York", "2026-10-31T20:00:00Z",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"Lord Howe goes forward by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"Lord Howe goes back by half an hour", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"Lord Howe, every hour", "45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:20:00Z",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-05T02:45:00+10:30"}},
		{"a midnight that does not exist", "@daily", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"a day that does not exist", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
		{"the last day of a leap year", "0 20 * * *", "America/New_York", "2040-12-30T12:00:00Z",
			[]string{"2040-12-30T20:00:00-05:00", "2040-12-31T20:00:00-05:00", "2041-01-01T20:00:00-05:00"}},
		{"an interval knows no clock", "@every 1h30m", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00", "2026-10-25T04:30:00+01:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, runs(t, &jobpb.Schedule{Spec: c.spec, Zone: c.zone}, c.after, len(c.want)))
		})
	}
}

func TestExpressions(t *testing.T) {
	for spec, want := range map[string][]string{
		"*/10 * * * * *":       {"2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"},
		"5 4 * * *":            {"2026-01-01T04:05:00Z", "2026-01-02T04:05:00Z"},
		"0 0 29 2 *":           {"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"},
		"0 0 13 * FRI":         {"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
		"0 9 * * MON-FRI":      {"2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00Z"},
		"0 9 L * *":            {"2026-01-31T09:00:00Z", "2026-02-28T09:00:00Z"},
		"0 9 * * MON#1":        {"2026-01-05T09:00:00Z", "2026-02-02T09:00:00Z"},
		"0 0 * * 7":            {"2026-01-04T00:00:00Z"},
		"@monthly":             {"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		"@every 90s":           {"2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"},
		"@every 1.5s":          {"2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"},
		"0 0 1 1 *":            {"2027-01-01T00:00:00Z"},
		"\t0  12 * jan,feb * ": {"2026-01-01T12:00:00Z"},
	} {
		require.Equal(t, want, runs(t, &jobpb.Schedule{Spec: spec, Zone: "UTC"}, "2026-01-01T00:00:00Z", len(want)), spec)
	}
}

func TestSpecsAndZonesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ spec, zone, says string }{
		{"", "UTC", "spec is \"\" with 0 fields"},
		{"* * * *", "UTC", "4 fields"},
		{"0 0 0 1 1 * 2030", "UTC", "7 fields"},
		{"TZ=UTC * * * * *", "UTC", "goes into the field zone"},
		{"CRON_TZ=Asia/Tokyo 0 0 * * *", "UTC", "goes into the field zone"},
		{"H * * * *", "UTC", "spec has \"H\" for the minute, at byte 1"},
		{"0 25 * * *", "UTC", "spec has \"25\" for the hour, at byte 3"},
		{"0  0 32 * *", "UTC", "spec has \"32\" for the day of month, at byte 6"},
		{"61 0 0 1 1 *", "UTC", "spec has \"61\" for the second, at byte 1"},
		{"0 0 * * FUN", "UTC", "for the day of week"},
		{"@sometimes", "UTC", "@sometimes"},
		{"@every", "UTC", "behind @every"},
		{"@every soon", "UTC", "behind @every"},
		{"@every 10000000000h", "UTC", "of at most 1000000000 s"}, // more than time.Duration holds
		{"@every 10ms", "UTC", "between 1s"},
		{"@every -1h", "UTC", "between 1s"},
		{"@every 1.0001s", "UTC", "whole milliseconds"},
		{"0 0 30 2 *", "UTC", "never comes due"},
		{"* * * * *", "", "zone is \"\""},
		{"* * * * *", "Local", "zone is \"Local\""},
		{"* * * * *", "Europe/Bielefeld", "zone is \"Europe/Bielefeld\""},
		{"* * * * *", "../../etc/passwd", "zone is"},
	} {
		err := Check(&jobpb.Schedule{Spec: c.spec, Zone: c.zone}, at(t, "2026-01-01T00:00:00Z"))
		require.Error(t, err, c.spec)
		require.Equal(t, job.CodeInvalid, job.CodeOf(err))
		require.Contains(t, err.Error(), c.says, c.spec)
	}
}

func TestStartAndEnd(t *testing.T) {
	s := &jobpb.Schedule{Spec: "0 12 * * *", Zone: "UTC", StartMs: at(t, "2026-02-01T12:00:00Z"), EndMs: at(t, "2026-02-02T12:00:00Z")}
	require.Equal(t, []string{"2026-02-01T12:00:00Z", "2026-02-02T12:00:00Z"}, runs(t, s, "2026-01-01T00:00:00Z", 5), "both ends count")
	require.ErrorContains(t, Check(s, at(t, "2026-02-02T12:00:00Z")), "end is 2026-02-02T12:00:00Z")
	s = &jobpb.Schedule{Spec: "@every 1h", Zone: "UTC", StartMs: at(t, "2026-02-01T12:10:00Z")}
	require.Equal(t, []string{"2026-02-01T12:10:00Z", "2026-02-01T13:10:00Z"}, runs(t, s, "2026-01-01T00:00:00Z", 2), "an interval counts from the start")
	require.Equal(t, []string{"2026-02-01T18:10:00Z"}, runs(t, s, "2026-02-01T17:30:00Z", 1))
}

func TestTheLastRun(t *testing.T) {
	for _, c := range []struct{ spec, now, want string }{
		{"30 3 * * *", "2026-05-01T03:30:00Z", "2026-05-01T03:30:00Z"},
		{"30 3 * * *", "2026-05-01T03:29:59Z", "2026-04-30T03:30:00Z"},
		{"* * * * * *", "2026-05-01T03:29:59Z", "2026-05-01T03:29:59Z"},
		{"@yearly", "2026-05-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"0 0 29 2 *", "2026-05-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"@every 6h", "2026-05-01T05:00:00Z", "2026-05-01T00:00:00Z"},
		{"@every 24h", "1970-01-01T05:00:00Z", ""},
	} {
		table, err := New(&jobpb.Schedule{Spec: c.spec, Zone: "UTC"}, 0)
		require.NoError(t, err)
		var got string
		if ms := table.Last(at(t, c.now)); ms != 0 {
			got = time.UnixMilli(ms).UTC().Format(time.RFC3339)
		}
		require.Equal(t, c.want, got, "%s at %s", c.spec, c.now)
	}
}
