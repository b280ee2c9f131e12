package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tarry/cluster/backup"
	"tarry/cluster/raftconfig"
	"tarry/cluster/recovery"
	"tarry/job"
)

// restoreSince is the cluster version that has the operations by which a backup replaces the state.
const restoreSince = 2

// Restore implements api.Operator: it replaces the state of the cluster by that of a backup. Only
// the leader does that. Until the backup is whole and every record of it was read, nothing
// changes.
func (n *Node) Restore(ctx context.Context, from io.Reader, o job.RestoreOptions) (job.Replaced, error) {
	select {
	case n.restoring <- struct{}{}:
		defer func() { <-n.restoring }()
	default:
		return job.Replaced{}, job.Errorf(job.CodeOverloaded, "this node receives a backup already; wait until that has ended")
	}
	if err := n.mayRestore(o); err != nil {
		return job.Replaced{}, err
	}
	r, err := backup.NewReader(from)
	if err != nil {
		return job.Replaced{}, job.Errorf(job.CodeInvalid, "the request has no backup that can be restored: %w", err)
	}
	defer r.Close()
	if err := n.roomForState(ctx, r.Header.StateBytes, false); err != nil {
		return job.Replaced{}, err
	}
	h := &r.Header
	about := []any{"cluster", h.ClusterID, "index", h.Index, "bytes", h.StateBytes, "dry_run", o.DryRun}
	n.log.Info("receiving a backup that is to replace the state", about...)
	done, err := n.restore(ctx, r.State(), o)
	switch {
	case err != nil:
		n.log.Warn("a backup did not replace the state", append(about, "error", err)...)
	case !o.DryRun:
		n.log.Warn("a backup replaced the state", "cluster", h.ClusterID, "index", h.Index, "at", done.Index)
	}
	return done, err
}

// mayRestore returns an error unless this node leads a cluster whose state can be replaced.
func (n *Node) mayRestore(o job.RestoreOptions) error {
	s := n.shard
	if s.leadership.Load() == nil {
		l, _ := s.leaders.Get()
		if l.ID == "" {
			return job.NotApplied("there is no leader, and only the leader replaces the state")
		}
		return job.NotApplied("only the leader replaces the state, and this node does not lead: %s does, at %s", raftconfig.NodeID(l.ID), n.LeaderAddress())
	}
	if s.machine.Follows() {
		return errStandby()
	}
	if v := s.machine.Version(); v < restoreSince {
		return job.NotApplied("the cluster version is %d; from version %d on, a backup can replace the state: upgrade all nodes", v, restoreSince)
	}
	if id := n.clusterID(); o.Cluster != "" && o.Cluster != id {
		return job.Invalid("cluster", "is %.64q, and this cluster's id is %q", o.Cluster, id)
	}
	return nil
}

// roomForState returns an error unless each member that replies has room for a state of so many
// bytes, which is the archive or unpacked. Until it is sent each node needs the archive in its state
// and in its log, which does not grow without bound; then the unpacked state, beside the present one.
func (n *Node) roomForState(ctx context.Context, bytes int64, sent bool) error {
	members, err := n.members.Members(ctx)
	if err != nil {
		return job.NotApplied("the members' disks are not known: %w", err)
	}
	need := uint64(bytes) + uint64(bytes)/4
	if !sent {
		need += uint64(bytes) + min(uint64(bytes), trailingBytesMax)
	}
	for _, m := range members {
		if m.Alive && m.DiskFreeBytes > 0 && m.DiskFreeBytes < need {
			return job.Errorf(job.CodeDiskLow, "node %s has %d MiB free, and %d MiB are needed to replace the state by the backup", m.Id, m.DiskFreeBytes>>20, need>>20)
		}
	}
	return nil
}

func (n *Node) restore(ctx context.Context, from backup.State, o job.RestoreOptions) (done job.Replaced, err error) {
	s := n.shard
	staged, err := recovery.Stage(ctx, from, s.machine, recovery.Staging{
		Dir: n.cfg.DataDir, Now: s.Now(), FromNow: o.FromNow, ResetAuth: o.ResetAuth,
	})
	switch {
	case errors.Is(err, backup.ErrDamaged):
		return done, job.Errorf(job.CodeInvalid, "the request has no backup that can be restored: %w", err)
	case err != nil:
		return done, notReplaced(err)
	}
	done = job.Replaced{
		BackupCluster: from.ClusterID, BackupIndex: from.Index, BackupTime: from.QueueTime(), Shift: staged.Shift,
		After: job.JobCounts(staged.Counts),
	}
	totals, err := s.Totals(ctx, false)
	if err != nil {
		return done, notReplaced(errors.Join(fmt.Errorf("count the jobs: %w", err), staged.State.Abort()))
	}
	done.Before = job.JobCounts{Topics: totals.Topics, Delayed: totals.Delayed, Ready: totals.Ready, Reserved: totals.Reserved, Dead: totals.Dead, Retained: totals.Retained}
	if !o.ResetAuth {
		done.Tokens = s.machine.Auth().Tokens()
	}
	if o.DryRun {
		return done, staged.State.Abort()
	}
	n.log.Warn("a backup replaces the state", "cluster", from.ClusterID, "index", from.Index)
	room := func(bytes int64, sent bool) error { return n.roomForState(ctx, bytes, sent) }
	if err := s.Replace(ctx, staged.State, room); err != nil {
		return done, err
	}
	done.Index = s.machine.ReplacedAt()
	return done, nil
}
