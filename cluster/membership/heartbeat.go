package membership

import (
	"github.com/hashicorp/raft"
)

// SetHeartbeatHandler notes beside cb who leads which term, and keeps from cb what
// could change the term. Raft (v1.7.3, processHeartbeat) answers heartbeats on the
// connection's goroutine, beside its own: a late heartbeat of term 4 and an append
// of term 5 that came to a node in term 3 together could leave it in term 4, so that
// it might have voted twice in term 5. Raft calls it once, when it can be shut down.
func (w *witness) SetHeartbeatHandler(cb func(raft.RPC)) {
	w.relaying.Go(w.relay)
	w.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if !w.m.acceptsRPC(rpc) {
			return
		}
		req, ok := rpc.Command.(*raft.AppendEntriesRequest)
		if ok {
			w.m.receipts.led(req.Term, string(req.ID))
		}
		if ok && !w.m.leavesTerm(req.Term) {
			w.pass(rpc)
			return
		}
		cb(rpc)
	})
}

// leavesTerm reports whether a heartbeat of a term leaves Raft's own alone: it is
// over, or that of the leader that this node follows.
func (m *Membership) leavesTerm(term uint64) bool {
	r := m.raft.Load()
	if r == nil {
		return false
	}
	now := r.CurrentTerm()
	return term < now || term == now && r.State() == raft.Follower
}

// Consumer gives what Raft's own goroutine answers, such heartbeats too.
func (w *witness) Consumer() <-chan raft.RPC { return w.calls }

// relay hands on what the transport receives, until Close.
func (w *witness) relay() {
	for {
		select {
		case rpc := <-w.NetworkTransport.Consumer():
			if w.m.acceptsRPC(rpc) {
				w.pass(rpc)
			}
		case <-w.closed:
			return
		}
	}
}

func (w *witness) pass(rpc raft.RPC) {
	select {
	case w.calls <- rpc:
	case <-w.closed:
		rpc.Respond(nil, raft.ErrTransportShutdown)
	}
}

// Close ends the transport. Raft calls it when it has ended.
func (w *witness) Close() error {
	w.closing.Do(func() { close(w.closed) })
	w.relaying.Wait()
	return w.NetworkTransport.Close()
}
