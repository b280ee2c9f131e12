package membership

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// adoptFor is how long a heartbeat of a new leader waits for Raft's own goroutine to
// follow it, by an append of the same leader. Appends come at least once in 100 ms.
const adoptFor = 200 * time.Millisecond

var errNotFollowedYet = errors.New("this node does not follow the leader of that term yet")

// SetHeartbeatHandler notes beside cb who leads which term, and keeps from cb what
// would change the term. Raft (v1.7.3, processHeartbeat) answers heartbeats on the
// connection's goroutine, beside its own: a late heartbeat of term 4 and an append
// of term 5 that came to a node in term 3 together could leave it in term 4, so that
// it might have voted twice in term 5.
func (w *witness) SetHeartbeatHandler(cb func(raft.RPC)) {
	w.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if req, ok := rpc.Command.(*raft.AppendEntriesRequest); ok {
			w.m.receipts.led(req.Term, string(req.ID))
			if !w.m.followed(req.Term) {
				rpc.Respond(nil, errNotFollowedYet)
				return
			}
		}
		cb(rpc)
	})
}

// followed reports whether a heartbeat of a term leaves Raft's term alone: it is
// over, or that of the leader that this node follows. It blocks for adoptFor at most,
// until that is so.
func (m *Membership) followed(term uint64) bool {
	for end := time.Now().Add(adoptFor); ; time.Sleep(time.Millisecond) {
		if r := m.raft.Load(); r != nil {
			now := r.CurrentTerm()
			if term < now || term == now && r.State() == raft.Follower {
				return true
			}
		}
		if time.Now().After(end) {
			return false
		}
	}
}
