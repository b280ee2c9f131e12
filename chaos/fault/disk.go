//go:build linux

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/internal/sleep"
)

// Disk returns the faults of disks: errors, slowness, no free space, power loss. Corrupt
// has those of files.
func Disk() []Fault {
	once := disk.Faults{SyncErrors: 1}
	lasting := disk.Faults{SyncErrors: disk.Forever}
	write := disk.Faults{WriteErrors: 1}
	torn := disk.Faults{TornWrites: 1}
	return []Fault{
		{Name: "sync-error-leader", Needs: FaultyDisk, Weight: 2, Overlaps: true, Run: failStop((*Env).Leader, once)},
		{Name: "sync-error-follower", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: failStop((*Env).Follower, once)},
		{Name: "sync-error-for-ever", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: failStop((*Env).Node, lasting)},
		{Name: "write-error", Needs: FaultyDisk, Weight: 2, Overlaps: true, Run: failStop((*Env).Node, write)},
		{Name: "torn-write", Needs: FaultyDisk, Weight: 2, Overlaps: true, Run: failStop((*Env).Node, torn)},
		{Name: "slow-disk-leader", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onDisk((*Env).Leader, slowDisk)},
		{Name: "slow-disk-follower", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onDisk((*Env).Follower, slowDisk)},
		{Name: "hung-disk-leader", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onDisk((*Env).Leader, hungDisk)},
		{Name: "hung-disk-follower", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onDisk((*Env).Follower, hungDisk)},
		{Name: "disk-full", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onDisk((*Env).Node, fullDisk)},
		{Name: "disks-low", Needs: FaultyDisk, Weight: 1, Run: onAll(lowDisks)},
		{Name: "power-loss-leader", Needs: FaultyDisk, Weight: 2, Overlaps: true, Run: onOne((*Env).Leader, powerLossOf)},
		{Name: "power-loss-follower", Needs: FaultyDisk, Weight: 1, Overlaps: true, Run: onOne((*Env).Follower, powerLossOf)},
		{Name: "power-loss-all", Needs: FaultyDisk, Weight: 2, Run: onAll(powerLossOfAll)},
		{Name: "power-loss-beside-pause", Needs: FaultyDisk, Weight: 1, Run: onAll(powerLossBesidePause)},
	}
}

// striking bounds how long a fault waits until the node uses its disk. Under load that
// takes milliseconds. A follower that concurrent faults keep down may not use it at all.
const striking = 10 * time.Second

// onDisk is the fault that run makes of the node of a choice and its disk, which is well
// again afterwards.
func onDisk(choose choice, run func(context.Context, *Env, *localcluster.Node, *disk.Disk) error) func(context.Context, *Env) error {
	return onOne(choose, func(ctx context.Context, e *Env, n *localcluster.Node) error {
		d, err := e.diskOf(n)
		if err != nil {
			return err
		}
		defer d.Heal()
		return run(ctx, e, n, d)
	})
}

func (e *Env) diskOf(n *localcluster.Node) (*disk.Disk, error) {
	if d := e.Disks.Of(n.ID); d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("node %s has no disk", n.ID)
}

// struck waits until a call of the node to its disk has failed.
func struck(ctx context.Context, d *disk.Disk, before disk.Counts) bool {
	return until(ctx, striking, func() bool {
		now := d.Counts()
		return now.SyncErrors+now.WriteErrors+now.TornWrites+now.Refused > before.SyncErrors+before.WriteErrors+before.TornWrites+before.Refused
	})
}

// mustExit waits until the node ends by itself. If it continues to run, that is a
// violation, and the node is killed.
func (e *Env) mustExit(ctx context.Context, n *localcluster.Node, why string) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	if until(ctx, healing, func() bool { return !n.Running() }) {
		return nil
	}
	e.Violate("fault", "node %s continues to run after %s", n.ID, why)
	return n.Kill()
}

// failStop makes calls fail. The process must end, and again at each start while the disk
// fails. After that it must start normally. What a failed sync should have written may be
// lost by then.
func failStop(choose choice, f disk.Faults) func(context.Context, *Env) error {
	return onDisk(choose, func(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
		e.Log.Info("the disk fails", "node", n.ID, "faults", fmt.Sprintf("%+v", f))
		before := d.Counts()
		d.Inject(f)
		if !struck(ctx, d, before) {
			e.Count("disk faults that met no call", 1)
			return nil
		}
		if err := e.mustExit(ctx, n, "a failed call of its disk, on "+d.Struck()); err != nil {
			return err
		}
		if f.SyncErrors == disk.Forever {
			if err := n.Start(); err != nil {
				return err
			}
			if err := e.mustExit(ctx, n, "a start on a disk that cannot sync"); err != nil {
				return err
			}
		}
		d.Heal()
		if e.Rand.IntN(2) == 0 {
			if err := e.losePower(n, d); err != nil {
				return err
			}
		}
		return e.Return(ctx, n)
	})
}

// slowDisk delays every sync. The node must not end: the longest delay, times the few syncs
// of one write, is below the watchdog's limit.
func slowDisk(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
	delay := e.Between(50*time.Millisecond, 300*time.Millisecond)
	if e.Rand.IntN(3) == 0 {
		delay = e.Between(300*time.Millisecond, 2*time.Second)
	}
	e.Log.Info("the disk is slow", "node", n.ID, "delay", delay.Round(time.Millisecond))
	d.Inject(disk.Faults{SyncDelay: delay})
	sleep.For(ctx, e.Hold())
	d.Heal()
	if !n.Running() {
		e.Violate("fault", "node %s ended on a disk that took %v a sync", n.ID, delay)
	}
	return e.Return(ctx, n)
}

// hungDisk makes every sync hang. The node's watchdog must end the process: a leader on a
// hung disk still sends heartbeats, so no other node would lead. The kernel keeps the
// process while its call hangs. It must be gone once the call returns.
func hungDisk(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
	e.Log.Info("the disk hangs", "node", n.ID)
	before := d.Counts()
	d.Inject(disk.Faults{HangSyncs: true})
	if !until(ctx, striking, func() bool { return d.Counts().Delayed > before.Delayed }) {
		e.Count("disk faults that met no call", 1)
		d.Heal()
		return e.Return(ctx, n)
	}
	// The wait is longer than the watchdog's limit, and does not end with the run.
	patience, cancel := Healing(ctx)
	defer cancel()
	if !until(patience, healing, func() bool { return !answers(patience, n) }) {
		e.Violate("fault", "node %s still serves requests on a hung disk", n.ID)
	}
	if !until(patience, healing, func() bool { return e.othersLead(patience, n) }) {
		e.Violate("I6", "no other node leads in place of node %s, whose disk hangs", n.ID)
	}
	d.Heal()
	if err := e.mustExit(ctx, n, "its disk hung for longer than the watchdog waits"); err != nil {
		return err
	}
	return e.Return(ctx, n)
}

// answers reports whether the process still serves.
func answers(ctx context.Context, n *localcluster.Node) bool {
	return n.Running() && localcluster.Call(ctx, http.MethodGet, n.HTTP, "/livez", nil) == nil
}

// othersLead reports whether a node other than n knows a leader other than n.
func (e *Env) othersLead(ctx context.Context, n *localcluster.Node) bool {
	for _, other := range e.Cluster.Nodes() {
		if other == n || !other.Running() {
			continue
		}
		members, err := e.Cluster.Members(ctx, other)
		if err != nil {
			continue
		}
		for _, m := range members {
			if m.Role == "leader" && m.ID != n.ID {
				return true
			}
		}
	}
	return false
}

// almostFull is the free space of a full disk: less than one batch of jobs.
const almostFull = 32 << 10

// fullDisk fills the disk of one node at once, before the low-water mark is checked. A
// write that fails for lack of space must end the process, which may not start again before
// there is free space.
func fullDisk(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
	e.Log.Info("the disk is full", "node", n.ID)
	before := d.Counts()
	d.SetFree(almostFull)
	if struck(ctx, d, before) {
		// A store may also free space by itself. It must not continue as if the write had
		// succeeded, which the judge would detect.
		until(ctx, e.Hold(), func() bool { return !n.Running() })
		if !n.Running() {
			e.Count("nodes ended by a full disk", 1)
		}
	} else {
		e.Count("disk faults that met no call", 1)
	}
	d.Heal()
	return e.Return(ctx, n)
}

// lowSpace is below every automatic low-water mark and far above what the load writes
// during the fault.
const lowSpace = 256 << 20

// lowDisks leaves a majority of the disks with little free space. Adds must be refused with
// disk_low, and accepted again when there is enough space, without a restart. The load and
// the drain at the end show that finish and delete continue.
func lowDisks(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	low := nodes[:len(nodes)/2+1]
	e.Log.Info("disks are low", "nodes", Names(low))
	for _, n := range low {
		d, err := e.diskOf(n)
		if err != nil {
			return err
		}
		defer d.Heal()
		d.SetFree(lowSpace)
	}
	if !e.awaitAdd(ctx, "disk_low") {
		e.Violate("fault", "adds are accepted with %d MiB free on the disks of %s", lowSpace>>20, Names(low))
	}
	sleep.For(ctx, e.Hold())
	for _, n := range low {
		if !n.Running() {
			e.Violate("fault", "node %s ended because its disk was low", n.ID)
		}
		e.Disks.Of(n.ID).Heal()
	}
	if !e.awaitAdd(ctx, "") {
		e.Violate("I6", "adds are still refused after the disks of %s have free space again", Names(low))
	}
	if err := e.Return(ctx, low...); err != nil {
		return err
	}
	return e.removeProbe(ctx, low[0])
}

// probe is an add of this fault: one job, however often it is sent, in a topic without
// consumers. It is deleted in the end.
const (
	probeID = "chaos-disk-probe"
	probe   = `{"topic":"` + probeID + `","id":"` + probeID + `","delay":86400,"body":"room?"}`
)

// awaitAdd sends the probe to every node in turn until a reply has the code; "" is success.
func (e *Env) awaitAdd(ctx context.Context, want string) bool {
	ctx, cancel := Healing(ctx)
	defer cancel()
	return until(ctx, healing, func() bool {
		for _, n := range e.Cluster.Nodes() {
			if code, err := add(ctx, n, probe); err == nil && code == want {
				return true
			}
		}
		return false
	})
}

func (e *Env) removeProbe(ctx context.Context, n *localcluster.Node) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	return localcluster.Until(ctx, func() error {
		return localcluster.Call(ctx, http.MethodDelete, n.HTTP, "/v1/jobs/"+probeID, nil)
	})
}

// add sends a job and returns the code of the reply.
func add(ctx context.Context, n *localcluster.Node, job string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.HTTP+"/v1/jobs", strings.NewReader(job))
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := questions.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Code string }
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&answer)
	return answer.Code, err
}

// survival draws how much of the data that was not synced survives a power loss: often
// nothing, which is the hardest case, otherwise any share.
func (e *Env) survival() float64 {
	if e.Rand.IntN(2) == 0 {
		return 0
	}
	return e.Rand.Float64()
}

// losePower simulates a power loss of a node that has ended.
func (e *Env) losePower(n *localcluster.Node, d *disk.Disk) error {
	seed, survive := e.Rand.Int64(), e.survival()
	e.Log.Info("power loss", "node", n.ID, "seed", seed, "survive", survive)
	if err := d.PowerLoss(seed, survive); err != nil {
		return fmt.Errorf("power loss of node %s: %w", n.ID, err)
	}
	e.Count("power losses", 1)
	return nil
}

func powerLossOf(ctx context.Context, e *Env, n *localcluster.Node) error {
	return e.cutPower(ctx, []*localcluster.Node{n})
}

// powerLossOfAll is a power loss of all nodes at once.
func powerLossOfAll(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	return e.cutPower(ctx, nodes)
}

// powerLossBesidePause is a power loss of one node while all others are paused, so that its
// last writes are nowhere else, and the others' acknowledgements of it are outdated when
// they resume.
func powerLossBesidePause(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	victim, others := nodes[0], nodes[1:]
	var errs []error
	e.Stall()
	for _, n := range others {
		errs = append(errs, n.Pause())
	}
	e.Log.Info("SIGSTOP", "nodes", Names(others))
	sleep.For(ctx, e.Between(0, time.Second))
	d, err := e.diskOf(victim)
	errs = append(errs, err, victim.Kill())
	if err == nil {
		errs = append(errs, e.losePower(victim, d))
	}
	sleep.For(ctx, e.downtime())
	early := e.Rand.IntN(2) == 0 // the victim restarts before the others resume
	if early {
		errs = append(errs, victim.Start())
		sleep.For(ctx, e.downtime())
	}
	for _, n := range others {
		errs = append(errs, n.Resume())
	}
	return errors.Join(append(errs, e.Return(ctx, nodes...))...)
}

// cutPower kills nodes and drops the data that was not synced. A node must start from the
// rest.
func (e *Env) cutPower(ctx context.Context, nodes []*localcluster.Node) error {
	for _, n := range nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		d, err := e.diskOf(n)
		if err != nil {
			return err
		}
		if err := e.losePower(n, d); err != nil {
			return err
		}
	}
	sleep.For(ctx, e.downtime())
	return e.Return(ctx, nodes...)
}
