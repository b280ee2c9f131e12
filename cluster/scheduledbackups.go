package cluster

import (
	"context"
	"io"
	"strings"

	"tarry/cluster/backupschedule"
	"tarry/cluster/membership"
	"tarry/cluster/recovery"
	"tarry/cluster/report"
	"tarry/job"
)

// incrementalSince is the cluster version from which all releases read incremental backups.
const incrementalSince = 2

// newBackups returns what makes the scheduled backups; nil without a schedule.
func (n *Node) newBackups() *backupschedule.Scheduler {
	b := n.cfg.Backups
	if b == nil {
		return nil
	}
	return backupschedule.New(backupschedule.Config{
		Timetable: b.Timetable, Dir: b.Dir, Bucket: b.Bucket, Keep: b.Keep, FullEvery: b.FullEvery, Rate: b.Rate,
		NodeID: n.cfg.NodeID, Incarnation: strings.TrimPrefix(n.data.ServerID(), n.cfg.NodeID+"."), ClusterID: n.clusterID,
		Leads: n.leads, Others: func() ([]int64, bool) { return n.members.OtherBackups() }, Now: n.shard.Now, Write: n.writeScheduledBackup, BaseOf: recovery.BaseOf,
		Incremental: func() bool { return n.shard.machine.Version() >= incrementalSince },
		DataDir:     n.cfg.DataDir, LowWater: func() uint64 { return n.disk.State().Mark }, Logger: n.log,
	})
}

// leads reports whether this node is the established leader; changed is closed when that may
// have changed.
func (n *Node) leads() (leads bool, changed <-chan struct{}) {
	leader, changed := n.shard.leaders.Get() // before the check: becoming established is a change
	return leader.ID == n.data.ServerID() && n.shard.leadership.Load() != nil, changed
}

// backupDir returns this node's backups for membership; nil without a schedule.
func (n *Node) backupDir() membership.BackupDir {
	if n.backups == nil {
		return nil
	}
	return backupDir{n.backups}
}

type backupDir struct{ *backupschedule.Scheduler }

func (d backupDir) State() membership.Backups {
	instant, trouble := d.Scheduler.State()
	return membership.Backups{Instant: instant, Trouble: trouble}
}

func (d backupDir) List() *report.NodeBackups {
	l := d.Listing()
	list := &report.NodeBackups{Scheduled: true, More: uint64(l.More), Error: l.Error}
	for _, f := range l.Files {
		b := &report.ScheduledBackup{Name: f.Name, Index: f.Index, InstantMs: f.Instant, Bytes: f.Bytes, Base: f.Base, Problem: f.Problem}
		if !f.Taken.IsZero() {
			b.TakenMs = f.Taken.UnixMilli()
		}
		list.Files = append(list.Files, b)
	}
	return list
}

// writeScheduledBackup waits for a backup that somebody else makes of this node. It is whole if
// base is of another store, or has more than this node.
func (n *Node) writeScheduledBackup(ctx context.Context, to io.Writer, base *backupschedule.Base) error {
	select {
	case n.backingUp <- struct{}{}:
		defer func() { <-n.backingUp }()
	case <-ctx.Done():
		return ctx.Err()
	}
	o := job.BackupOptions{Rate: n.cfg.Backups.Rate}
	if base != nil && base.Index <= n.shard.machine.Applied().Index {
		o.Base = base.BackupBase
	}
	_, _, err := n.writeBackup(ctx, to, o)
	return err
}
