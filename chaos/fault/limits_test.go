//go:build linux

package fault

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryGroupHoldsAndFreesProcesses(t *testing.T) {
	g, err := newMemoryGroup("test")
	if err != nil {
		t.Skipf("SKIPPED, no memory was limited: %v", err)
	}
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	inGroup := func() bool {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
		require.NoError(t, err)
		return strings.Contains(string(data), strings.TrimPrefix(g.dir, memoryHierarchy))
	}
	require.NoError(t, g.add(cmd.Process.Pid))
	require.True(t, inGroup())
	require.NoError(t, g.close())
	require.False(t, inGroup())
	require.NoDirExists(t, g.dir)
}

func TestMemoryGroupEndsWhatNeedsMore(t *testing.T) {
	g, err := newMemoryGroup("test-full")
	if err != nil {
		t.Skipf("SKIPPED, no memory was limited: %v", err)
	}
	// It begins to allocate when its input ends.
	cmd := exec.Command("sh", "-c", "read x; exec tail /dev/zero")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, g.add(cmd.Process.Pid))
	require.NoError(t, in.Close())
	require.ErrorContains(t, cmd.Wait(), "killed")
	require.NoError(t, g.close())
}

func TestFilesOfAProcess(t *testing.T) {
	e := newEnv(t, 1)
	n := e.Cluster.Nodes()[0]
	before, open, err := files(n.PID())
	require.NoError(t, err)
	require.Positive(t, open)
	require.Greater(t, before.Cur, uint64(open))
	require.Error(t, gone(n, os.ErrProcessDone), "it runs")
	require.NoError(t, n.Kill())
	require.NoError(t, gone(n, os.ErrProcessDone), "a node that has ended has no limits")
}

func TestNewcomersHaveNewNumbers(t *testing.T) {
	e := newEnv(t, 1)
	require.Zero(t, lastNewcomer(e.Cluster.Nodes()))
	_, err := e.Cluster.Add(newcomers + "7")
	require.NoError(t, err)
	require.Equal(t, 7, lastNewcomer(e.Cluster.Nodes()))
}
