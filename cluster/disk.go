package cluster

import (
	"time"

	"tarry/cluster/diskspace"
)

// A node measures the free space of its disk (diskspace), reports it to the leader
// (membership, diskpolicy), and frees space by shortening its log (trailing.go). While no
// majority has enough space the leader refuses adds. A leader with a low disk transfers
// leadership to a voter with a better one. The space below the low-water mark is a reserve
// for all other operations.

// diskChanged is called when the disk becomes low or is no longer low. It does not block.
func (n *Node) diskChanged(s diskspace.State) {
	n.members.Evaluate()
	if s.Low {
		for _, g := range n.groups {
			g.shard.makeRoom()
		}
	}
}

// warnings returns what an operator should know about a node that can serve.
func (n *Node) warnings() (list []string) {
	if d := n.disk.State(); d.Low {
		list = append(list, "the disk of this node is low: "+d.String())
	}
	for _, p := range n.leaderlessShards(time.Now()) {
		list = append(list, p.Text)
	}
	if why := n.raftTrouble(); why != "" {
		list = append(list, "this node does not take part: "+why)
	}
	if why := n.members.AddsRefused(); why != "" {
		list = append(list, "adds are refused: "+why)
	}
	if why := n.members.ClockGuard().Warning(); why != "" {
		list = append(list, why)
	}
	if p := n.members.Foreign(time.Now()); p != nil {
		list = append(list, p.Text)
	}
	if n.opensToAnyNode() {
		list = append(list, "tokens are enforced, but any node that finds the cluster becomes a member, which may do everything: run \"tarry cluster admission invited\", or set --cluster-tls-mode=require on all nodes")
	}
	if n.backups != nil {
		if _, why := n.backups.State(); why != "" {
			list = append(list, why)
		}
	}
	return list
}
