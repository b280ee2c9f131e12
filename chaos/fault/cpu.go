package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// period is the kernel's period for CPU quotas, in microseconds.
const period = 100_000

// cpuHierarchy returns the directory of CPU cgroups: that of version 1 if there is one,
// otherwise the tree of version 2.
func cpuHierarchy() (dir string, version int, err error) {
	const one, two = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(one, "cpu.cfs_quota_us")); err == nil {
		return one, 1, nil
	}
	controllers, err := os.ReadFile(filepath.Join(two, "cgroup.subtree_control"))
	if err != nil || !strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " cpu ") {
		return "", 0, errors.New("there is no cgroup hierarchy for the CPU")
	}
	return two, 2, nil
}

// CPUGroups returns an error if CPU cgroups cannot be created here.
func CPUGroups() error {
	if os.Geteuid() != 0 {
		return errors.New("CPU cgroups need root")
	}
	_, _, err := cpuHierarchy()
	return err
}

// cpuGroup limits the processes in it.
type cpuGroup struct{ home, dir string }

// newCPUGroup creates a group with percent of one core.
func newCPUGroup(name string, percent int) (*cpuGroup, error) {
	home, version, err := cpuHierarchy()
	if err != nil {
		return nil, err
	}
	g := &cpuGroup{home: home, dir: filepath.Join(home, fmt.Sprintf("%s-%d", name, os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create a CPU cgroup: %w", err)
	}
	quota := strconv.Itoa(percent * period / 100)
	if version == 1 {
		err = errors.Join(g.write("cpu.cfs_period_us", strconv.Itoa(period)), g.write("cpu.cfs_quota_us", quota))
	} else {
		err = g.write("cpu.max", quota+" "+strconv.Itoa(period))
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *cpuGroup) write(file, value string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0o644)
}

// add moves a process with all its threads into the group.
func (g *cpuGroup) add(pid int) error {
	return g.write("cgroup.procs", strconv.Itoa(pid))
}

// close moves all processes to the machine's root group and removes this one.
func (g *cpuGroup) close() error {
	pids, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	errs := []error{err}
	for _, pid := range strings.Fields(string(pids)) {
		err := os.WriteFile(filepath.Join(g.home, "cgroup.procs"), []byte(pid), 0o644)
		if !errors.Is(err, syscall.ESRCH) { // the process may have ended
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.Remove(g.dir))...)
}
