package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

const (
	// dueSchedules and dueRuns bound what one entry does for schedules: its
	// operations are small, but the jobs of the runs are written on every node.
	dueSchedules = 100
	dueRuns      = 1000
	dueRunBytes  = job.MaxAtomicAddBytes
)

// scheduler is the shard for the timer of schedules. Schedules have their own timer,
// because the operation Advance does nothing for a schedule that is due: only the leader
// can compute its instants.
type scheduler struct{ *Shard }

// NextDue implements timer.Shard.
func (s scheduler) NextDue() int64 { return s.machine.NextSchedule() }

// Advance implements timer.Shard: it plans the runs of the schedules that are due and
// proposes them. The state machine refuses those of a schedule that has changed in
// between; the next call plans them again.
func (s scheduler) Advance(ctx context.Context) error {
	if why := s.cfg.Host.AddsRefused(); why != "" {
		return errDiskLow(why) // the runs wait; those that wait too long are missed
	}
	ops, err := planSchedules(s.machine, s.Now().UnixMilli())
	if err != nil {
		s.log.Error("could not read the schedules", "error", err)
		return err
	}
	if len(ops) == 0 {
		return nil
	}
	done := make(chan doOutcome, 1)
	s.submit(ops, "", true, func(rs []*jobpb.Result, err error) { done <- doOutcome{rs, err} })
	select {
	case o := <-done:
		if o.err != nil {
			return o.err
		}
		s.metrics.fired(ops, o.results, s.Now())
		return s.fired(o.results)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fired handles the outcomes of the operations. A schedule that has changed in between is
// not an error. If all were refused, the next attempt has to wait, so that a defect cannot
// keep the leader busy.
func (s scheduler) fired(results []*jobpb.Result) error {
	var refused error
	for _, r := range results {
		err := job.ResultError(r)
		if err == nil {
			return nil
		}
		if r.Code == jobpb.Code_INVALID {
			s.log.Error("could not start the runs of a schedule", "error", err)
		}
		refused = err
	}
	return refused
}

// planSchedules returns the operations for the schedules that are due.
func planSchedules(m *fsm.Machine, nowMS int64) (ops []*jobpb.Op, err error) {
	names := m.DueSchedules(nowMS, dueSchedules)
	v := m.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	runs, bytes := dueRuns, dueRunBytes
	for _, name := range names {
		info, found, err := v.Schedule(name)
		if err != nil {
			return nil, fmt.Errorf("schedule %.40q: %w", name, err)
		}
		if !found || runs <= 0 || bytes <= 0 {
			continue
		}
		run := &jobpb.ScheduledRun{PlannedMs: nowMS}
		size := len(job.RunBody(info.Schedule.GetJob().GetBody(), name, run, info.State.Runs+1)) + 1
		fire := schedule.Plan(info, nowMS, max(1, min(runs, bytes/size)))
		fire.Entropy = rand.Uint64()
		runs, bytes = runs-len(fire.Runs), bytes-len(fire.Runs)*size
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: fire}})
	}
	return ops, nil
}
