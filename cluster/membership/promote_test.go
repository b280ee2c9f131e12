package membership

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// Autopilot may want to promote a server that was removed since it looked.
func TestARemovedServerIsNotPromoted(t *testing.T) {
	t.Parallel()
	w, _ := startTrio(t)
	leader := w.leader()
	p := promoter{leader.raft, leader.Membership}
	require.ErrorContains(t, p.AddVoter("n4.1", "localhost:1", 0, 0).Error(), "removed meanwhile")
	require.False(t, leader.Configured("n4.1"))

	// One that is forgotten and not yet removed, because the quorum would be lost.
	other := other(w.nodes, leader)
	leader.fsm.forget(other.serverID())
	require.ErrorContains(t, p.AddVoter(raft.ServerID(other.serverID()), "localhost:1", 0, 0).Error(), "removed meanwhile")
}
