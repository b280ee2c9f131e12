package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tarry/cluster/backup"
	"tarry/cluster/backupschedule"
	"tarry/cluster/membership"
	"tarry/cluster/recovery"
	"tarry/cluster/report"
	"tarry/fsm"
	"tarry/internal/sleep"
	"tarry/job"
)

// backupHold bounds the wait until this node has everything that was acknowledged.
const backupHold = 10 * time.Second

// Backup implements api.Operator. The state is this node's own, so the leader does no work for
// it but to answer two small questions. The state has everything that was acknowledged before
// the call; with o.Stale it is what this node has, and no other node is asked.
func (n *Node) Backup(ctx context.Context, to io.Writer, o job.BackupOptions) error {
	if err := n.oneShard("backups are not made"); err != nil {
		return err
	}
	select {
	case n.backingUp <- struct{}{}:
		defer func() { <-n.backingUp }()
	default:
		return job.Errorf(job.CodeOverloaded, "this node makes a backup already; wait until it is done, or use another node")
	}
	index, bytes, err := n.writeBackup(ctx, to, o)
	if err == nil {
		n.log.Info("a backup is complete", "index", index, "bytes", bytes)
	}
	return err
}

// writeBackup makes a backup. The caller has a token in n.backingUp.
func (n *Node) writeBackup(ctx context.Context, to io.Writer, o job.BackupOptions) (index uint64, bytes int64, err error) {
	if !o.Stale {
		if err := n.catchUp(ctx); err != nil {
			return 0, 0, err
		}
	}
	if err := n.shard.replay.await(ctx, n.shard.cfg.HoldTime); err != nil {
		return 0, 0, err
	}
	stream, err := n.shard.machine.OpenBackup(baseOf(o.Base), rand.Text())
	if err != nil {
		if fsm.Damaged(err) {
			n.shard.fatal(err)
		}
		return 0, 0, job.Errorf(job.CodeInternal, "the state could not be read for a backup: %w", err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	if stream.Index == 0 || stream.ClusterID == "" {
		return 0, 0, job.NotApplied("this node has no state yet: it is in no cluster")
	}
	if err := checkBackupRate(o.Rate, stream.Size); err != nil {
		return 0, 0, err
	}
	n.log.Info("a backup begins", "index", stream.Index, "bytes", stream.Size)
	p := newPacer(ctx, to, o.Rate)
	w, err := backup.NewWriter(p, n.backupHeader(stream, o.Base))
	if err != nil {
		return 0, 0, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, stream, make([]byte, 256<<10)); err != nil {
		return 0, 0, fmt.Errorf("write the backup: %w", err)
	}
	if err := w.Close(); err != nil {
		return 0, 0, fmt.Errorf("write the backup: %w", err)
	}
	return stream.Index, p.written, nil
}

// baseOf returns the base of a stream; nil: it is whole.
func baseOf(b *job.BackupBase) *fsm.Base {
	if b == nil {
		return nil
	}
	return &fsm.Base{Store: b.Store, Files: b.Files}
}

func (n *Node) backupHeader(s *fsm.Stream, base *job.BackupBase) backup.Header {
	t := s.Totals
	h := backup.Header{
		ClusterID: s.ClusterID, NodeID: n.cfg.NodeID, Release: n.cfg.Version, Shard: n.shard.cfg.Number,
		Index: s.Index, Term: s.Term, QueueTimeMS: s.ClockMS, TakenMS: n.cfg.wall().UnixMilli(),
		ClusterVersion: s.Version, StateFormat: fsm.FormatVersion, StateBytes: s.Size,
		Counts: backup.Counts{Topics: t.Topics, Delayed: t.Delayed, Ready: t.Ready, Reserved: t.Reserved, Dead: t.Dead, Retained: t.Retained},
	}
	if s.Incremental {
		h.BaseID, h.BaseTakenMS, h.BaseName = base.ID, base.TakenMS, base.Name
	}
	return h
}

// catchUp waits until this node has applied everything that was acknowledged before the
// call. A read that the leader confirms shows that it has all of that; its applied index
// afterwards includes it. Both must come from one leader of one term.
func (n *Node) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backupHold)
	defer cancel()
	for {
		term := n.shard.raft.CurrentTerm()
		if _, err := n.shard.Totals(ctx, false); err != nil {
			return err
		}
		index, err := n.members.LeaderApplied(ctx)
		switch {
		case err == nil && n.shard.raft.CurrentTerm() == term:
			// It fails as long as the entries have not even arrived.
			for n.shard.progress.reach(ctx, index) != nil {
				if sleep.For(ctx, 10*time.Millisecond) {
					continue
				}
				return job.NotApplied("this node is still behind the leader, at entry %d; entry %d is needed. Use another node, or take what this one has with --stale", n.shard.machine.Applied().Index, index)
			}
			return nil
		case !sleep.For(ctx, 50*time.Millisecond):
			return job.NotApplied("the leader could not be asked how far it is: %v. Take what this node has with --stale", err)
		}
	}
}

// checkBackupRate rejects a rate with which the backup of a state of size bytes would take
// more than MaxBackupTime. The file is smaller than the state as a rule.
func checkBackupRate(rate, size int64) error {
	const most = int64(job.MaxBackupTime / time.Second)
	if least := (size + most - 1) / most; rate > 0 && rate < least {
		return job.Invalid("rate", "is %d bytes a second; this state of %d bytes takes at least %d, so that its backup ends within %v", rate, size, least, job.MaxBackupTime)
	}
	return nil
}

// pacer bounds the rate of what is written. It ends with its context, and after MaxBackupTime:
// a reader may be slow although each write is in time.
type pacer struct {
	ctx     context.Context
	to      io.Writer
	rate    int64 // bytes a second; 0: without limit
	began   time.Time
	written int64
}

func newPacer(ctx context.Context, to io.Writer, rate int64) *pacer {
	return &pacer{ctx: ctx, to: to, rate: rate, began: time.Now()}
}

func (p *pacer) Write(b []byte) (int, error) {
	if p.rate > 0 {
		due := p.began.Add(time.Duration(float64(p.written) / float64(p.rate) * float64(time.Second)))
		sleep.For(p.ctx, time.Until(due))
	}
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if time.Since(p.began) > job.MaxBackupTime {
		return 0, fmt.Errorf("it took more than %v; its reader is too slow", job.MaxBackupTime)
	}
	n, err := p.to.Write(b)
	p.written += int64(n)
	return n, err
}

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
