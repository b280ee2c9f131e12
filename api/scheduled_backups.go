package api

import "tarry/job"

// scheduledBackups lists the backups that the cluster has made by itself.
func (s *server) scheduledBackups(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list := s.Operator.ScheduledBackups(ctx)
	w := &x.json
	w.success()
	objects(w, "backups", list.Backups, func(b job.ScheduledBackup) {
		w.text("name", b.Name)
		w.number("index", b.Index)
		w.timestamp("planned_at", b.Instant.UnixMilli())
		if !b.Taken.IsZero() {
			w.timestamp("taken_at", b.Taken.UnixMilli())
		}
		w.number("bytes", uint64(b.Bytes))
		w.textUnlessEmpty("base", b.Base)
		w.boolean("verified", b.Problem == "")
		w.textUnlessEmpty("problem", b.Problem)
		w.texts("nodes", b.Nodes)
	})
	objects(w, "nodes", list.Nodes, func(n job.NodeBackups) {
		w.text("id", n.ID)
		w.boolean("scheduled", n.Scheduled)
		w.number("more", n.More)
		w.textUnlessEmpty("error", n.Error)
	})
	w.endObject()
	return nil
}
