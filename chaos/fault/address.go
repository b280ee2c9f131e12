//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Address returns the faults of an address that is given to another node.
func Address() []Fault {
	return []Fault{{Name: "inherited-address", Weight: 2, Needs: Namespaces, Run: onAll(inheritedAddress)}}
}

// sides divides the nodes so that the node with the address of a dead node would complete a
// majority if it counted for both. few are one node short of a majority. rest are no
// majority either, because the dead node is missing. nodes begin with the dead one and the
// one that has its address.
func sides[T any](nodes []T) (few, rest []T) {
	majority := len(nodes)/2 + 1
	return nodes[1:majority], nodes[majority:]
}

// inheritedAddress gives the address of a dead node to a running one. Then it partitions
// the cluster so that this node's side is a majority only if the node counts twice. That
// side must not acknowledge anything. After its nodes were killed and lost what they had
// not synced, and the dead node and the others run again, nothing may be missing.
func inheritedAddress(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	if len(nodes) < 3 || len(nodes)%2 == 0 {
		return ErrNoVictim // an even number would be without a majority afterwards
	}
	dead, heir := nodes[0], nodes[1]
	few, rest := sides(nodes)
	if err := dead.Kill(); err != nil {
		return err
	}
	back, err := e.Network.Inherit(ctx, dead.ID, heir.ID)
	if err != nil {
		return errors.Join(err, e.Return(ctx, dead))
	}
	e.Log.Info("a dead node's address comes to another", "dead", dead.ID, "heir", heir.ID)
	sleep.For(ctx, e.Hold())
	e.Log.Info("the heir is left without a majority", "with", Names(few))
	heal, err := e.Network.Apply(ctx, parted(append(idsOf(few), dead.ID), idsOf(rest))...)
	if err != nil {
		return errors.Join(err, back(), e.Return(ctx, dead))
	}
	e.mustNotAcknowledge(ctx, few, e.Between(aloneLow, aloneHigh))
	errs := []error{e.endAll(few), heal(), back(), e.Return(ctx, append([]*localcluster.Node{dead}, rest...)...)}
	return errors.Join(append(errs, e.Return(ctx, few...))...)
}

// How long the partition lasts: long enough for an election, and for the others to detect
// that there is no leader.
const (
	aloneLow  = 2 * time.Second
	aloneHigh = 5 * time.Second
)

func idsOf(nodes []*localcluster.Node) []string {
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// mustNotAcknowledge sends adds to nodes that must not acknowledge them.
func (e *Env) mustNotAcknowledge(ctx context.Context, nodes []*localcluster.Node, hold time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	topic := fmt.Sprintf("inherited-%d", e.Rand.Uint64())
	for i := 0; ctx.Err() == nil; i++ {
		n := nodes[i%len(nodes)]
		job := map[string]any{"topic": topic, "id": fmt.Sprintf("%s-%d", topic, i), "delay": 24 * 3600, "body": "x"}
		if err := e.Cluster.Post(ctx, n, "/v1/jobs", job, nil); err == nil {
			e.Violate("I11", "node %s acknowledged an add without a majority, with the address of a dead node", n.ID)
			return
		}
		sleep.For(ctx, 100*time.Millisecond)
	}
}

// endAll kills nodes. Nodes on faulty disks also lose power, and with it what was not
// synced.
func (e *Env) endAll(nodes []*localcluster.Node) error {
	e.Log.Info("kill -9", "nodes", Names(nodes))
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Kill())
	}
	if e.Disks == nil {
		return errors.Join(errs...)
	}
	for _, n := range nodes {
		d, err := e.diskOf(n)
		if err == nil {
			err = e.losePower(n, d)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
