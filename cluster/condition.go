package cluster

import (
	"time"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/report"
)

// condition implements membership.Condition.
type condition struct{ n *Node }

func (c condition) Disk() diskpolicy.Health {
	d := c.n.disk.State()
	return diskpolicy.Health{Low: d.Low, Free: d.Free, LogWrite: c.n.shard.stores.WriteTime()}
}

func (c condition) Trouble() string { return c.n.raftTrouble() }
func (c condition) Drained() bool   { return c.n.Draining() }

// Problems returns what this node knows that belongs into the cluster's health while it leads.
func (c condition) Problems(now time.Time) []*report.Problem {
	n := c.n
	list := append(n.mux.CertificateProblems(now), n.standbyProblems()...)
	if p := n.members.Foreign(now); p != nil {
		list = append(list, p)
	}
	for _, use := range n.shard.machine.LimitUses() {
		if why := use.Reason(); why != "" {
			list = append(list, report.NewProblem(report.LimitNear, "", "%s", why))
		}
	}
	if n.cfg.Problems != nil {
		list = append(list, n.cfg.Problems()...)
	}
	return list
}
