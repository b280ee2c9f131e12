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
)

// changeTimeout bounds the wait for one change of the configuration to be taken
// up by Raft. Its commit is bounded by Raft: a leader that reaches no quorum
// steps down.
const changeTimeout = 10 * time.Second

// reign is what exists only while this node leads.
type reign struct {
	pilot    *autopilot.Autopilot
	problems atomic.Pointer[map[string]string] // by node id: why it cannot be taken in, or removed; from the last pass
	reports  reports
	clocks   atomic.Pointer[clockVerdict] // of the last look; nil: none yet
	noRoom   atomic.Pointer[string]       // why adds are refused; nil or empty: they are not
	offers   offers
}

// Lead does the leader's part until ctx ends: the cluster gets its id, the
// configuration follows the gossip, joiners are promoted. The node calls it when
// it is the established leader, its barrier done, and cancels ctx when it is no
// longer. The error is nil when ctx ended.
func (m *Membership) Lead(ctx context.Context) error {
	r := m.raft.Load()
	if r == nil {
		return fmt.Errorf("lead before start")
	}
	pilot := m.newPilot(r)
	g := &reign{pilot: pilot}
	m.judgeRoom(g, m.conditions(g)) // what this node knows of itself counts from the start
	m.reign.Store(g)
	pilot.Start(ctx)
	var judging sync.WaitGroup
	judging.Go(func() { m.judge(ctx, g) })
	defer func() {
		judging.Wait()
		<-pilot.Stop()
		m.reign.Store(nil)
	}()
	ticker := time.NewTicker(m.cfg.Timing.Reconcile)
	defer ticker.Stop()
	for {
		// Whatever goes wrong in a pass heals in the next.
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
			// News come in flocks; one look soon after the first serves all.
			if pause(ctx, m.cfg.Timing.Poll/10) != nil {
				return nil
			}
		}
	}
}

// reconcileOnce makes one pass and says whether another soon is worth it.
func (m *Membership) reconcileOnce(ctx context.Context) (again bool) {
	if err := m.nameCluster(ctx); err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("the cluster has no id yet; trying again", "error", err)
		}
		return true
	}
	if err := m.reconcile(ctx); err != nil {
		if ctx.Err() == nil && err.Error() != m.reconcileSaid {
			m.reconcileSaid = err.Error()
			m.cfg.Logger.Warn("the configuration does not follow the members yet; trying again", "error", err)
		}
		return true
	}
	m.reconcileSaid = ""
	if err := m.raiseVersion(ctx); err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("trying again", "error", err)
		}
		return true
	}
	return false
}

// nameCluster gives the cluster its id, once.
func (m *Membership) nameCluster(ctx context.Context) error {
	if m.cfg.ClusterID() != "" {
		return nil
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.ProposeClusterID(ctx, hex.EncodeToString(id[:])); err != nil {
		return fmt.Errorf("propose cluster id: %w", err)
	}
	m.ClusterIDChanged()
	return nil
}
