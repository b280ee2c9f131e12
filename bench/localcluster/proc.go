package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of CPU time in /proc; Linux fixes it at 100 a second for
// user space.
const clockTick = 10 * time.Millisecond

// CPU is the user and system time that the current life of the node has used. It
// reads /proc, so it works on Linux only.
func (n *Node) CPU() (time.Duration, error) {
	used, err := CPU(n.PID())
	if err != nil {
		return 0, fmt.Errorf("node %s: %w", n.ID, err)
	}
	return used, nil
}

// CPU is the user and system time that a process has used, on Linux only.
func CPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseCPU(data)
}

// parseCPU reads fields 14 and 15 of /proc/PID/stat. The second field, the
// program's name in parentheses, may hold spaces.
func parseCPU(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	const user, system = 14 - 3, 15 - 3
	if end < 0 || len(fields) <= system {
		return 0, fmt.Errorf("process status %.60q has too few fields", stat)
	}
	u, err1 := strconv.ParseInt(string(fields[user]), 10, 64)
	s, err2 := strconv.ParseInt(string(fields[system]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("process status has CPU times %q and %q", fields[user], fields[system])
	}
	return time.Duration(u+s) * clockTick, nil
}

// RSS is the resident memory of the node in bytes, on Linux only.
func (n *Node) RSS() (int64, error) {
	used, err := RSS(n.PID())
	if err != nil {
		return 0, fmt.Errorf("node %s: %w", n.ID, err)
	}
	return used, nil
}

// RSS is the resident memory of a process in bytes, on Linux only.
func RSS(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, fmt.Errorf("memory status %.60q has too few fields", data)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory status has %q resident pages", fields[1])
	}
	return pages * int64(os.Getpagesize()), nil
}
