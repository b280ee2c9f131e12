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

// Disk are the faults of disks: errors, slowness, no room, no power. Corrupt has
// those of files.
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

// striking bounds how long a fault waits for the node to touch its disk. Under
// load that takes milliseconds; a follower that is down for others' faults may
// not touch it at all.
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

// struck waits until a call of the node has failed.
func struck(ctx context.Context, d *disk.Disk, before disk.Counts) bool {
	return until(ctx, striking, func() bool {
		now := d.Counts()
		return now.SyncErrors+now.WriteErrors+now.TornWrites+now.Refused > before.SyncErrors+before.WriteErrors+before.TornWrites+before.Refused
	})
}

// mustExit waits for the node to end by itself. One that goes on has broken its
// promise, and is ended.
func (e *Env) mustExit(ctx context.Context, n *localcluster.Node, why string) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	if until(ctx, healing, func() bool { return !n.Running() }) {
		return nil
	}
	e.Violate("fault", "node %s goes on after %s", n.ID, why)
	return n.Kill()
}

// failStop lets calls fail. The process must end, and must do so again for as
// long as the disk fails; then it starts as if nothing had been. What a failed
// sync should have saved may be gone by then.
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

// slowDisk delays every sync. That is no reason to end: the longest delay, times
// the few syncs of one write, is shorter than the watchdog's patience.
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

// hungDisk lets no sync come back. The node's watchdog must end it: a leader on a
// disk that hangs still sends heartbeats, so nobody else would lead. The kernel
// keeps the process as long as its call hangs; it must be gone when that ends.
func hungDisk(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
	e.Log.Info("the disk hangs", "node", n.ID)
	before := d.Counts()
	d.Inject(disk.Faults{HangSyncs: true})
	if !until(ctx, striking, func() bool { return d.Counts().Delayed > before.Delayed }) {
		e.Count("disk faults that met no call", 1)
		d.Heal()
		return e.Return(ctx, n)
	}
	// The patience ends neither early with the run nor before the watchdog's.
	patience, cancel := Healing(ctx)
	defer cancel()
	if !until(patience, healing, func() bool { return !answers(patience, n) }) {
		e.Violate("fault", "node %s still answers on a disk that hangs", n.ID)
	}
	if !until(patience, healing, func() bool { return e.othersLead(patience, n) }) {
		e.Violate("I6", "nobody leads in place of node %s, whose disk hangs", n.ID)
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

// othersLead reports whether a node other than n says that one other than n leads.
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

// almostFull is what a full disk has left: less than one batch of jobs.
const almostFull = 32 << 10

// fullDisk fills the disk of one node to the brim at once, faster than any
// low-water mark is looked at. A write that finds no room ends the process, and
// it may not come back before there is room.
func fullDisk(ctx context.Context, e *Env, n *localcluster.Node, d *disk.Disk) error {
	e.Log.Info("the disk is full", "node", n.ID)
	before := d.Counts()
	d.SetFree(almostFull)
	if struck(ctx, d, before) {
		// A store may also find room after all, by what it removes. It must not
		// go on as if the write had succeeded, which the judge would see.
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

// lowSpace is below every automatic low-water mark and far above what the load
// writes meanwhile.
const lowSpace = 256 << 20

// lowDisks leaves a majority of the disks with little room. Adds must be refused
// with disk_low, and be taken again when there is room, without a restart.
// That finish and delete go on is seen by the load: the drain at the end.
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
		e.Violate("fault", "adds are taken with %d MiB free on the disks of %s", lowSpace>>20, Names(low))
	}
	sleep.For(ctx, e.Hold())
	for _, n := range low {
		if !n.Running() {
			e.Violate("fault", "node %s ended because its disk was low", n.ID)
		}
		e.Disks.Of(n.ID).Heal()
	}
	if !e.awaitAdd(ctx, "") {
		e.Violate("I6", "adds are still refused after the disks of %s have room again", Names(low))
	}
	if err := e.Return(ctx, low...); err != nil {
		return err
	}
	return e.removeProbe(ctx, low[0])
}

// probe is an add of this fault's own: one job, however often it is sent, in a
// topic that nobody reserves from. It is deleted in the end.
const (
	probeID = "chaos-disk-probe"
	probe   = `{"topic":"` + probeID + `","id":"` + probeID + `","delay":86400,"body":"room?"}`
)

// awaitAdd sends the probe to every node in turn until an answer has the code; ""
// stands for success.
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

// add sends a job and returns the code of the answer.
func add(ctx context.Context, n *localcluster.Node, job string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.HTTP+"/v1/jobs", strings.NewReader(job))
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Code string }
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&answer)
	return answer.Code, err
}

// survival draws how much of what was not synced outlives a loss of power: often
// nothing, which is the hardest, else any share.
func (e *Env) survival() float64 {
	if e.Rand.IntN(2) == 0 {
		return 0
	}
	return e.Rand.Float64()
}

// losePower takes the power from a node that has ended.
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

// powerLossOfAll is a whole rack that goes dark.
func powerLossOfAll(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	return e.cutPower(ctx, nodes)
}

// powerLossBesidePause loses the power of one node while all others stand still,
// so that what it wrote last is nowhere else, and what they have heard of it is
// older than what they wake up to.
func powerLossBesidePause(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	victim, others := nodes[0], nodes[1:]
	var errs []error
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
	early := e.Rand.IntN(2) == 0 // the victim is back before the others wake up
	if early {
		errs = append(errs, victim.Start())
		sleep.For(ctx, e.downtime())
	}
	for _, n := range others {
		errs = append(errs, n.Resume())
	}
	return errors.Join(append(errs, e.Return(ctx, nodes...))...)
}

// cutPower kills nodes and loses what their disks did not have yet. A node must
// start from whatever that leaves.
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
