//go:build linux

package disk

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Available returns an error if this machine cannot have a Disk.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("faulty disks need root, to mount")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("faulty disks need FUSE: %w", err)
	}
	return f.Close()
}

// sourcePrefix is the prefix of the source of our mounts in the mount table. The id and the
// start time of the process that serves the mount follow.
const sourcePrefix = "tarry-disk:"

func mountSource() (string, error) {
	started, err := startOf(os.Getpid())
	if err != nil {
		return "", err
	}
	return sourcePrefix + strconv.Itoa(os.Getpid()) + ":" + started, nil
}

// startOf returns the start time of a process, field 22 of /proc/PID/stat, which
// distinguishes processes with the same id.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	const start = 22 - 3
	fields := strings.Fields(rest)
	if len(fields) <= start {
		return "", fmt.Errorf("status %q of process %d has no start time", data, pid)
	}
	return fields[start], nil
}

// RemoveStale unmounts the disks of processes that have ended. It returns their number.
func RemoveStale() (int, error) {
	mounts, err := ourMounts()
	if err != nil {
		return 0, fmt.Errorf("look for stale disks: %w", err)
	}
	var removed int
	var errs []error
	for _, m := range mounts {
		if m.served() {
			continue
		}
		if err := unix.Unmount(m.point, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount the stale disk %s: %w", m.point, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

type mounted struct{ point, source string }

// served reports whether the process of the mount still runs.
func (m mounted) served() bool {
	id, started, _ := strings.Cut(strings.TrimPrefix(m.source, sourcePrefix), ":")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return false
	}
	now, err := startOf(pid)
	return err == nil && now == started
}

// ourMounts reads the mount table: fields, of which the fifth is the mount point, then
// " - ", the type and the source.
func ourMounts() ([]mounted, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []mounted
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		fields, tail := strings.Fields(left), strings.Fields(right)
		if len(fields) < 5 || len(tail) < 2 || !strings.HasPrefix(tail[1], sourcePrefix) {
			continue
		}
		list = append(list, mounted{point: unescape(fields[4]), source: tail[1]})
	}
	return list, lines.Err()
}

// unescape undoes the octal escapes of the mount table.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
