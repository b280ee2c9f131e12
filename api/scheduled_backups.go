package api

import "tarry/cluster/report"

// scheduledBackups lists the backups that the cluster has made by itself.
func (s *server) scheduledBackups(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list := s.Operator.ScheduledBackups(ctx)
	w := &x.json
	w.success()
	objects(w, "backups", list.Backups, func(b *report.ScheduledBackup) {
		w.text("name", b.Name)
		w.number("index", b.Index)
		w.timestamp("planned_at", b.InstantMs)
		if b.TakenMs != 0 {
			w.timestamp("taken_at", b.TakenMs)
		}
		w.number("bytes", uint64(b.Bytes))
		w.textUnlessEmpty("base", b.Base)
		w.boolean("verified", b.Problem == "")
		w.textUnlessEmpty("problem", b.Problem)
		w.texts("nodes", b.Nodes)
	})
	objects(w, "nodes", list.Nodes, func(n *report.NodeBackups) {
		w.text("id", n.Id)
		w.boolean("scheduled", n.Scheduled)
		w.number("more", n.More)
		w.textUnlessEmpty("error", n.Error)
	})
	w.endObject()
	return nil
}
