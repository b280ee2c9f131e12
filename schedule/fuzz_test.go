package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// A spec is refused with a short message, or its instants grow, are between start and end,
// and are found again from just before each.
func FuzzSpecs(f *testing.F) {
	for _, s := range []string{
		"* * * * *", "*/7 1-5,9 * 2 MON#1", "0 0 L * *", "0 0 15W * 7", "59 59 23 31 12 *", "@hourly", "@every 90s", "@every 9999999h",
		"0 0 30 2 *", "CRON_TZ=UTC 0 0 * * *", "0 0 * * MON-SUN/2", "H H * * *", "? ? * * *", "0 22-2 * * *", "@reboot",
	} {
		f.Add(s, "Europe/Berlin", int64(1_900_000_000_000), int64(0), int64(0))
	}
	f.Add("0 0 * * *", "America/Sao_Paulo", int64(1541300000000), int64(1), int64(1<<50))
	f.Fuzz(func(t *testing.T, spec, zoneName string, after, start, end int64) {
		if after < 0 || after > lastMS || start < 0 || end < 0 || len(spec) > job.MaxSpecBytes {
			return
		}
		table, err := New(&jobpb.Schedule{Spec: spec, Zone: zoneName, StartMs: start, EndMs: end}, after)
		if err != nil {
			require.Equal(t, job.CodeInvalid, job.CodeOf(err))
			require.Less(t, len(err.Error()), 700)
			return
		}
		for range 3 {
			next := table.Next(after)
			if next == 0 {
				return
			}
			require.Greater(t, next, after)
			require.True(t, next >= start && (end == 0 || next <= end) && next <= lastMS)
			require.Equal(t, next, table.Next(next-1))
			after = next
		}
	})
}
