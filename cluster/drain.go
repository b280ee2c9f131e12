package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership"
	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
	"tarry/job"
)

// A node drains before it stops, or because an operator says so. Then it is not ready, ends
// waiting reserves and does not lead, and everything else goes on: it votes, stores entries,
// and forwards the calls of clients that have not moved yet. An operator's drain ends with
// Undrain or with the process.
//
// A drained node gives leadership only to a live voter that is not drained, and leads if
// there is none: among drained nodes leadership would move all the time, and each move stops
// writes.

// Draining reports whether the node drains.
func (n *Node) Draining() bool { return n.draining.On() }

// Drained returns a channel that is closed once the node drains.
func (n *Node) Drained() <-chan struct{} { return n.draining.Began() }

// BeginStop makes the node report that it is not ready, for good.
func (n *Node) BeginStop() {
	n.drainMu.Lock()
	defer n.drainMu.Unlock()
	n.stopping.Store(true)
	n.draining.Begin()
}

// Drain prepares the node's stop: it makes the node report that it is not ready, ends
// waiting reserves, and transfers leadership. It blocks until that is done or ctx ends. The
// node stays a member of the cluster.
func (n *Node) Drain(ctx context.Context) {
	n.BeginStop()
	n.endWaits()
	done := make(chan error, len(n.groups))
	leads := 0
	for _, g := range n.groups {
		if g.shard.raft.State() == raft.Leader && !g.onlyVoter() {
			leads++
			go func() { done <- g.errorIn(g.shard.transfer()) }() // ends when Raft stops, at the latest
		}
	}
	for range leads {
		select {
		case err := <-done:
			if err != nil {
				n.log.Warn("could not transfer leadership before stopping", "error", err)
			}
		case <-ctx.Done():
			n.log.Warn("could not transfer leadership before stopping", "error", ctx.Err())
			return
		}
	}
}

// endWaits ends waiting reserves, and lets none wait until the waits are resumed.
func (n *Node) endWaits() {
	for _, g := range n.groups {
		g.shard.waits.Drain()
	}
}

// beginDrain begins an operator's drain, and endDrain ends it. They report whether that
// changed anything, and fail once the node is about to stop. What readiness says and what
// reserves do change together.
func (n *Node) beginDrain() (changed bool, err error) {
	n.drainMu.Lock()
	defer n.drainMu.Unlock()
	if n.stopping.Load() {
		return false, n.isStopping()
	}
	if !n.draining.Begin() {
		return false, nil
	}
	n.endWaits()
	n.log.Info("this node is drained; it does not lead, and clients should use other nodes, until the drain is undone or the node restarts")
	return true, nil
}

func (n *Node) endDrain() error {
	n.drainMu.Lock()
	defer n.drainMu.Unlock()
	if n.stopping.Load() {
		return n.isStopping()
	}
	if n.draining.End() {
		for _, g := range n.groups {
			g.shard.waits.Resume()
		}
		n.lastTransfer = time.Time{}
		n.log.Info("this node is not drained any more")
	}
	return nil
}

func (n *Node) isStopping() error {
	return job.Errorf(job.CodeConflict, "%s is about to stop", n.cfg.NodeID)
}

// SetDrained implements api.Operator. A drain that fails changes nothing, unless its error
// says that the node stays drained.
func (n *Node) SetDrained(ctx context.Context, drained bool) error {
	select {
	case n.operatorDrains <- struct{}{}: // one at a time: each sees the other's outcome
		defer func() { <-n.operatorDrains }()
	case <-ctx.Done():
		return job.NotApplied("another call drains this node, or ends that: %w", ctx.Err())
	}
	if !drained {
		return n.endDrain()
	}
	if n.stopping.Load() {
		return n.isStopping()
	}
	if n.onlyVoter() {
		return job.Errorf(job.CodeConflict, "%s is the only voter: no other node could serve its clients", n.cfg.NodeID)
	}
	if !n.draining.On() && len(n.members.Heirs(ctx)) == 0 {
		return membership.NoHeir(n.cfg.NodeID)
	}
	began, err := n.beginDrain()
	if err != nil {
		return err
	}
	if began && len(n.members.Heirs(ctx)) == 0 { // the others were drained in this moment
		if err := n.endDrain(); err != nil {
			return err
		}
		return membership.NoHeir(n.cfg.NodeID)
	}
	if err = n.transferAll(ctx); err == nil {
		return nil
	}
	if began && n.leadsAny() && n.endDrain() == nil {
		return job.Errorf(job.CodeOf(err), "%w; the node still leads, and is not drained", err)
	}
	return job.Errorf(job.CodeOf(err), "%w; the node stays drained", err)
}

const (
	// drainCheck is how often a leader looks whether it should not lead, drainRetry the least
	// time between two attempts of the node to transfer leadership, also if it has lost and
	// regained it in between.
	drainCheck = time.Second
	drainRetry = 10 * time.Second
)

// avoidLeading transfers leadership while this node is drained and leads, until ctx ends. It
// leads if it is elected, for example because it has the longest log.
func (n *Node) avoidLeading(ctx context.Context) {
	said := ""
	for {
		if n.mayTransfer(time.Now()) {
			n.log.Info("transferring leadership; this node is drained")
			if err := n.members.TransferFrom(ctx); err != nil && ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				n.log.Warn("could not transfer leadership; trying again later", "error", err)
			}
		}
		if !sleep.For(ctx, drainCheck) {
			return
		}
	}
}

// mayTransfer reports whether a drained node is to try to transfer leadership now.
func (n *Node) mayTransfer(now time.Time) bool {
	n.drainMu.Lock()
	defer n.drainMu.Unlock()
	if !n.draining.On() || n.stopping.Load() || n.onlyVoter() || now.Sub(n.lastTransfer) < drainRetry {
		return false
	}
	n.lastTransfer = now
	return true
}

// transferAll transfers leadership of all groups that this node leads.
func (n *Node) transferAll(ctx context.Context) error {
	errs := []error{n.members.TransferFrom(ctx)}
	for _, g := range n.dataGroups() {
		errs = append(errs, g.errorIn(g.member.TransferFrom(ctx)))
	}
	return errors.Join(errs...)
}

func (n *Node) leadsAny() bool {
	return slices.ContainsFunc(n.groups, func(g *group) bool { return g.shard.raft.State() == raft.Leader })
}

func (g *group) onlyVoter() bool {
	return len(raftconfig.Voters(raftconfig.Latest(g.shard.raft))) <= 1
}
