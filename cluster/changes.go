package cluster

import (
	"time"

	"tarry/dispatch"
	"tarry/fsm"
	"tarry/internal/rates"
	"tarry/job"
)

// changed handles the changes of a batch of the log. It runs on the state machine's
// goroutine and must not block.
func (s *Shard) changed(c fsm.Changes) {
	s.progress.advanced()
	s.replay.advanced()
	for _, m := range c.Marks {
		s.digestMark(m)
	}
	s.marks.reach(s.machine.Applied().Index)
	if c.Cluster {
		poke(s.toMigrate)
		s.cfg.Host.ClusterChanged()
	}
	if observe := s.timeouts.Load(); observe != nil && len(c.Timeouts) > 0 {
		(*observe)(c.Timeouts)
	}
	l := s.leadership.Load()
	s.count(c, l != nil)
	if l == nil {
		return
	}
	s.timer.Notify()
	if c.Schedules {
		s.schedules.Notify()
	}
	l.dispatcher.Update(updates(c.Topics))
	for _, e := range c.Effects {
		l.ahead.tookEffect(e)
	}
	l.ahead.notify()
}

// ObserveTimeouts lets f know of the reservations that expire, as this node applies them. f
// must not block, nor keep the slice.
func (s *Shard) ObserveTimeouts(f func([]job.Timeout)) { s.timeouts.Store(&f) }

// count counts what happened to the jobs of each topic. The metrics count only on the
// leader, so that a sum over the nodes counts each event once.
func (s *Shard) count(c fsm.Changes, leads bool) {
	now := s.machine.Applied().ClockMS
	for i := range c.Events {
		s.rates.Record(now, c.Topics[i].Name, &c.Events[i])
		if leads {
			s.topics.Record(now, c.Topics[i].Name, &c.Events[i])
		}
	}
}

// Rates implements api.Queue.
func (s *Shard) Rates(topic string) rates.Series { return s.rates.Topic(s.queueTime(), topic) }

// TotalRates implements api.Queue.
func (s *Shard) TotalRates() rates.Series { return s.rates.Total(s.queueTime()) }

// queueTime returns the present by the queue's clock, as far as this node knows it.
func (s *Shard) queueTime() time.Time {
	if s.dispatcher() != nil {
		return s.Now()
	}
	return s.cfg.Host.Wall()
}

func updates(cs []fsm.TopicChange) []dispatch.Update {
	us := make([]dispatch.Update, len(cs))
	for i, c := range cs {
		us[i] = dispatch.Update{Topic: c.Name, Ready: c.Ready, Held: c.Held, NextDue: c.NextDue, Soon: c.Soon}
	}
	return us
}
