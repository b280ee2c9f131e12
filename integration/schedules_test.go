package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// everySecond makes a schedule of every second and waits for its first run.
func everySecond(t *testing.T, c *cluster, cl *client.Client, name string, change func(*client.Schedule)) {
	s := client.Schedule{Spec: "* * * * * *", Job: client.ScheduledJob{Topic: name, Body: client.Text("{{planned_ms}}")}}
	change(&s)
	_, err := cl.Schedules().Put(t.Context(), name, s, 0)
	require.NoError(t, err)
	untilStarted(t, c, cl, name, 1)
}

func untilStarted(t *testing.T, c *cluster, cl *client.Client, name string, n uint64) {
	c.until(func() error {
		s, err := cl.Schedules().Get(t.Context(), name)
		if err == nil && s.Counts.Started < n {
			err = fmt.Errorf("%s has had %d runs of %d", name, s.Counts.Started, n)
		}
		return err
	})
}

// takeRuns pauses a schedule and gives the planned instants of all its jobs.
func takeRuns(t *testing.T, cl *client.Client, name string) (planned map[time.Time]int, info client.ScheduleInfo) {
	ctx := t.Context()
	require.NoError(t, cl.Schedules().Pause(ctx, name))
	planned = map[time.Time]int{}
	for {
		jobs, err := cl.Reserve(ctx, client.ReserveOptions{Topics: []string{name}, Max: 1000})
		require.NoError(t, err)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			at, err := time.Parse(time.RFC3339, strings.TrimPrefix(j.ID, name+"@"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(at.UnixMilli()), string(j.Bytes()))
			planned[at]++
			require.NoError(t, cl.Finish(ctx, j.Ref()))
		}
	}
	info, err := cl.Schedules().Get(ctx, name)
	require.NoError(t, err)
	return planned, info
}

// span is the first and the last instant.
func span(planned map[time.Time]int) (first, last time.Time) {
	for at := range planned {
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

func TestEverySecondHasExactlyOneJobWhileLeadersAreKilled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	cl, err := client.New(c.addrs())
	require.NoError(t, err)
	defer cl.Close()
	everySecond(t, c, cl, "tick", func(s *client.Schedule) { s.MissedAfter.Duration = time.Minute })
	for range 2 {
		s, err := cl.Schedules().Get(t.Context(), "tick")
		require.NoError(t, err)
		untilStarted(t, c, cl, "tick", s.Counts.Started+3)
		victim := c.leader()
		require.NoError(t, victim.Kill())
		require.NotEqual(t, victim, c.leader())
		untilStarted(t, c, cl, "tick", s.Counts.Started+6)
		c.start(victim)
	}
	planned, info := takeRuns(t, cl, "tick")
	first, last := span(planned)
	for at := first; !at.After(last); at = at.Add(time.Second) {
		require.Equal(t, 1, planned[at], "jobs for %s", at)
	}
	require.EqualValues(t, len(planned), info.Counts.Started)
	require.Zero(t, info.Counts.Missed)
	t.Logf("%d runs", len(planned))
	c.requireEqualDigests(c.leader(), 3)
}

// All nodes are down for some seconds: what becomes of the runs of that time is
// what each schedule says.
func TestRunsThatAreMissedWhileAllNodesAreDown(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	cl, err := client.New(c.addrs())
	require.NoError(t, err)
	defer cl.Close()
	const late = 500 * time.Millisecond
	policies := map[string]int{"skip": 0, "one": 1, "all": 3}
	for policy, kept := range policies {
		everySecond(t, c, cl, policy, func(s *client.Schedule) {
			s.Missed, s.MissedAfter.Duration = policy, late
			if policy == "all" {
				s.MissedMax = kept
			}
		})
	}
	c.kill(c.Nodes()...)
	down := time.Now()
	c.until(func() error {
		if time.Since(down) < 6*time.Second {
			return fmt.Errorf("the nodes are to be down for a while")
		}
		return nil
	})
	c.start(c.Nodes()...)
	for policy, kept := range policies {
		t.Run(policy, func(t *testing.T) {
			missed := untilMissed(t, c, cl, policy, 2)
			s, err := cl.Schedules().Get(t.Context(), policy)
			require.NoError(t, err)
			untilStarted(t, c, cl, policy, s.Counts.Started+1) // so that none is missed behind the last job
			planned, info := takeRuns(t, cl, policy)
			first, last := span(planned)
			require.EqualValues(t, len(planned), info.Counts.Started)
			require.EqualValues(t, last.Sub(first)/time.Second+1, info.Counts.Started+info.Counts.Missed, "each second is a job or counted as missed")
			// What was started in the very step that counted the missed ones.
			runs, err := cl.Schedules().Runs(t.Context(), policy)
			require.NoError(t, err)
			var batch []client.PastRun
			for _, r := range runs {
				if r.Outcome == "started" && r.At.Equal(missed.At) {
					batch = append(batch, r)
				}
			}
			require.GreaterOrEqual(t, len(batch), kept)
			require.LessOrEqual(t, len(batch), kept+1, "those made good, and one in time at most")
			for i, r := range batch { // the latest first
				require.Equal(t, missed.PlannedAt.Add(time.Duration(len(batch)-i)*time.Second), r.PlannedAt)
			}
		})
	}
	c.requireEqualDigests(c.leader(), 3)
}

// untilMissed waits for a batch of missed runs of at least n.
func untilMissed(t *testing.T, c *cluster, cl *client.Client, name string, n uint64) (missed client.PastRun) {
	c.until(func() error {
		runs, err := cl.Schedules().Runs(t.Context(), name)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Outcome == "missed" && r.Count >= n {
				missed = r
				return nil
			}
		}
		return fmt.Errorf("%s has missed nothing so far: %+v", name, runs)
	})
	return missed
}

// The leader computes the next run in an entry of its own. Who has put a schedule must not see it
// without: that would mean that no run is left.
func TestAScheduleHasItsNextRunWhenItsPutReturns(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	cl, err := client.New(c.addrs())
	require.NoError(t, err)
	defer cl.Close()
	for i := range 30 {
		name := fmt.Sprint("s", i%10)
		planned := func() {
			s, err := cl.Schedules().Get(t.Context(), name)
			require.NoError(t, err)
			require.False(t, s.NextAt.IsZero())
		}
		_, err := cl.Schedules().Put(t.Context(), name, client.Schedule{Spec: fmt.Sprintf("@every %dh", i+1), Job: client.ScheduledJob{Topic: "t", Body: client.Text("x")}}, 0)
		require.NoError(t, err)
		planned()
		require.NoError(t, cl.Schedules().Pause(t.Context(), name))
		require.NoError(t, cl.Schedules().Resume(t.Context(), name))
		planned()
	}
}
