package api

import (
	"tarry/api/wire"
	"tarry/cluster/report"
)

// scheduledBackups lists the backups that the cluster has made by itself.
func (s *server) scheduledBackups(x *call) (r wire.ScheduledBackups, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list := s.Operator.ScheduledBackups(ctx)
	r.Backups = each(list.Backups, func(b *report.ScheduledBackup) wire.ScheduledBackup {
		return wire.ScheduledBackup{
			Name: b.Name, Index: b.Index, PlannedAt: wire.Time(b.InstantMs), TakenAt: wire.Time(b.TakenMs), Bytes: uint64(b.Bytes), Base: b.Base,
			Verified: b.Problem == "", Problem: b.Problem, Nodes: b.Nodes,
		}
	})
	r.Nodes = each(list.Nodes, func(n *report.NodeBackups) wire.NodeBackups {
		return wire.NodeBackups{ID: n.Id, Scheduled: n.Scheduled, More: n.More, Error: n.Error}
	})
	return r, nil
}
