package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Limits returns the faults of a process that runs into a limit of the machine.
func Limits() []Fault {
	return []Fault{
		{Name: "out-of-files", Weight: 1, Needs: Root, Overlaps: true, Run: onOne((*Env).Node, outOfFiles)},
		{Name: "out-of-memory", Weight: 1, Needs: Root, Overlaps: true, Run: onOne((*Env).Node, outOfMemory)},
	}
}

// outOfFiles leaves a process no file descriptor beyond a few, so that it can neither accept
// connections nor open files. It may end, or serve again when it has more.
func outOfFiles(ctx context.Context, e *Env, n *localcluster.Node) error {
	before, open, err := files(n.PID())
	if err != nil {
		return err
	}
	few := unix.Rlimit{Cur: uint64(open + e.Rand.IntN(4)), Max: before.Max}
	e.Log.Info("no more open files", "node", n.ID, "limit", few.Cur)
	if err := unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return gone(n, err)
	}
	sleep.For(ctx, e.Hold())
	if !n.Running() {
		e.Count("nodes ended without files", 1)
	} else if err := gone(n, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &before, nil)); err != nil {
		return err
	}
	return e.Return(ctx, n)
}

// files returns the limit of a process on open files and how many it has.
func files(pid int) (limit unix.Rlimit, open int, err error) {
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return limit, 0, fmt.Errorf("read the limit on open files: %w", err)
	}
	list, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return limit, len(list), err
}

// gone returns err unless the node has ended, as concurrent faults may make it.
func gone(n *localcluster.Node, err error) error {
	if err != nil && !n.Running() {
		return nil
	}
	return err
}

const (
	// roomLeft is what a process may still allocate.
	roomLeft = 4 << 20
	// starved bounds the wait until a process runs out of memory.
	starved = 15 * time.Second
)

// outOfMemory leaves a process almost no memory. The kernel kills it or, where there are no
// cgroups for memory, the runtime ends it when it gets no more addresses. Either may happen at
// any instruction.
func outOfMemory(ctx context.Context, e *Env, n *localcluster.Node) error {
	group, err := newMemoryGroup(n.ID)
	if err != nil || e.Rand.IntN(2) == 0 {
		if err == nil {
			err = group.close()
		}
		if err != nil {
			e.Log.Info("no cgroup for memory; the addresses are limited", "reason", err)
		}
		return e.outOfAddresses(ctx, n)
	}
	e.Log.Info("no more memory", "node", n.ID, "bytes", roomLeft)
	if err := group.add(n.PID()); err != nil {
		return errors.Join(gone(n, err), group.close(), e.Return(ctx, n))
	}
	ended := until(ctx, starved, func() bool { return !n.Running() })
	if err := group.close(); err != nil {
		return err
	}
	e.countStarved(ended)
	return e.Return(ctx, n)
}

func (e *Env) countStarved(ended bool) {
	if ended {
		e.Count("nodes ended without memory", 1)
	} else {
		e.Count("nodes that needed no more memory", 1)
	}
}

func (e *Env) outOfAddresses(ctx context.Context, n *localcluster.Node) error {
	var before unix.Rlimit
	if err := unix.Prlimit(n.PID(), unix.RLIMIT_AS, nil, &before); err != nil {
		return gone(n, err)
	}
	few := unix.Rlimit{Cur: roomLeft, Max: before.Max} // less than it has: it gets no more
	e.Log.Info("no more addresses", "node", n.ID)
	if err := unix.Prlimit(n.PID(), unix.RLIMIT_AS, &few, nil); err != nil {
		return gone(n, err)
	}
	ended := until(ctx, starved, func() bool { return !n.Running() })
	if !ended {
		if err := gone(n, unix.Prlimit(n.PID(), unix.RLIMIT_AS, &before, nil)); err != nil {
			return err
		}
	}
	e.countStarved(ended)
	return e.Return(ctx, n)
}

// memoryHierarchy is where version 1 of cgroups limits memory.
const memoryHierarchy = "/sys/fs/cgroup/memory"

// memoryGroup limits what the processes in it allocate from when they are added.
type memoryGroup struct{ dir string }

func newMemoryGroup(id string) (*memoryGroup, error) {
	g := &memoryGroup{filepath.Join(memoryHierarchy, fmt.Sprintf("chaos-%s-%d", id, os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create a memory cgroup: %w", err)
	}
	err := os.WriteFile(filepath.Join(g.dir, "memory.limit_in_bytes"), []byte(strconv.Itoa(roomLeft)), 0o644)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("limit a memory cgroup: %w", err), os.Remove(g.dir))
	}
	return g, nil
}

func (g *memoryGroup) add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// close moves all processes to the root group and removes this one.
func (g *memoryGroup) close() error {
	return (&cpuGroup{home: memoryHierarchy, dir: g.dir}).close()
}
