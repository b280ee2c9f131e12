//go:build linux

package disk_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/disk"
)

// childVariable makes the test binary a process that mounts a disk in the
// directory it names and waits to be killed.
const childVariable = "DISK_TEST_MOUNT_IN"

func mountAndWait() {
	if _, err := disk.Mount(os.Getenv(childVariable)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("mounted")
	select {}
}

func TestMountsOfADeadProcessAreRemovedAndOthersAreNot(t *testing.T) {
	mine := mount(t)
	child := exec.Command(os.Args[0])
	dir := t.TempDir()
	child.Env = append(os.Environ(), childVariable+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "mounted\n", line)

	_, err = disk.RemoveStale()
	require.NoError(t, err)
	require.Contains(t, mountTable(t), dir, "its process lives")
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Contains(t, mountTable(t), dir, "a kill leaves the mount behind")

	removed, err := disk.RemoveStale()
	require.NoError(t, err)
	require.Positive(t, removed)
	require.NotContains(t, mountTable(t), dir)
	require.Contains(t, mountTable(t), mine.Path())
}

func mountTable(t *testing.T) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return strings.TrimSpace(string(data))
}
