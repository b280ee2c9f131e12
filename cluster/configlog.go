package cluster

import (
	"context"
	"errors"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/fsm/configlog"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// The leader of a data group has the decisions of the config group committed in its own. It reads them
// from this node's replica, which may be behind: what counts is what the state of the data group has
// (package fsm/configlog). How long the group may rely on that is another question, and only the config
// group's leader can answer it, once a majority has confirmed it. So the leader of a data group asks it
// now and then for its position, and puts the answer into the headers of its entries.

const (
	// askEvery is how often the config group is asked while tokens are enforced; askAgain is after a
	// failure.
	askEvery = configlog.LeaseMS / 4 * time.Millisecond
	askAgain = 250 * time.Millisecond
	// followAgain is the pause after a failure to follow.
	followAgain = time.Second
)

// configAnswer is what the config group has answered to this leader.
type configAnswer struct {
	oplog.Heard
	epoch uint64 // of the clock by which it was asked
}

// heard returns what the leader puts into the header of an entry.
func (s *Shard) heard(epoch uint64) oplog.Heard {
	l := s.leadership.Load()
	if l == nil {
		return oplog.Heard{}
	}
	a := l.config.Load()
	if a == nil || a.epoch != epoch {
		return oplog.Heard{}
	}
	if g := s.machine.ConfigGroup(); a.AskedMS <= g.HeardIn(l.term) {
		return oplog.Heard{} // the state has it
	}
	return a.Heard
}

// followConfig makes a data group follow the config group until ctx ends.
func (s *Shard) followConfig(ctx context.Context, config *Shard) {
	for ctx.Err() == nil {
		news := config.machine.ConfigChanged() // before the read
		if err := s.takeConfig(ctx, config); err != nil {
			if ctx.Err() == nil {
				s.log.Debug("the group does not follow the config group; trying again", "error", err)
			}
			sleep.For(ctx, followAgain)
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// takeConfig has committed what the group lacks of the config that this node knows.
func (s *Shard) takeConfig(ctx context.Context, config *Shard) (err error) {
	from, err := config.machine.OpenConfig()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for {
		g := s.machine.ConfigGroup()
		op, err := from.For(&g)
		if op == nil || err != nil {
			return err
		}
		r, err := s.commitAlone(ctx, &jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: op}})
		if err == nil {
			err = job.ResultError(r)
		}
		if err != nil {
			return err
		}
	}
}

// askConfig asks the config group where it is, as long as tokens are enforced, until ctx ends.
func (s *Shard) askConfig(ctx context.Context, config *Shard, l *leadership) {
	for ctx.Err() == nil {
		changed := s.machine.AuthChanged() // before the mode
		if s.machine.Auth().Mode() != jobpb.AuthMode_AUTH_ENFORCE {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		asked, epoch := s.now()
		a, err := config.Read(ctx, &jobpb.Read{What: &jobpb.Read_Config{Config: &jobpb.Empty{}}}, false)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, leaderrpc.ErrNotLeader) {
				s.log.Debug("the config group does not answer", "error", err)
			}
			sleep.For(ctx, askAgain)
			continue
		}
		l.config.Store(&configAnswer{
			Heard: oplog.Heard{AskedMS: asked.UnixMilli(), Epoch: a.GetConfig().GetEpoch(), Number: a.GetConfig().GetNumber()}, epoch: epoch,
		})
		sleep.For(ctx, askEvery)
	}
}
