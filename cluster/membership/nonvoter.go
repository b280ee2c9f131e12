package membership

import (
	"slices"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/membership/gossip"
)

// nonVoter is the type of a node that was started not to vote. It says so in its gossip record
// and in its replies, and only nodes that are alive are promoted, so no state needs to keep it.
const nonVoter autopilot.NodeType = "non-voter"

// neverVotes reports whether a server is alive and was started not to vote.
func (m *Membership) neverVotes(id raft.ServerID) bool {
	return slices.ContainsFunc(m.members(), func(n gossip.Member) bool { return n.ServerID == string(id) && n.NonVoter })
}

// onlyVoters promotes all stable servers but those.
type onlyVoters struct{ *autopilot.StablePromoter }

// GetNodeTypes keeps the types that KnownServers has given.
func (onlyVoters) GetNodeTypes(*autopilot.Config, *autopilot.State) map[raft.ServerID]autopilot.NodeType {
	return nil
}

// CalculatePromotionsAndDemotions implements autopilot.Promoter.
func (p onlyVoters) CalculatePromotionsAndDemotions(c *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	changes := p.StablePromoter.CalculatePromotionsAndDemotions(c, s)
	changes.Promotions = slices.DeleteFunc(changes.Promotions, func(id raft.ServerID) bool {
		return !p.IsPotentialVoter(s.Servers[id].Server.NodeType)
	})
	return changes
}
