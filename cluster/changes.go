package cluster

import (
	"tarry/dispatch"
	"tarry/fsm"
)

// changed handles the changes of a batch of the log. It runs on the state machine's
// goroutine and must not block.
func (s *Shard) changed(c fsm.Changes) {
	s.progress.advanced()
	for _, m := range c.Marks {
		s.digestMark(m)
	}
	if c.Cluster {
		poke(s.toMigrate)
		s.cfg.ClusterChanged()
	}
	l := s.leadership.Load()
	if l == nil {
		return
	}
	s.timer.Notify()
	if c.Schedules {
		s.schedules.Notify()
	}
	l.dispatcher.Update(updates(c.Topics))
}

func updates(cs []fsm.TopicChange) []dispatch.Update {
	us := make([]dispatch.Update, len(cs))
	for i, c := range cs {
		us[i] = dispatch.Update{Topic: c.Name, Ready: c.Ready, NextDue: c.NextDue, Soon: c.Soon}
	}
	return us
}
