package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// promoter is Raft as autopilot uses it. Autopilot decides by a view of the members that is up
// to some seconds old, and Raft adds a voter that is in no configuration: without the check a
// server that was removed meanwhile would be a member again.
type promoter struct {
	*raft.Raft
	m *Membership
}

// AddVoter makes a member a voter. It waits for other changes of the configuration, and
// returns when the change is committed.
func (p promoter) AddVoter(id raft.ServerID, addr raft.ServerAddress, prevIndex uint64, timeout time.Duration) raft.IndexFuture {
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	end, err := p.m.beginChange(ctx)
	if err != nil {
		return noChange{err}
	}
	defer end()
	if !p.m.Configured(string(id)) || p.m.cfg.Facts.Forgotten(string(id)) {
		return noChange{fmt.Errorf("server %s was removed meanwhile", id)}
	}
	f := p.Raft.AddVoter(id, addr, prevIndex, timeout)
	_ = f.Error() // the caller has it from the future
	return f
}

// noChange is the outcome of a change that was not made.
type noChange struct{ err error }

func (n noChange) Error() error  { return n.err }
func (n noChange) Index() uint64 { return 0 }
