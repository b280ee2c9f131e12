package cluster

import (
	"time"

	"tarry/cluster/diskpolicy"
)

// condition implements membership.Condition.
type condition struct{ n *Node }

func (c condition) Disk() diskpolicy.Health {
	d := c.n.disk.State()
	return diskpolicy.Health{Low: d.Low, Free: d.Free, LogWrite: c.n.shard.stores.WriteTime()}
}

func (c condition) Trouble() string { return c.n.raftTrouble() }
func (c condition) Drained() bool   { return c.n.Draining() }

// Warnings returns what this node knows that is a reason for the cluster not to be healthy.
func (c condition) Warnings(now time.Time) []string {
	n := c.n
	list := append(n.mux.CertificateWarnings(now), n.standbyReasons()...)
	if why := n.members.Foreign(now); why != "" {
		list = append(list, why)
	}
	for _, use := range n.shard.machine.LimitUses() {
		if why := use.Reason(); why != "" {
			list = append(list, why)
		}
	}
	if n.cfg.Warnings != nil {
		list = append(list, n.cfg.Warnings()...)
	}
	return list
}
