//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/internal/sleep"
)

// Reads returns the faults of disks that answer reads wrongly, or put data where it does not
// belong.
func Reads() []Fault {
	reads := func(name string, f disk.Faults) Fault {
		return Fault{Name: name, Needs: FaultyDisk, Weight: 1, Run: onOne((*Env).expendable, badReads(f))}
	}
	return []Fault{
		reads("read-error", disk.Faults{ReadErrors: 1}),
		reads("misdirected-read", disk.Faults{MisdirectedReads: 1}),
		{Name: "misdirected-write", Needs: FaultyDisk, Weight: 1, Run: onOne((*Env).expendable, misdirectedWrite)},
		{Name: "latent-sector", Needs: FaultyDisk, Weight: 1, Run: onOne((*Env).expendable, latentSector)},
	}
}

// mostSpared bounds the reads of a start before the one that fails.
const mostSpared = 80

// badReads restarts a node whose disk answers a read wrongly. Its data is as it was: the node
// may refuse to start, but what it does because of the answer must not lose anything.
func badReads(f disk.Faults) func(context.Context, *Env, *localcluster.Node) error {
	return func(ctx context.Context, e *Env, n *localcluster.Node) error {
		d, err := e.diskOf(n)
		if err != nil {
			return err
		}
		defer d.Heal()
		if err := n.Kill(); err != nil {
			return err
		}
		if err := d.DropCache(); err != nil {
			return err
		}
		f.SparedReads = e.Rand.IntN(mostSpared)
		if e.Rand.IntN(2) == 0 {
			f.Under = "/raft/"
			f.SparedReads /= 8
		}
		e.Log.Info("the disk answers a read wrongly", "node", n.ID, "faults", fmt.Sprintf("%+v", f))
		before := d.Counts()
		d.Inject(f)
		if err := n.Start(); err != nil {
			return err
		}
		patience, cancel := Healing(ctx)
		defer cancel()
		until(patience, healing, func() bool { return !n.Running() || e.verified(patience, n) })
		d.Heal()
		now := d.Counts()
		if now.ReadErrors+now.Misdirected == before.ReadErrors+before.Misdirected {
			e.Count("disk faults that met no call", 1)
			return e.Return(ctx, n)
		}
		what := "wrong answer to a read"
		if n.Running() {
			return e.running(patience, n, what)
		}
		e.Count("nodes ended by a wrong answer to a read", 1)
		if err := d.DropCache(); err != nil {
			return err
		}
		return e.comeBack(ctx, n, what)
	}
}

// running judges a node that runs after a disk fault.
func (e *Env) running(ctx context.Context, n *localcluster.Node, what string) error {
	e.Count("nodes that ran on after a disk fault", 1)
	e.Healed()
	if ctx.Err() != nil {
		e.Violate("fault", "node %s runs after %s and is not ready, or its state cannot be compared", n.ID, what)
	}
	return nil
}

// misdirectedWrite makes some writes of a running node go to the wrong place, which it finds when
// it starts again, or when it reads there.
func misdirectedWrite(ctx context.Context, e *Env, n *localcluster.Node) error {
	d, err := e.diskOf(n)
	if err != nil {
		return err
	}
	defer d.Heal()
	f := disk.Faults{MisdirectedWrites: 1 + e.Rand.IntN(3)}
	if e.Rand.IntN(2) == 0 {
		f.Under = "/raft/"
	}
	e.Log.Info("writes go to the wrong place", "node", n.ID, "faults", fmt.Sprintf("%+v", f))
	size, err := logSize(n)
	if err != nil {
		return err
	}
	before := d.Counts().Misdirected
	d.Inject(f)
	hit := until(ctx, striking, func() bool { return d.Counts().Misdirected > before })
	what := "misdirected write"
	sleep.For(ctx, e.Hold())
	d.Heal()
	if !hit {
		e.Count("disk faults that met no call", 1)
		return e.Return(ctx, n)
	}
	if !n.Running() {
		return e.refused(ctx, n, what, size)
	}
	if err := n.Kill(); err != nil {
		return err
	}
	if err := d.DropCache(); err != nil {
		return err
	}
	return e.comeBack(ctx, n, what)
}

// latentSector makes a page of a file unreadable and restarts the node.
func latentSector(ctx context.Context, e *Env, n *localcluster.Node) error {
	d, err := e.diskOf(n)
	if err != nil {
		return err
	}
	defer d.Heal()
	if err := n.Kill(); err != nil {
		return err
	}
	k, err := e.anyPart(n, parts())
	if err != nil || k.path == "" {
		return errors.Join(err, e.Return(ctx, n))
	}
	path := k.path
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(d.Backing(), path)
	if err != nil {
		return err
	}
	at := e.Rand.Int64N(max(info.Size(), 1))
	e.Log.Info("a page is unreadable", "node", n.ID, "file", filepath.Base(path), "at", at)
	d.Latent(name, at)
	if err := d.DropCache(); err != nil {
		return err
	}
	return e.comeBack(ctx, n, "unreadable page of "+k.name)
}
