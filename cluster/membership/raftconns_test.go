package membership

import (
	"context"
	"testing"
)

func TestTheOpenConnectionsOfARemovedServerAreClosed(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	gone := w.leader() // it has connections to the others
	id := gone.serverID()
	from := func(n *node) int { return len(n.raftConns.from(func(caller string) bool { return caller == id })) }
	eventually(t, "the leader is connected to the others", func() bool {
		for _, n := range nodes {
			if n != gone && from(n) == 0 {
				return false
			}
		}
		return true
	})
	eventually(t, "it is removed", func() bool { return gone.Remove(context.Background(), gone.id) == nil || gone.Removed() })
	eventually(t, "its connections are closed", func() bool {
		for _, n := range nodes {
			if n != gone && from(n) > 0 {
				return false
			}
		}
		return true
	})
}
