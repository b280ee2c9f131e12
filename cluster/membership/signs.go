package membership

import (
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
)

// signs are when the members were last alive, as far as gossip has told this leader. Of the time
// before it led it knows nothing.
type signs struct {
	began time.Time
	last  map[raft.ServerID]time.Time
}

// heard is called in each pass.
func (s *signs) heard(members []raft.Server, find func(serverID string) (gossip.Member, bool), now time.Time) {
	last := make(map[raft.ServerID]time.Time, len(members))
	for _, member := range members {
		last[member.ID] = s.began
		if at, ok := s.last[member.ID]; ok {
			last[member.ID] = at
		}
		if _, alive := find(string(member.ID)); alive {
			last[member.ID] = now
		}
	}
	s.last = last
}

// goneFor returns when a member will have been gone for so long.
func (s *signs) goneFor(id raft.ServerID, long time.Duration) time.Time {
	if at, ok := s.last[id]; ok {
		return at.Add(long)
	}
	return s.began.Add(long)
}
