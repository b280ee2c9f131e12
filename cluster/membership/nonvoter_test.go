package membership

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
	"github.com/stretchr/testify/require"
)

func TestOnlyServersThatMayVoteArePromoted(t *testing.T) {
	stable := autopilot.ServerHealth{Healthy: true, StableSince: time.Now().Add(-time.Hour)}
	server := func(kind autopilot.NodeType, state autopilot.RaftState) *autopilot.ServerState {
		return &autopilot.ServerState{Server: autopilot.Server{NodeType: kind}, State: state, Health: stable}
	}
	changes := onlyVoters{new(autopilot.StablePromoter)}.CalculatePromotionsAndDemotions(
		&autopilot.Config{ServerStabilizationTime: time.Second},
		&autopilot.State{Servers: map[raft.ServerID]*autopilot.ServerState{
			"leader": server(autopilot.NodeVoter, autopilot.RaftLeader), "new": server(autopilot.NodeVoter, autopilot.RaftNonVoter),
			"reader": server(nonVoter, autopilot.RaftNonVoter),
		}})
	require.Equal(t, []raft.ServerID{"new"}, changes.Promotions)
	require.Empty(t, changes.Demotions)
}

func TestHealthOfANonVoter(t *testing.T) {
	s := &autopilot.ServerState{Server: autopilot.Server{NodeStatus: autopilot.NodeAlive, NodeType: nonVoter}, State: autopilot.RaftNonVoter, Health: autopilot.ServerHealth{Healthy: true}}
	require.Empty(t, ailment("n4", s, nil, true, ""))
	s.Server.NodeType = autopilot.NodeVoter
	require.Contains(t, ailment("n4", s, nil, true, "").Text, "does not vote yet")
	s.Server.NodeStatus, s.Server.NodeType = autopilot.NodeFailed, nonVoter
	require.Contains(t, ailment("n4", s, nil, false, "").Text, "is not alive")
	require.Contains(t, ailment("n4", s, nil, true, "").Text, "has come back", "it was asked some seconds ago")
}
