package ackguard

import "github.com/hashicorp/raft"

// SetHeartbeatHandler also records the leader of each term, and does not pass to cb
// heartbeats that could change the term. Raft (v1.7.3, processHeartbeat) handles
// heartbeats on the connection's goroutine, concurrently with its own. If a late
// heartbeat of term 4 and an append of term 5 reached a node in term 3 together, they
// could leave it in term 4, and it could then vote twice in term 5. Raft calls
// SetHeartbeatHandler once, when it can be shut down.
func (a *ackRecorder) SetHeartbeatHandler(cb func(raft.RPC)) {
	a.relaying.Go(a.relay)
	a.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if !a.g.acceptsRPC(rpc) {
			return
		}
		req, ok := rpc.Command.(*raft.AppendEntriesRequest)
		if ok {
			a.g.acks.noteLeader(req.Term, string(req.ID))
		}
		if ok && !a.g.keepsTerm(req.Term) {
			a.pass(rpc)
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

// Consumer returns the messages for Raft's own goroutine, including the heartbeats that
// could change the term.
func (a *ackRecorder) Consumer() <-chan raft.RPC { return a.calls }

// relay passes the transport's messages to Raft until Close.
func (a *ackRecorder) relay() {
	for {
		select {
		case rpc := <-a.NetworkTransport.Consumer():
			if a.g.acceptsRPC(rpc) {
				a.pass(rpc)
			}
		case <-a.closed:
			return
		}
	}
}

func (a *ackRecorder) pass(rpc raft.RPC) {
	select {
	case a.calls <- rpc:
	case <-a.closed:
		rpc.Respond(nil, raft.ErrTransportShutdown)
	}
}

// Close ends the transport. Raft calls it when it has ended.
func (a *ackRecorder) Close() error {
	a.closing.Do(func() { close(a.closed) })
	a.relaying.Wait()
	return a.NetworkTransport.Close()
}
