package membership

import (
	"fmt"
	"sync"
	"time"

	"tarry/cluster/membership/gossip"
)

// bindFor is how long a node that is in no cluster stays bound to a cluster of
// which no member is heard any more. It is far longer than the leader takes to
// add a node it has invited.
const bindFor = time.Minute

// affiliation is the cluster that this node belongs to or waits for. A node
// without Raft state binds itself to the first cluster that it hears of, so that
// two leaders that both hear of it cannot both take it in. The binding lives in
// memory: once the node has state, the state's own id counts.
type affiliation struct {
	mu    sync.Mutex
	bound string
	heard time.Time // of a member of the bound cluster, or of its invitation
}

// bind binds to id unless bound to another, and returns the binding.
func (a *affiliation) bind(id string, now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bound == "" {
		a.bound = id
	}
	if a.bound == id {
		a.heard = now
	}
	return a.bound
}

func (a *affiliation) id() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bound
}

// lapse ends a binding to a cluster that has not been heard of for bindFor.
func (a *affiliation) lapse(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bound == "" || now.Sub(a.heard) < bindFor {
		return false
	}
	a.bound = ""
	return true
}

// ClusterID is the id of the cluster that this node belongs to, or has bound
// itself to while it waits to be taken in; empty when there is neither.
func (m *Membership) ClusterID() string {
	if id := m.cfg.ClusterID(); id != "" {
		return id
	}
	return m.affiliation.id()
}

// foreignError is a refusal to gossip with a node of another cluster.
type foreignError struct {
	nodeID, theirs, ours string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("node %s belongs to cluster %s, this node to cluster %s: the two are kept apart", e.nodeID, e.theirs, e.ours)
}

// admit is gossip's question whether a node may be in the pool. It runs under
// gossip's locks.
func (m *Membership) admit(other gossip.Meta) error {
	if other.ClusterID == "" || other.ServerID == m.cfg.ServerID {
		return nil
	}
	ours := m.ClusterID()
	if ours == "" {
		if m.hasState() {
			return nil // our cluster has no id yet; the leader is about to give it one
		}
		ours = m.affiliation.bind(other.ClusterID, time.Now())
		poke(m.toStarter)
	}
	if ours != other.ClusterID {
		err := &foreignError{other.NodeID, other.ClusterID, ours}
		m.foreign.Store(err)
		return err
	}
	return nil
}
