package raftconfig

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestVotersAndQuorum(t *testing.T) {
	c := raft.Configuration{Servers: []raft.Server{
		{ID: "n2.b", Suffrage: raft.Voter}, {ID: "n1.a", Suffrage: raft.Nonvoter}, {ID: "n3.c", Suffrage: raft.Voter},
	}}
	require.Equal(t, []raft.ServerID{"n2.b", "n3.c"}, Voters(c))
	require.True(t, Contains(c, "n1.a"))
	require.False(t, Contains(c, "n1"))
	for voters, quorum := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		require.Equal(t, quorum, Quorum(voters))
	}
	require.Empty(t, Latest(nil).Servers)
}

func TestNodeID(t *testing.T) {
	for server, node := range map[string]string{"n1.ab": "n1", "a.b.cd": "a.b", "n1": "n1", ".ab": ".ab", "": ""} {
		require.Equal(t, node, NodeID(server))
		require.Equal(t, node, NodeID(raft.ServerID(server)))
	}
}
