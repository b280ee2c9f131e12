package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/client"
	"tarry/job"
)

// standbyStatus is the answer of GET /v1/cluster/standby.
type standbyStatus struct {
	Mode         string
	Index        uint64
	PrimaryIndex uint64     `json:"primary_index"`
	LagEntries   uint64     `json:"lag_entries"`
	LagSeconds   float64    `json:"lag_seconds"`
	CaughtUpAt   *time.Time `json:"caught_up_at"`
	Connected    bool
	Problem      string
	Reseed       bool
}

func (c *cluster) standby(n *localcluster.Node) (s standbyStatus, err error) {
	err = c.Get(c.t.Context(), n, "/v1/cluster/standby", &s)
	return s, err
}

// awaitStandby waits until a status passes.
func (c *cluster) awaitStandby(what string, passes func(s *standbyStatus) bool) (s standbyStatus) {
	c.t.Helper()
	c.until(func() (err error) {
		for _, n := range c.Nodes() {
			if !n.Running() {
				continue
			}
			if s, err = c.standby(n); err == nil && passes(&s) {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v, %w", what, s, err)
	})
	return s
}

// startStandby makes a standby of three nodes from a backup of c, which is made now.
func (c *cluster) startStandby() *cluster {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "seed.backup")
	c.tarry("backup", "--out", file)
	b := newCluster(c.t, 3, "--follow", "http://"+strings.Join(c.addrs(), ",http://"))
	nodes := b.Nodes()
	c.tarry("restore", file, "--standby", "--data-dir", nodes[0].DataDir(), "--node-id", nodes[0].ID)
	b.start(nodes...)
	for _, n := range nodes { // one that does not know yet who votes would not elect another leader
		b.waitVoters(n, "n1", "n2", "n3")
	}
	return b
}

// requireSameJobs waits until a standby has all of its primary's log, and compares all jobs.
func (c *cluster) requireSameJobs(primary *cluster) {
	c.t.Helper()
	c.until(func() error {
		last := c.awaitStandby("caught up", func(s *standbyStatus) bool { return s.Connected && s.LagEntries == 0 })
		want, err := allJobs(c.t.Context(), primary.addrs())
		if err != nil {
			return err
		}
		got, err := allJobs(c.t.Context(), c.addrs())
		if err != nil {
			return err
		}
		for id := range want {
			if want[id] != got[id] {
				return fmt.Errorf("job %s at %d: want %s, got %s", id, last.Index, want[id], got[id])
			}
		}
		if len(want) != len(got) {
			return fmt.Errorf("want %d jobs, got %d", len(want), len(got))
		}
		return nil
	})
}

// allJobs describes all jobs, by id.
func allJobs(ctx context.Context, addrs []string) (map[string]string, error) {
	q, err := client.New(addrs)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	found := map[string]string{}
	for t, err := range q.Topics().List(ctx, client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		for _, state := range []client.State{client.StateDelayed, client.StateReady, client.StateReserved, client.StateDead} {
			for j, err := range q.Jobs(ctx, client.ListOptions{Topic: t.Name, State: state, Page: 1000}) {
				if err != nil {
					return nil, err
				}
				found[j.ID] = fmt.Sprintf("%s in %s, due %v, attempts %d, revision %d", j.State, j.Topic, j.DueAt, j.Attempts, j.Revision)
			}
		}
	}
	return found, nil
}

// timedAdder adds jobs, and keeps when each was acknowledged.
type timedAdder struct {
	mu    sync.Mutex
	acked map[string]time.Time
}

func (c *cluster) addTimed(ctx context.Context, workers int) (a *timedAdder, wait func()) {
	a = &timedAdder{acked: map[string]time.Time{}}
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("timed-%d-%d", w, i)
				node := c.Nodes()[i%len(c.Nodes())]
				if c.Post(ctx, node, "/v1/jobs", object{"topic": "timed", "id": id, "delay": 3600, "body": id}, new(object)) == nil {
					a.mu.Lock()
					a.acked[id] = time.Now()
					a.mu.Unlock()
				}
			}
		})
	}
	return a, work.Wait
}

// olderThan counts the jobs that were acknowledged at least so long ago.
func (a *timedAdder) olderThan(age time.Duration) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.acked {
		if time.Since(at) >= age {
			n++
		}
	}
	return n
}

// A standby follows a primary under load while leaders of both are killed, has the same jobs when
// the load ends, refuses what would change it, and takes over when the primary is lost: with all
// that was acknowledged before the instant that it reports.
func TestAStandbyFollowsAndTakesOver(t *testing.T) {
	t.Parallel()
	primary := startCluster(t, 3)
	primary.waitVersion(job.MaxVersion)
	l := startLoad(t, primary.addrs())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := primary.addJobs(2)
	primary.until(atLeast(200, func() int { return len(before.acknowledged()) }))
	standby := primary.startStandby()
	standby.awaitStandby("following", func(s *standbyStatus) bool { return s.Connected })

	standby.killLeader()
	more := len(before.acknowledged())
	primary.killLeader()
	primary.until(atLeast(more+200, func() int { return len(before.acknowledged()) }))
	standby.awaitStandby("following again", func(s *standbyStatus) bool { return s.Connected })
	before.end()
	l.halt()
	requireRefused(t, standby)
	standby.requireSameJobs(primary)
	standby.requireEqualDigests(standby.Nodes()[1], 3)

	timed, wait := primary.addTimed(ctx, 3)
	primary.until(atLeast(300, func() int { return timed.olderThan(2 * clockMargin) }))
	primary.kill(primary.Nodes()...)
	stop()
	wait()
	standby.awaitStandby("the loss of the primary", func(s *standbyStatus) bool { return !s.Connected && s.Problem != "" })
	promoteAndCompare(t, standby, timed)

	standby.requireJobs(standby.Nodes()[2], before.acknowledged())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(standby.tarry("explain", "after"), standby.tarry("stats"), standby.tarry("topics"), standby.tarry("cluster", "clock"))
			t.Log(standby.tarry("history", "after"))
		}
	})
	standby.tarry("add", "--topic", "new", "--id", "after", "--delay", "1s", "--ttr", "3s", "x")
	require.Equal(t, "after", reserveOne(t, standby.Nodes()[1].HTTP, "new", 20)["id"])
	standby.killLeader()
	standby.requireEqualDigests(standby.Nodes()[0], 3)
}

func atLeast(want int, count func() int) func() error {
	return func() error {
		if n := count(); n < want {
			return fmt.Errorf("%d jobs are added, want %d", n, want)
		}
		return nil
	}
}

func requireRefused(t *testing.T, standby *cluster) {
	for _, n := range standby.Nodes() {
		for path, body := range map[string]object{
			"/v1/jobs": {"topic": "t", "body": 1}, "/v1/reserve": {"topics": []string{"mail"}}, "/v1/jobs/none/kick": {},
		} {
			out, err := exec.CommandContext(t.Context(), "curl", "-s", "-d", text(t, body), "http://"+n.HTTP+path).Output()
			require.NoError(t, err)
			var refused struct{ Code, Outcome string }
			require.NoError(t, json.Unmarshal(out, &refused), "%s", out)
			require.Equal(t, [2]string{"standby", "not_applied"}, [2]string{refused.Code, refused.Outcome}, "%s: %s", path, out)
		}
	}
}

func text(t *testing.T, body object) string {
	b, err := json.Marshal(body)
	require.NoError(t, err)
	return string(b)
}

// clockMargin is for the time that the fastest message of the primary took, which the standby
// cannot know.
const clockMargin = time.Second

// promoteAndCompare promotes a standby, and checks that nothing is missing of what it says that it
// has.
func promoteAndCompare(t *testing.T, standby *cluster, timed *timedAdder) {
	require.Contains(t, standby.tarry("standby", "promote", "--dry-run"), "Lost: ")
	var s standbyStatus
	require.NoError(t, json.Unmarshal([]byte(standby.tarry("standby", "promote", "--yes", "--json")), &s))
	require.NotNil(t, s.CaughtUpAt)
	has, err := allJobs(t.Context(), standby.addrs())
	require.NoError(t, err)
	lost, checked := 0, 0
	for id, at := range timed.acked {
		_, found := has[id]
		if !found {
			lost++
		}
		if at.Before(s.CaughtUpAt.Add(-clockMargin)) {
			checked++
			require.True(t, found, "%s was acknowledged at %v, and the standby had everything at %v", id, at, s.CaughtUpAt)
		}
	}
	require.NotZero(t, checked)
	t.Logf("lost %d of %d acknowledged jobs; reported: %d entries, %.3f s; %d jobs were acknowledged before that", lost, len(timed.acked), s.LagEntries, s.LagSeconds, checked)
	require.Contains(t, standby.tarry("standby", "status"), "mode:      promoted")
	second := exec.CommandContext(t.Context(), binary, "standby", "promote", "--yes", "--addr", standby.Nodes()[0].HTTP)
	out, err := second.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "promoted already")
}
