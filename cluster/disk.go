package cluster

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"tarry/cluster/diskspace"
	"tarry/cluster/membership"
)

// What a node does about its disk. It watches the free space (diskspace), tells
// the leader (membership), and makes what room it can by shortening its log
// (trailing.go). The leader refuses adds while a majority has no room, and gives
// way to a voter with a better disk. What lies below the low-water mark is the
// reserve in which everything else goes on.

// condition is what this node says of its disk.
func (n *Node) condition() membership.Condition {
	d := n.disk.State()
	return membership.Condition{DiskLow: d.Low, DiskFree: d.Free, LogWrite: n.Shard.stores.WriteTime()}
}

// diskChanged acts on a disk that is low, or not any more. It does not block.
func (n *Node) diskChanged(s diskspace.State) {
	n.members.ConditionChanged()
	if s.Low {
		n.Shard.makeRoom()
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
	if why := n.members.ClockOff(); why != "" {
		list = append(list, why)
	}
	return list
}

// whenFull says what to do about a failure for want of disk space.
func (n *Node) whenFull(err error) error {
	// The state's store tells some of its failures as text only.
	if err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: free some space there and start the node again; "+
		"delete nothing in the directory but, if it is there, the file "+
		diskspace.BallastFile+"; nothing that was acknowledged is lost: %w", n.cfg.DataDir, err)
}
