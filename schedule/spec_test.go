package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func specOf(spec string) *jobpb.Schedule { return &jobpb.Schedule{Spec: spec, Zone: "UTC"} }

func TestOtherSpellingsThatCanMeanOneThingOnly(t *testing.T) {
	for spelling, as := range map[string]string{
		"0 9 * * MONDAY":          "0 9 * * MON",
		"0 9 * * monday-Friday":   "0 9 * * MON-FRI",
		"0 9 * * tues,thurs":      "0 9 * * TUE,THU",
		"0 9 * * MONDAY#1":        "0 9 * * MON#1",
		"0 9 * * FRIL":            "0 9 * * FRI#L",
		"0 9 * * FRIDAYL":         "0 9 * * FRI#L",
		"0 9 1 JUNE *":            "0 9 1 JUN *",
		"0 9 1 SEPT-november/2 *": "0 9 1 SEP-NOV/2 *",
		"0 9 25-L * *":            "0 9 25-31 * *",
		"5 0 9 1,25-L JANUARY *":  "5 0 9 1,25-31 JAN *",
	} {
		have, err := New(specOf(spelling), 0)
		require.NoError(t, err, spelling)
		want, err := New(specOf(as), 0)
		require.NoError(t, err, as)
		require.Equal(t, want.List(0, 50), have.List(0, 50), spelling)
		require.NotEmpty(t, have.List(0, 50))
	}
}

func TestEachNameOfAWeekdayAndAMonth(t *testing.T) {
	for i, name := range weekdays {
		for _, spelling := range []string{name, name[:3], strings.ToLower(name[:3])} {
			have, err := New(specOf("0 9 * * "+spelling), 0)
			require.NoError(t, err, spelling)
			require.Equal(t, time.Weekday(i), time.UnixMilli(have.Next(0)).UTC().Weekday(), spelling)
		}
	}
	for i, name := range months {
		for _, spelling := range []string{name, name[:3], strings.ToLower(name[:3])} {
			have, err := New(specOf("0 9 1 "+spelling+" *"), 0)
			require.NoError(t, err, spelling)
			require.Equal(t, time.Month(i+1), time.UnixMilli(have.Next(0)).UTC().Month(), spelling)
		}
	}
	_, err := New(specOf("0 9 * * MON-THU"), 0)
	require.NoError(t, err)
}

func TestASpecThatIsRefusedSaysWhatTheFieldTakes(t *testing.T) {
	for spec, says := range map[string]string{
		"0 25 * * *":     "for the hour, at byte 3; it takes 0 to 23, or *",
		"0 9 * * 5L":     "for the day of week, at byte 9; for the last Friday of the month give FRI#L",
		"0 9 * * 0L":     "for the last Sunday of the month give SUN#L",
		"H * * * *":      "for the minute, at byte 1; H is not known here: give a value, and jitter",
		"H/15 * * * *":   "H is not known here",
		"0 9 * * MONTAG": "it takes 0 to 7 or SUN to SAT",
		"0 9 1 SMARCH *": "it takes 1 to 12 or JAN to DEC",
		"0 9 L-40 * *":   "it takes 1 to 31, L for the last day",
		"0 9 x-L * *":    "it takes 1 to 31, L for the last day",
		"a * * * *":      "it takes 0 to 59",
	} {
		_, err := New(specOf(spec), 0)
		require.ErrorContains(t, err, says, spec)
		require.NotContains(t, err.Error(), "strconv", spec)
	}
}

// A step from * beside another day is OR for some programs and AND for others.
func TestDaysThatProgramsTakeForDifferentOnesAreNotAddedAnyMore(t *testing.T) {
	for _, spec := range []string{"0 9 */2 * 1", "0 9 1 * */2", "0 0 9 */2 * MON"} {
		require.ErrorContains(t, Check(specOf(spec), 0), "1-31/2", spec)
		old, err := New(specOf(spec), 0)
		require.NoError(t, err, "one that is stored runs on")
		require.NotEmpty(t, old.List(0, 3))
	}
	for _, spec := range []string{"0 9 1-31/2 * 1", "0 9 */2 * *", "0 9 */2 * ?", "0 9 ? * */2", "0 9 1 * 1", "@daily", "@every 1h"} {
		require.NoError(t, Check(specOf(spec), 0), spec)
	}
}

func TestZonesThatDifferByNodeAreRefused(t *testing.T) {
	for _, name := range []string{"localtime", "posixrules", "Factory", "right/UTC", "posix/UTC", "Local", "", "utc"} {
		err := Check(&jobpb.Schedule{Spec: "@daily", Zone: name}, 0)
		require.ErrorContains(t, err, "such as UTC or Europe/Berlin", name)
		var e *job.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "zone", e.Field)
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT"} {
		require.NoError(t, Check(&jobpb.Schedule{Spec: "@daily", Zone: name}, time.Now().UnixMilli()), name)
	}
}
