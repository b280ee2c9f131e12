package ackguard

import "github.com/hashicorp/raft"

// SetHeartbeatHandler also records the leader of each term, and does not pass to cb
// heartbeats that could change the term. Raft (v1.8.0, processHeartbeat) handles
// heartbeats on the connection's goroutine, concurrently with its own. If a late
// heartbeat of term 4 and an append of term 5 reached a node in term 3 together, they
// could leave it in term 4, and it could then vote twice in term 5. Those go to Raft's own
// goroutine, as all do until this is called.
func (a *Transport) SetHeartbeatHandler(cb func(raft.RPC)) {
	a.Transport.SetHeartbeatHandler(func(rpc raft.RPC) {
		req, ok := rpc.Command.(*raft.AppendEntriesRequest)
		if ok {
			a.g.acks.noteLeader(req.Term, string(req.ID))
		}
		if ok && !a.g.keepsTerm(req.Term) {
			a.Deliver(rpc)
			return
		}
		cb(rpc)
	})
}

// keepsTerm reports whether a heartbeat of a term leaves Raft's own term unchanged:
// the term is over, or it is that of the leader that this node follows.
func (g *Guard) keepsTerm(term uint64) bool {
	r := g.raft.Load()
	if r == nil {
		return false
	}
	now := r.CurrentTerm()
	return term < now || term == now && r.State() == raft.Follower
}
