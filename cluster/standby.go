package cluster

import (
	"context"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/cluster/report"
	"tarry/cluster/standby"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

// A standby's leader reads the log of the primary and has its entries committed in the log of
// its own cluster (package standby). Until the standby is promoted nothing here acts by the
// clock: what is due, and when, is in the primary's entries.

// errStandby is the error of a call that would change what only the primary changes.
func errStandby() *job.Error { return job.Errorf(job.CodeStandby, "%s", fsm.RefusedByStandby) }

// refusedByStandby returns an error if ops cannot be done because this cluster is a standby. The
// state machine decides; this saves a round.
func (s *Shard) refusedByStandby(ops []*jobpb.Op) error {
	if !s.machine.Follows() {
		return nil
	}
	for _, op := range ops {
		if !fsm.TakenByStandby(op) {
			return errStandby()
		}
	}
	return nil
}

// awaitPromotion blocks while the cluster is a standby. It reports false if ctx ended before.
func (s *Shard) awaitPromotion(ctx context.Context) bool {
	for {
		more := s.progress.next() // before the check
		if !s.machine.Follows() {
			return ctx.Err() == nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

func (n *Node) newFollower() *standby.Follower {
	return standby.New(standby.Options{
		Source: n.cfg.Follow, State: n.shard.machine.Standby, Propose: n.shard.proposeFollowLog,
		Runs: n.members.AllRun, Now: n.cfg.wall, Logger: n.log,
	})
}

// proposeFollowLog has a FollowLog committed, and waits until it is applied here.
func (s *Shard) proposeFollowLog(ctx context.Context, f *jobpb.FollowLog) error {
	r, err := s.commitAlone(ctx, &jobpb.Op{Kind: &jobpb.Op_FollowLog{FollowLog: f}})
	if err != nil {
		return err
	}
	return job.ResultError(r)
}

// Standby implements api.Operator.
func (n *Node) Standby(ctx context.Context) (*report.Standby, error) {
	ctx, cancel := context.WithTimeout(ctx, n.shard.cfg.HoldTime)
	defer cancel()
	req := &noderpc.StandbyRequest{Shard: n.shard.cfg.Number}
	return leaderrpc.Call(ctx, &n.shard.toLeader, leaderrpc.Rules{Read: true, Hold: time.Second}, req, n.standbyAsLeader, noderpc.NodeClient.Standby)
}

func (n *Node) standbyAsLeader(context.Context, *noderpc.StandbyRequest) (*report.Standby, error) {
	if n.shard.leadership.Load() == nil {
		return nil, leaderrpc.ErrNotLeader
	}
	return n.follower.Status(), nil
}

// PromoteStandby implements api.Operator.
func (n *Node) PromoteStandby(ctx context.Context, force bool) (*report.Standby, error) {
	before, err := n.Standby(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case before.Mode != jobpb.StandbyMode_STANDBY_FOLLOWING:
		return nil, job.Errorf(job.CodeConflict, "this cluster is not a standby, or was promoted already")
	case before.Connected && !force:
		return nil, job.Errorf(job.CodeConflict, "the primary still sends its log, from %s: stop all of its nodes first, or both clusters run the same jobs. If it must be, promote with force", before.Source)
	}
	rs, err := n.shard.Do(ctx, []*jobpb.Op{{Kind: &jobpb.Op_PromoteStandby{PromoteStandby: &jobpb.PromoteStandby{}}}})
	if err != nil {
		return nil, err
	}
	if err := job.ResultError(rs[0]); err != nil {
		return nil, err
	}
	n.log.Info("the standby was promoted", "primary", before.Primary, "index", before.Index, "lag_entries", before.LagEntries(), "lag_seconds", before.LagSeconds())
	return before, nil
}

// standbyLagLimit is how far behind a standby may be before the cluster is not healthy.
const standbyLagLimit = time.Minute

// standbyProblems returns why a standby, whose leader this node is, is not healthy.
func (n *Node) standbyProblems() (list []*report.Problem) {
	if !n.shard.machine.Follows() {
		return nil
	}
	s := n.follower.Status()
	switch lag := time.Duration(s.LagSeconds() * float64(time.Second)); {
	case s.Reseed:
		list = append(list, report.NewProblem(report.StandbyReseed, "", "the standby has to be made again from a backup of its primary: %s", s.Problem))
	case s.Problem != "":
		list = append(list, report.NewProblem(report.StandbyStopped, "", "the standby does not follow its primary: %s", s.Problem))
	case lag > standbyLagLimit:
		list = append(list, report.NewProblem(report.StandbyBehind, "", "the standby is %v behind its primary", lag.Round(time.Second)))
	}
	return list
}
