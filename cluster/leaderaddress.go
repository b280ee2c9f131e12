package cluster

import "time"

// leaderAddress is where clients reach the leader.
type leaderAddress struct {
	id    string // Raft server id
	http  string // host:port
	until time.Time
}

// leaderAddressLasts is how long an address is used before the members' replies are looked at
// again: the address of a node changes when it is restarted.
const leaderAddressLasts = time.Second

// LeaderAddress implements api.Operator. Each reply names the leader, so the address is
// kept and no lock is taken each time.
func (n *Node) LeaderAddress() string {
	l, _ := n.shard.leaders.Get()
	if l.ID == "" {
		return ""
	}
	now := time.Now()
	if a := n.leaderAddress.Load(); a != nil && a.id == l.ID && now.Before(a.until) {
		return a.http
	}
	http := n.members.HTTPAddr(l.ID)
	if http != "" {
		n.leaderAddress.Store(&leaderAddress{l.ID, http, now.Add(leaderAddressLasts)})
	}
	return http
}
