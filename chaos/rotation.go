package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// rotation replaces the authority, the certificates and the gossip keys of a cluster whose nodes speak
// TLS, again and again, by the steps of docs/tls.md. What was replaced must then be refused.
type rotation struct {
	cluster *localcluster.Cluster
	probes  []tls.Certificate // one of each authority so far, the newest last; no node has them
	made    bool              // the next authority, in this round
	issued  bool              // its certificates
	key     string            // the gossip key to use

	steps  []func(context.Context) error // each is repeated until it succeeds
	at     int                           // in steps
	rounds int                           // complete ones
}

const (
	// rotationPause is the time between two attempts of a step.
	rotationPause = 300 * time.Millisecond
	// rotationLimit bounds the end of a round without faults. Nodes look at their files every 10 s.
	rotationLimit = 90 * time.Second
)

func newRotation(ctx context.Context, c *localcluster.Cluster) (*rotation, error) {
	probe, err := c.PresentCertificate(ctx)
	x := &rotation{cluster: c, probes: []tls.Certificate{probe}}
	x.steps = []func(context.Context) error{x.trustNext, x.issue, x.trustNewest, x.installKey, x.useKey, x.removeKeys}
	return x, err
}

// follow rotates until ctx ends, as fast as faults let it.
func (x *rotation) follow(ctx context.Context) error {
	for sleep.For(ctx, rotationPause) {
		_ = x.step(ctx) // a fault may be in the way; then the next attempt goes on
	}
	return nil
}

func (x *rotation) step(ctx context.Context) error {
	if err := x.steps[x.at](ctx); err != nil {
		return err
	}
	if x.at = (x.at + 1) % len(x.steps); x.at == 0 {
		x.rounds++
	}
	return nil
}

// finish ends the round under way, or makes the first one, in a cluster without faults. An error is a
// broken promise.
func (x *rotation) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rotationLimit)
	defer cancel()
	for x.at != 0 || x.rounds == 0 {
		if err := localcluster.Until(ctx, func() error { return x.step(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// trustNext makes another authority, and waits until all nodes trust it.
func (x *rotation) trustNext(ctx context.Context) error {
	if !x.made {
		probe, err := x.cluster.NextAuthority(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		x.probes, x.made = append(x.probes, probe), true
	}
	return x.everyNode(ctx, func(n *localcluster.Node) error {
		_, accepts, err := x.cluster.Shown(ctx, n, x.newest())
		if err == nil && !accepts {
			err = fmt.Errorf("node %s does not accept the next authority", n.ID)
		}
		return err
	})
}

// issue gives all nodes certificates of the newest authority, and waits until they show them.
func (x *rotation) issue(ctx context.Context) error {
	if !x.issued {
		if err := x.cluster.IssueAll(); err != nil {
			return err
		}
		x.issued = true
	}
	return x.everyNode(ctx, func(n *localcluster.Node) error {
		leaf, _, err := x.cluster.Shown(ctx, n, x.newest())
		if err == nil && !bytes.Equal(leaf.AuthorityKeyId, x.newest().Leaf.AuthorityKeyId) {
			err = fmt.Errorf("node %s shows a certificate of the authority before", n.ID)
		}
		return err
	})
}

// trustNewest leaves only the newest authority, and waits until all nodes refuse those before.
func (x *rotation) trustNewest(ctx context.Context) error {
	x.made, x.issued = false, false
	if err := x.cluster.TrustOnlyNewest(); err != nil {
		return err
	}
	return x.everyNode(ctx, func(n *localcluster.Node) error {
		for i, probe := range x.probes {
			newest := i == len(x.probes)-1
			_, accepts, err := x.cluster.Shown(ctx, n, probe)
			if err == nil && accepts != newest {
				err = fmt.Errorf("node %s accepts a certificate of authority %d of %d: %v", n.ID, i+1, len(x.probes), accepts)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *rotation) newest() tls.Certificate { return x.probes[len(x.probes)-1] }

// everyNode lets each node that runs look at its files, and then calls f. One that does not run reads
// them when it starts.
func (x *rotation) everyNode(ctx context.Context, f func(*localcluster.Node) error) error {
	for _, n := range x.cluster.Nodes() {
		if !n.Running() {
			continue
		}
		if x.cluster.Get(ctx, n, "/readyz", nil) == nil { // before that the signal might end it
			if err := n.Hangup(); err != nil {
				return err
			}
		}
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// keyring is the reply of the calls about gossip keys.
type keyring struct {
	Keys    []string // the leader's; the first one encrypts
	Current int      // nodes that have the same
}

// keys makes a call about gossip keys. It fails unless all nodes then have the same: one that is being
// replaced, or has just been added, must not miss a step.
func (x *rotation) keys(ctx context.Context, method, path string) (k keyring, err error) {
	leader, err := x.cluster.Leader(ctx)
	if err != nil {
		return k, err
	}
	err = x.cluster.Call(ctx, method, leader, "/v1/cluster/keyring"+path, &k)
	if all := len(x.cluster.Nodes()); err == nil && k.Current != all {
		err = fmt.Errorf("%d of %d nodes have the gossip keys %v", k.Current, all, k.Keys)
	}
	return k, err
}

// installKey lets all nodes have another gossip key. A call that was not answered may have made one.
func (x *rotation) installKey(ctx context.Context) error {
	k, err := x.keys(ctx, http.MethodGet, "")
	if err == nil && len(k.Keys) == 1 {
		k, err = x.keys(ctx, http.MethodPost, "/install")
	}
	if err == nil {
		x.key = k.Keys[len(k.Keys)-1]
	}
	return err
}

// useKey lets all nodes encrypt with that key, or with another one if its leader was lost with it.
func (x *rotation) useKey(ctx context.Context) error {
	k, err := x.keys(ctx, http.MethodGet, "")
	switch {
	case err != nil || k.Keys[0] == x.key:
		return err
	case !slices.Contains(k.Keys, x.key):
		return errors.Join(errors.New("the new gossip key is not there"), x.installKey(ctx))
	}
	_, err = x.keys(ctx, http.MethodPost, "/"+x.key+"/use")
	return err
}

// removeKeys removes all other gossip keys.
func (x *rotation) removeKeys(ctx context.Context) error {
	k, err := x.keys(ctx, http.MethodGet, "")
	if err == nil && len(k.Keys) > 1 {
		k, err = x.keys(ctx, http.MethodDelete, "/"+k.Keys[1])
	}
	if err == nil && len(k.Keys) > 1 {
		err = fmt.Errorf("the gossip keys are %v", k.Keys)
	}
	return err
}
