package membership

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/internal/sleep"
	"tarry/job"
)

// changeTimeout bounds the wait until Raft accepts one change of the configuration.
// Raft bounds its commit: a leader that reaches no quorum steps down.
const changeTimeout = 10 * time.Second

// leadership is what exists only while this node leads.
type leadership struct {
	autopilot *autopilot.Autopilot
	problems  atomic.Pointer[map[string]*report.Problem] // by node id, or by what they have in common: why nodes cannot be added or removed; from the last pass
	uninvited atomic.Pointer[map[string]string]          // by server id: why a server may not join; from the last pass
	silent    map[string]silence                         // by server id: newcomers that did not reply well; guarded by Membership.changing
	signs     signs                                      // guarded by Membership.changing
	disks     *diskpolicy.Policy
	offers    offers
	drains    memberDrains
	progress  memberProgress
	rings     memberRings
	backups   memberBackups
}

// Lead does the leader's part until ctx ends: the cluster gets its id, the
// configuration follows the gossip, joiners are promoted. The node calls it when it is
// the established leader, after its barrier, and cancels ctx when it no longer leads.
// The error is nil when ctx ended.
func (m *Membership) Lead(ctx context.Context) error {
	r := m.raft.Load()
	if r == nil {
		return fmt.Errorf("lead before start")
	}
	ap := m.newAutopilot(r)
	l := &leadership{autopilot: ap, disks: m.newDiskPolicy(), signs: signs{began: time.Now()}}
	l.disks.Evaluate(raftconfig.Voters(m.configuration()), time.Now()) // this node's own disk counts from the start
	m.clocks.Forget()
	m.leadership.Store(l)
	ap.Start(ctx)
	var evaluating sync.WaitGroup
	evaluating.Go(func() { m.evaluate(ctx, l) })
	defer func() {
		evaluating.Wait()
		<-ap.Stop()
		m.leadership.Store(nil)
		m.clocks.Forget()
	}()
	ticker := time.NewTicker(m.cfg.Timing.Reconcile)
	defer ticker.Stop()
	for {
		// The next pass tries again what failed in this one.
		again := m.reconcileOnce(ctx)
		var retry <-chan time.Time
		if again {
			retry = time.After(m.cfg.Timing.Poll)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-retry:
		case <-m.toLeader:
			// Changes come in bursts; one look soon after the first covers all.
			if !sleep.For(ctx, m.cfg.Timing.Poll/10) {
				return nil
			}
		}
	}
}

// reconcileOnce makes one pass and reports whether another should follow soon.
func (m *Membership) reconcileOnce(ctx context.Context) (again bool) {
	// Only a state of version 2 can have several shards, and it has them from its first entry on.
	if m.cfg.Shards > 1 && m.cfg.Facts.ClusterID() == "" {
		if err := m.raiseVersion(ctx); err != nil {
			if ctx.Err() == nil {
				m.cfg.Logger.Warn("trying again", "error", err)
			}
			return true
		}
	}
	if err := m.nameCluster(ctx); err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("the cluster has no id yet; trying again", "error", err)
		}
		return true
	}
	if err := m.reconcile(ctx); err != nil {
		if ctx.Err() == nil && err.Error() != m.reconcileLogged {
			m.reconcileLogged = err.Error()
			m.cfg.Logger.Warn("the configuration does not follow the members yet; trying again", "error", err)
		}
		return true
	}
	m.reconcileLogged = ""
	if err := m.raiseVersion(ctx); err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("trying again", "error", err)
		}
		return true
	}
	return m.uninvitedWait() // each may have a valid invitation soon
}

// beginChange waits for the right to change the configuration. The caller calls
// end when it is done, unless there is an error.
func (m *Membership) beginChange(ctx context.Context) (end func(), err error) {
	select {
	case m.changing <- struct{}{}:
		return func() { <-m.changing }, nil
	case <-ctx.Done():
		return nil, job.NotApplied("another change of the cluster's members did not end in time: %w", ctx.Err())
	}
}

// nameCluster sets the cluster's id if it has none.
func (m *Membership) nameCluster(ctx context.Context) error {
	if m.cfg.Facts.ClusterID() != "" {
		return nil
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.Decisions.SetClusterID(ctx, hex.EncodeToString(id[:])); err != nil {
		return fmt.Errorf("propose cluster id: %w", err)
	}
	m.ClusterIDChanged()
	return nil
}
