package cluster

import (
	"tarry/cluster/diskpolicy"
	"tarry/cluster/diskspace"
)

// What a node does about its disk. It watches the free space (diskspace), tells
// the leader (membership, diskpolicy), and makes what room it can by shortening its log
// (trailing.go). The leader refuses adds while a majority has no room, and gives
// way to a voter with a better disk. What lies below the low-water mark is the
// reserve in which everything else goes on.

// diskHealth is what this node says of its disk.
func (n *Node) diskHealth() diskpolicy.Health {
	d := n.disk.State()
	return diskpolicy.Health{Low: d.Low, Free: d.Free, LogWrite: n.shard.stores.WriteTime()}
}

// diskChanged acts on a disk that is low, or not any more. It does not block.
func (n *Node) diskChanged(s diskspace.State) {
	n.members.Evaluate()
	if s.Low {
		n.shard.makeRoom()
	}
}

// warnings are what an operator should know of a node that can serve.
func (n *Node) warnings() (list []string) {
	if d := n.disk.State(); d.Low {
		list = append(list, "the disk of this node is low: "+d.String())
	}
	if why := n.members.AddsRefused(); why != "" {
		list = append(list, "adds are refused: "+why)
	}
	if why := n.members.ClockGuard().Warning(); why != "" {
		list = append(list, why)
	}
	return list
}
