package membership

import (
	"context"
	"sync/atomic"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/raftconfig"
)

// A node whose log is behind may know that a node was removed, and not that it was admitted
// and has joined again. If that node leads now, it is the one that must send the missing
// entries. So a node whose Raft connection is refused only because it was removed is let in
// when a member of this node's own configuration has that very server in its configuration.

// vouching is about one server at a time: only a leader opens connections that matter here.
type vouching struct {
	asked     atomic.Pointer[string] // the server to ask about; nil: none
	confirmed atomic.Pointer[string] // the last server that a member has vouched for
}

// wanted returns the server to ask members about; empty: none.
func (v *vouching) wanted() string {
	if id := v.asked.Load(); id != nil {
		return *id
	}
	return ""
}

// has reports whether a member has vouched for a server.
func (v *vouching) has(serverID string) bool {
	id := v.confirmed.Load()
	return id != nil && *id == serverID
}

// confirm records that a member has a server in its configuration.
func (v *vouching) confirm(serverID string) {
	v.confirmed.Store(&serverID)
}

// vouchedFor reports whether a member has vouched for a server. If not, members are asked.
func (m *Membership) vouchedFor(serverID string) bool {
	if m.vouching.has(serverID) {
		return true
	}
	m.vouching.asked.Store(&serverID) // watch asks soon, not at once: this is a stranger until then
	return false
}

// seekVouchers asks the members of this node's configuration about the server that wants to
// be let in, if there is one. The server connects again by itself.
func (m *Membership) seekVouchers(ctx context.Context) {
	id := m.vouching.wanted()
	if id == "" {
		return
	}
	var members []gossip.Member
	for _, n := range m.others() {
		if m.Configured(n.ServerID) {
			members = append(members, n)
		}
	}
	m.askAll(ctx, members)
	m.vouching.asked.Store(nil) // until it connects again
	if m.vouching.has(id) {
		m.cfg.Logger.Info("a node that was removed has joined again, as other members say", "member", raftconfig.NodeID(id), "server", id)
	}
}
