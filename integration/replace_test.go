package integration

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/job"
)

// While clients add and consume jobs, a backup replaces the state of three nodes, one of which
// is down. Afterwards all have the jobs of the backup and none of the others, and what is
// acknowledged then is kept.
func TestABackupReplacesTheStateUnderLoad(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.waitVersion(job.MaxVersion)
	for i := range 20 {
		c.tarry("add", "--topic", "kept", "--id", fmt.Sprint("kept-", i), fmt.Sprint(i))
	}
	c.tarry("add", "--topic", "held", "--id", "held", "--ttr", "1h", "x")
	file := filepath.Join(t.TempDir(), "monday.backup")
	c.tarry("backup", "--out", file)
	old := reserveOne(t, c.leader().HTTP, "held", 10)
	load := c.addJobs(4)
	c.until(func() error {
		if n := len(load.acknowledged()); n < 300 {
			return fmt.Errorf("%d jobs are added", n)
		}
		return nil
	})
	require.Contains(t, c.tarry("restore", file, "--replace", "--dry-run", "--addr", c.leader().HTTP), "nothing was done")
	down := c.follower()
	c.kill(down)
	safety := filepath.Join(t.TempDir(), "before.backup")
	t.Log(c.tarry("restore", file, "--replace", "--yes", "--safety-backup", safety, "--addr", c.leader().HTTP))
	load.end()
	require.Contains(t, c.tarry("backup", "verify", safety), "every record was read")
	c.start(down)
	c.requireEqualDigests(c.leader(), 3)

	// Only what was added after the replacement is there beside the backup.
	got := map[string]bool{}
	for len(got) < 20 {
		j := reserveOne(t, down.HTTP, "kept", 20)
		require.NotNil(t, j, "%d of the backup's jobs are handed out", len(got))
		got[fmt.Sprint(j["id"])] = true
		post(t, down.HTTP, fmt.Sprintf("/v1/jobs/%s/finish", j["id"]), object{"token": j["token"]})
	}
	finished := c.Post(t.Context(), c.leader(), "/v1/jobs/held/finish", object{"token": old["token"]}, nil)
	require.ErrorContains(t, finished, "stale_token")
	require.Equal(t, "held", reserveOne(t, c.leader().HTTP, "held", 20)["id"])
	before := load.acknowledged()
	missing := 0
	for id := range before {
		if c.Get(t.Context(), c.leader(), "/v1/jobs/"+id, nil) != nil {
			missing++
		}
	}
	require.GreaterOrEqual(t, missing, 300, "what was acknowledged before is gone")
	c.killLeader()
	c.requireEqualDigests(c.leader(), 3)
}

// makeLeader lets a voter lead.
func (c *cluster) makeLeader(n *localcluster.Node) {
	c.t.Helper()
	c.tarry("cluster", "transfer-leadership", n.ID)
	c.until(func() error {
		if c.leader() != n {
			return fmt.Errorf("%s does not lead yet", n.ID)
		}
		return nil
	})
}

// The leader is killed at each point of a replacement. All nodes have the old state then or the
// new one, and not some this and some that.
func TestALeaderThatIsKilledInAReplacementLeavesOneState(t *testing.T) {
	hooked := filepath.Join(t.TempDir(), "tarry-chaos")
	build := exec.Command("go", "build", "-tags", "chaos", "-o", hooked, "tarry/cmd/tarry")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, point := range []string{"upload", "sending", "before-swap:1", "after-swap:1"} {
		t.Run(point, func(t *testing.T) {
			c := startCluster(t, 3)
			c.waitVersion(job.MaxVersion)
			c.tarry("add", "--topic", "t", "--id", "in-backup", "--delay", "1h", "x")
			if point == "sending" {
				for i := range 200 { // so that it takes a while
					body := make([]byte, 30<<10)
					_, _ = rand.Read(body) // it never fails
					post(t, c.leader().HTTP, "/v1/jobs", object{"topic": "large", "id": fmt.Sprint("large-", i), "delay": 3600, "body": hex.EncodeToString(body)})
				}
			}
			file := filepath.Join(t.TempDir(), "monday.backup")
			c.tarry("backup", "--out", file)
			c.tarry("delete", "in-backup")
			c.tarry("add", "--topic", "t", "--id", "present", "--delay", "1h", "x")
			victim := c.leader()
			if strings.Contains(point, ":") {
				// It comes back with the hook, and leads again.
				c.kill(victim)
				c.leader()
				victim.SetBinary(hooked)
				victim.Setenv("TARRY_HOOK_KILL", point)
				c.start(victim)
				c.waitVoters(victim, "n1", "n2", "n3")
				c.makeLeader(victim)
			}
			send := exec.CommandContext(t.Context(), binary, "restore", file, "--replace", "--yes", "--no-safety-backup", "--addr", victim.HTTP)
			switch point {
			case "upload":
				half, err := os.ReadFile(file)
				require.NoError(t, err)
				read, write, err := os.Pipe()
				require.NoError(t, err)
				send = exec.CommandContext(t.Context(), binary, "restore", "-", "--replace", "--yes", "--no-safety-backup", "--addr", victim.HTTP)
				send.Stdin = read
				require.NoError(t, send.Start())
				_, err = write.Write(half[:len(half)-10])
				require.NoError(t, err)
				c.until(func() error { // it is under way
					if got, err := filepath.Glob(filepath.Join(victim.DataDir(), "shard-0", "fsm", "gen-*.tmp")); len(got) == 0 {
						return fmt.Errorf("nothing is received yet (%v)", err)
					}
					return nil
				})
				c.kill(victim)
				require.NoError(t, write.Close())
				require.Error(t, send.Wait())
			case "sending":
				require.NoError(t, send.Start())
				c.until(func() error {
					out, err := victim.Output()
					if !strings.Contains(out, "a backup replaces the state") {
						return fmt.Errorf("the state is not sent yet (%v)", err)
					}
					return nil
				})
				c.kill(victim)
				require.Error(t, send.Wait())
			default:
				out, err := send.CombinedOutput()
				for strings.Contains(string(out), "this node does not lead") { // it was elected away in between
					c.makeLeader(victim)
					out, err = exec.CommandContext(t.Context(), binary, send.Args[1:]...).CombinedOutput()
				}
				require.Error(t, err, "%s", out)
				t.Logf("%s", out)
				victim.SetBinary(binary)
				victim.Setenv("TARRY_HOOK_KILL", "")
			}
			c.leader() // the others go on
			c.until(func() error {
				if victim.Running() {
					return fmt.Errorf("%s runs", victim.ID)
				}
				return nil
			})
			c.start(victim)
			c.requireEqualDigests(c.leader(), 3)
			has := func(id string) bool { return c.Get(t.Context(), c.leader(), "/v1/jobs/"+id, nil) == nil }
			require.NotEqual(t, has("in-backup"), has("present"), "one of the two states")
			switch point {
			case "upload":
				require.True(t, has("present"), "the old state")
			case "before-swap:1", "after-swap:1":
				require.True(t, has("in-backup"), "the new state: the others have the entry, too")
			}
			c.tarry("add", "--topic", "t", "--id", "after", "x")
			require.Equal(t, "after", reserveOne(t, c.leader().HTTP, "t", 20)["id"])
		})
	}
}
