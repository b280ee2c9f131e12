package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tarry/bench/localcluster"
)

// ClaimedNodes records which nodes an injection works on, so that concurrent faults have
// distinct victims. The runner releases an injection's nodes when it ends.
type ClaimedNodes struct {
	mu    sync.Mutex
	nodes map[*localcluster.Node]*Env
}

// NewClaimedNodes returns a record in which every node is free.
func NewClaimedNodes() *ClaimedNodes { return &ClaimedNodes{nodes: map[*localcluster.Node]*Env{}} }

// claim reports false when another injection has the node.
func (c *ClaimedNodes) claim(e *Env, n *localcluster.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := c.nodes[n]; owner != nil && owner != e {
		return false
	}
	c.nodes[n] = e
	return true
}

// Release frees the nodes that e claimed.
func (c *ClaimedNodes) Release(e *Env) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, owner := range c.nodes {
		if owner == e {
			delete(c.nodes, n)
		}
	}
}

// ErrNoVictim is returned by a fault that finds no free node, because concurrent faults
// have claimed them. The runner counts it as not injected.
var ErrNoVictim = errors.New("no node is free for this fault")

// Leader claims the leader.
func (e *Env) Leader(ctx context.Context) (*localcluster.Node, error) {
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return nil, err
	}
	if !e.Claimed.claim(e, leader) {
		return nil, ErrNoVictim
	}
	return leader, nil
}

// Follower claims a running node that does not lead, chosen by the seed.
func (e *Env) Follower(ctx context.Context) (*localcluster.Node, error) {
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(e.Cluster.Nodes(), func(n *localcluster.Node) bool { return n == leader || !n.Running() })
	return e.oneOf(nodes)
}

// Node claims any running node, chosen by the seed.
func (e *Env) Node(context.Context) (*localcluster.Node, error) {
	return e.oneOf(slices.DeleteFunc(e.Cluster.Nodes(), func(n *localcluster.Node) bool { return !n.Running() }))
}

// All claims every node, in an order drawn by the seed. Only a fault without Overlaps may
// call it, because only such a fault runs alone.
func (e *Env) All() ([]*localcluster.Node, error) {
	nodes := e.Cluster.Nodes()
	e.Rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, n := range nodes {
		if !e.Claimed.claim(e, n) {
			return nil, ErrNoVictim
		}
	}
	return nodes, nil
}

func (e *Env) oneOf(nodes []*localcluster.Node) (*localcluster.Node, error) {
	e.Rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, n := range nodes {
		if e.Claimed.claim(e, n) {
			return n, nil
		}
	}
	return nil, ErrNoVictim
}

// choice takes the node that a fault works on.
type choice func(*Env, context.Context) (*localcluster.Node, error)

// onOne is the fault that run makes of the node of a choice.
func onOne(choose choice, run func(context.Context, *Env, *localcluster.Node) error) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		n, err := choose(e, ctx)
		if err != nil {
			return err
		}
		return run(ctx, e, n)
	}
}

// alone is a choice that also takes all other nodes, so that nothing else breaks.
func alone(choose choice) choice {
	return func(e *Env, ctx context.Context) (*localcluster.Node, error) {
		n, err := choose(e, ctx)
		if err == nil {
			_, err = e.All()
		}
		return n, err
	}
}

// onAll is the fault that run makes of all nodes.
func onAll(run func(context.Context, *Env, []*localcluster.Node) error) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		nodes, err := e.All()
		if err != nil {
			return err
		}
		return run(ctx, e, nodes)
	}
}

// currentLeader waits for a leader. There may be none for a while if a concurrent fault has
// claimed the leader.
func (e *Env) currentLeader(ctx context.Context) (*localcluster.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, healing)
	defer cancel()
	leader, err := e.Cluster.Leader(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the leader: %w", err)
	}
	return leader, nil
}
