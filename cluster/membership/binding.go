package membership

import (
	"fmt"
	"sync"
	"time"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/report"
)

// bindFor is how long a node that is in no cluster stays bound to a cluster without
// live members. It is far longer than the leader takes to add a node it has invited.
const bindFor = time.Minute

// clusterBinding is the cluster that this node belongs to or waits for. A node
// without Raft state binds itself to the first cluster that it discovers, so that
// two leaders that both see it cannot both add it. The binding is only in
// memory: once the node has state, the state's own id counts.
type clusterBinding struct {
	mu    sync.Mutex
	bound string
	seen  time.Time // when a member of that cluster was last alive, or invited this node
}

// bind binds to id unless bound to another, and returns the binding.
func (b *clusterBinding) bind(id string, now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound == "" {
		b.bound = id
	}
	if b.bound == id {
		b.seen = now
	}
	return b.bound
}

func (b *clusterBinding) id() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bound
}

// lapse ends a binding to a cluster that had no live member for bindFor. It reports
// whether it did.
func (b *clusterBinding) lapse(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound == "" || now.Sub(b.seen) < bindFor {
		return false
	}
	b.bound = ""
	return true
}

// ClusterID returns the id of the cluster that this node belongs to, or that it has bound
// itself to while it waits to be added; empty: neither.
func (m *Membership) ClusterID() string {
	if id := m.cfg.Facts.ClusterID(); id != "" {
		return id
	}
	return m.binding.id()
}

// foreignError is a refusal to gossip with a node of another cluster.
type foreignError struct {
	nodeID, theirs, ours string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("node %s belongs to cluster %s, this node to cluster %s: clusters do not mix", e.nodeID, e.theirs, e.ours)
}

// foreignFor is for how long a node of another cluster that was met is a warning. It is longer than
// the time between two tries to reach the addresses of --join.
const foreignFor = time.Minute

// Foreign describes another cluster that this node has met, while it looks for others by --join and
// nobody of its own cluster is there; nil: none.
func (m *Membership) Foreign(now time.Time) *report.Problem {
	f := m.foreign.Load()
	if f == nil || now.Sub(time.Unix(0, m.foreignAt.Load())) > foreignFor || len(m.members()) > 1 || len(m.seeds.list()) == 0 {
		return nil
	}
	return report.NewProblem(report.OtherCluster, "", "this node has found another cluster, and nobody of its own: node %s belongs to cluster %s, this node to cluster %s, and clusters do not mix: correct --join", f.nodeID, f.theirs, f.ours)
}

// admit returns an error when a node may not be in the gossip pool. It is called with
// gossip's locks held.
func (m *Membership) admit(other gossip.Meta) error {
	if other.ClusterID == "" || other.ServerID == m.cfg.ServerID {
		return nil
	}
	ours := m.ClusterID()
	if ours == "" {
		if m.hasState() {
			return nil // our cluster has no id yet; the leader is about to give it one
		}
		ours = m.binding.bind(other.ClusterID, time.Now())
		poke(m.toStarter)
	}
	if ours != other.ClusterID {
		err := &foreignError{other.NodeID, other.ClusterID, ours}
		m.foreign.Store(err)
		m.foreignAt.Store(time.Now().UnixNano())
		return err
	}
	return nil
}
