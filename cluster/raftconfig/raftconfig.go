// Package raftconfig reads Raft's configuration: who votes, how many are a
// quorum, and which node a server is. It knows hashicorp/raft alone.
//
// A server id is "<node id>.<incarnation>": a node whose data is gone comes back
// as another server of the same node.
package raftconfig

import (
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// Latest returns the latest configuration of a running Raft, committed or not; one
// without servers if r is nil. It answers from memory. Raft does not tell the index of
// its entry here (the future's Index is always zero), so a change cannot be bound to
// the configuration that it was decided on: whoever changes it holds a lock meanwhile.
func Latest(r *raft.Raft) raft.Configuration {
	if r == nil {
		return raft.Configuration{}
	}
	return r.GetConfiguration().Configuration()
}

// Voters lists the servers that vote, in the order of the configuration.
func Voters(c raft.Configuration) []raft.ServerID {
	var ids []raft.ServerID
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// Contains reports whether a server is in a configuration, voter or not.
func Contains(c raft.Configuration, id raft.ServerID) bool {
	return slices.ContainsFunc(c.Servers, func(s raft.Server) bool { return s.ID == id })
}

// Quorum is the smallest majority of so many voters.
func Quorum(voters int) int { return voters/2 + 1 }

// NodeID is the part of a server id that users see.
func NodeID[ID ~string](serverID ID) string {
	if i := strings.LastIndexByte(string(serverID), '.'); i > 0 {
		return string(serverID[:i])
	}
	return string(serverID)
}
