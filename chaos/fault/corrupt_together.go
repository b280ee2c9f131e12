//go:build linux

package fault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/internal/sleep"
)

// Together returns the faults that damage a node when the others cannot tell what it has lost:
// they restart, too, or were down. A good copy of every acknowledged entry is kept. Without it
// the cluster may refuse to serve. It must not serve without what the copy has.
func Together() []Fault {
	return []Fault{
		{Name: "corrupt-and-restart", Weight: 1, Run: onAll(corruptAndRestart)},
		{Name: "corrupt-beside-down", Weight: 2, Run: onAll(corruptBesideDown)},
	}
}

// keep is a file as it was some time ago.
type keep struct {
	part
	path string
	old  []byte
}

// choosePart draws a file to damage, most often of the log: what it loses nobody else reports.
// Of the log it is as often the last segment as any.
func (e *Env) choosePart(n *localcluster.Node) (keep, error) {
	list := parts()
	if e.Rand.IntN(4) > 0 {
		list = list[:2] // of which a node has one
	}
	k, err := e.anyPart(n, list)
	if err != nil || k.path == "" {
		return k, err
	}
	if k.part == parts()[0] && e.Rand.IntN(2) == 0 {
		if k.path, err = newest(e.files(n), k.part); err != nil {
			return k, err
		}
	}
	if k.old, err = os.ReadFile(k.path); errors.Is(err, os.ErrNotExist) {
		err = nil // the node has just removed it
	}
	return k, err
}

// anyPart draws a part of which the node has a file, and the file; "": it has none.
func (e *Env) anyPart(n *localcluster.Node, list []part) (k keep, err error) {
	e.Rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, k.part = range list {
		if k.path, err = e.oneFile(e.files(n), k.part); err != nil || k.path != "" {
			return k, err
		}
	}
	return k, nil
}

// newest returns the last file of a part in the order of names.
func newest(dir string, p part) (string, error) {
	list, err := filepath.Glob(filepath.Join(dir, p.pattern))
	if err != nil || len(list) == 0 {
		return "", err
	}
	return slices.Max(list), nil
}

// spoil damages a chosen file of a node that has ended, or another of its part when the node has
// removed it since.
func (e *Env) spoil(n *localcluster.Node, k keep) (what string, err error) {
	if _, err := os.Stat(k.path); err != nil {
		if k.path, err = newest(e.files(n), k.part); err != nil {
			return "", err
		}
	}
	return e.damage(n, k.part, k.path, k.old, disk.Damages())
}

// corruptAndRestart damages one node while all are down, as after a power failure that broke a
// disk. All start again, in any order.
func corruptAndRestart(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	for _, n := range nodes {
		e.awaitVoter(ctx, n)
	}
	victim := nodes[0]
	k, err := e.choosePart(victim)
	if err != nil {
		return err
	}
	sleep.For(ctx, e.Between(200*time.Millisecond, time.Second))
	e.Log.Info("kill -9, and one is damaged", "nodes", Names(nodes), "damaged", victim.ID)
	for _, n := range nodes {
		err = errors.Join(err, n.Kill())
	}
	if err != nil {
		return err
	}
	what, err := e.spoil(victim, k)
	if err != nil {
		return errors.Join(err, e.Return(ctx, nodes...))
	}
	order := slices.Clone(nodes)
	e.Rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	before, err := logSize(victim)
	for _, n := range order {
		err = errors.Join(err, n.Start())
		sleep.For(ctx, e.Between(0, time.Second))
	}
	if err != nil {
		return err
	}
	return e.settle(ctx, victim, nodes, what, before)
}

// corruptBesideDown stops a minority, lets the others acknowledge writes, and stops them. One of
// these is damaged. It starts with those that were down, which have nothing of these writes, so
// that the good copies are down, and only later they. Until then the nodes that run are a
// majority that must not serve without the writes.
func corruptBesideDown(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	for _, n := range nodes {
		e.awaitVoter(ctx, n)
	}
	down := nodes[:(len(nodes)-1)/2]
	writers := nodes[len(down):]
	victim, good := writers[0], writers[1:]
	if len(down) == 0 {
		return ErrNoVictim
	}
	if len(good) > len(down) { // with the victim they must be too few to make up for what it lost
		good = good[:len(down)]
	}
	e.Log.Info("kill -9", "nodes", Names(down))
	for _, n := range down {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	k, err := e.choosePart(victim)
	if err != nil {
		return err
	}
	sleep.For(ctx, e.Between(time.Second, 4*time.Second)) // an election, and writes
	e.Log.Info("kill -9, and one is damaged", "nodes", Names(writers), "damaged", victim.ID)
	for _, n := range writers {
		err = errors.Join(err, n.Kill())
	}
	if err != nil {
		return err
	}
	what, err := e.spoil(victim, k)
	if err != nil {
		return errors.Join(err, e.Return(ctx, nodes...))
	}
	before, err := logSize(victim)
	for _, n := range append(slices.Clone(down), victim) {
		err = errors.Join(err, n.Start())
	}
	if err != nil {
		return err
	}
	sleep.For(ctx, e.Between(2*time.Second, 5*time.Second))
	e.Log.Info("the good copy is back", "nodes", Names(good))
	for _, n := range good {
		err = errors.Join(err, n.Start())
	}
	if err != nil {
		return err
	}
	return e.settle(ctx, victim, nodes, what, before)
}

// settle waits until all nodes run. The damaged one may refuse, must then say how to recover,
// and becomes a new member. What was acknowledged is judged by the clients' history.
func (e *Env) settle(ctx context.Context, victim *localcluster.Node, nodes []*localcluster.Node, what string, before int64) error {
	e.Healed()
	if what == "" {
		e.Count("damages without a file", 1)
		return e.Return(ctx, nodes...)
	}
	patience, cancel := Healing(ctx)
	defer cancel()
	until(patience, healing, func() bool { return !victim.Running() || e.verified(patience, victim) })
	switch {
	case !victim.Running():
		if err := e.refused(ctx, victim, what+" together", before); err != nil {
			return err
		}
	case patience.Err() != nil:
		e.Violate("fault", "node %s runs with a damaged file (%s) and is not ready, or its state cannot be compared", victim.ID, what)
	default:
		e.Count(what+" together: started", 1)
	}
	return e.Return(ctx, nodes...)
}
