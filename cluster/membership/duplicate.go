package membership

import (
	"context"
	"maps"

	"tarry/cluster/membership/gossip"
)

// warnOfDuplicates logs each other node that was started with this node's id: once, and
// again if it was gone in between or has another address. Gossip alone does not prove a
// duplicate: after this node lost its data, gossip reports its earlier incarnation as
// alive for a while. A server that replies under its own id is another process. warned
// holds the logged addresses by server id.
func (m *Membership) warnOfDuplicates(ctx context.Context, warned map[string]string) {
	live := make(map[string]bool)
	var ask []gossip.Member
	for _, n := range m.others() {
		if n.NodeID != m.cfg.NodeID {
			continue
		}
		live[n.ServerID] = true
		if warned[n.ServerID] != n.ClusterAddr {
			ask = append(ask, n)
		}
	}
	ask = m.toAsk(ask)
	maps.DeleteFunc(warned, func(serverID, _ string) bool { return !live[serverID] })
	for i, status := range m.askAll(ctx, ask) {
		if status == nil {
			continue
		}
		other := ask[i]
		warned[other.ServerID] = other.ClusterAddr
		m.cfg.Logger.Warn("another node has this node's id; "+wayOut(m.hasState(), status.HasState),
			"other_address", other.ClusterAddr, "other_server", other.ServerID)
	}
}

// wayOut returns what to do about two nodes with one id. Where both have Raft state, nobody but the
// operator knows which of them has jobs that are nowhere else, so no directory is to be removed.
func wayOut(thisHasState, otherHasState bool) string {
	which := "one of the two"
	switch {
	case thisHasState && otherHasState:
		return "stop the one that is a copy or was started by mistake, and keep its data directory until cluster health says yes; both have data, and a node of its own needs another --node-id and an empty directory"
	case thisHasState && !otherHasState:
		which = "the other"
	case otherHasState && !thisHasState:
		which = "this one"
	}
	return "stop " + which + ", move its data directory away and start it with another --node-id"
}
