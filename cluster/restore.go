package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"tarry/cluster/backup"
	"tarry/cluster/groupcommit"
	"tarry/cluster/raftconfig"
	"tarry/cluster/recovery"
	"tarry/fsm"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
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
	if err := n.oneShard("a backup does not replace the state"); err != nil {
		return err
	}
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

const (
	// stateChunk is how much of a state that replaces another one goes through the log at a
	// time: as much as a batch of operations has.
	stateChunk = groupcommit.MaxBatchBytes
	// dropTimeout bounds an attempt to drop what was sent of a state.
	dropTimeout = 30 * time.Second
)

// Replace makes a staged state that of the whole cluster, if this node leads. It ends the staged
// state. room is called with its size before the state is sent and when it was, and returns an
// error unless the members have room for what comes next. An error is a job.Error that reports whether
// the state was replaced.
//
// The state goes through the log in parts, one at a time, beside the operations of clients. Then
// one entry replaces the state.
func (s *Shard) Replace(ctx context.Context, state *fsm.Staged, room func(bytes int64, sent bool) error) error {
	op := state.Replacement()
	op.Upload = max(rand.Uint64(), 1)
	from, size, err := state.Archive()
	if err == nil {
		if err = room(size, false); err == nil {
			err = s.upload(ctx, from, op)
		}
		err = errors.Join(err, from.Close())
	}
	if err = errors.Join(err, state.Abort()); err == nil {
		err = room(size, true)
	}
	if err == nil {
		err = s.machine.CheckUpload() // a state that cannot be read would stop all nodes
	}
	if err == nil {
		err = room(size, true)
	}
	if err != nil {
		s.dropUploadLater(op.Upload)
		return notReplaced(err)
	}
	r, err := s.commitAlone(ctx, &jobpb.Op{Kind: &jobpb.Op_ReplaceState{ReplaceState: op}})
	if err == nil {
		err = job.ResultError(r)
	}
	if err != nil {
		s.dropUploadLater(op.Upload)
	}
	if job.CodeOf(err) == job.CodeUnknown {
		return job.Unknown("leadership was lost while the state was replaced: the whole cluster has either the state of the backup or its state before, \"tarry cluster events\" and the counts show which: %w", err)
	}
	if err != nil {
		return notReplaced(err)
	}
	return nil
}

func notReplaced(why error) *job.Error {
	return job.NotApplied("the state was not replaced: %w", why)
}

// upload puts a state into the log, and completes the operation that makes it that of the cluster.
func (s *Shard) upload(ctx context.Context, from io.Reader, op *jobpb.ReplaceState) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	part := make([]byte, stateChunk)
	for {
		n, err := io.ReadFull(from, part)
		switch {
		case errors.Is(err, io.EOF):
			op.Checksum = sum.Sum32()
			return nil
		case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
			return err
		}
		if why := s.cfg.Host.AddsRefused(); why != "" {
			return errDiskLow(why)
		}
		began := time.Now()
		put := &jobpb.PutStateChunk{Upload: op.Upload, Offset: op.Size, Data: part[:n]}
		if err := s.commitOne(ctx, &jobpb.Op{Kind: &jobpb.Op_PutStateChunk{PutStateChunk: put}}); err != nil {
			return err
		}
		_, _ = sum.Write(part[:n]) // it never fails
		op.Size += uint64(n)
		if s.cfg.SentPart != nil {
			s.cfg.SentPart()
		}
		// The other half of the time is for clients.
		if !sleep.For(ctx, time.Since(began)) {
			return ctx.Err()
		}
	}
}

// commitOne has an operation of the leader committed in its turn, and waits until it is applied.
func (s *Shard) commitOne(ctx context.Context, op *jobpb.Op) error {
	r, err := await(ctx, func(done groupcommit.Complete) { s.submit([]*jobpb.Op{op}, "", true, done) })
	if err != nil {
		return err
	}
	return job.ResultError(r)
}

// dropUploadLater is dropUpload in the background.
func (s *Shard) dropUploadLater(upload uint64) {
	s.spawn(func() { s.dropUpload(s.ctx, upload) })
}

// dropUpload removes what was sent of a state and will not replace this one. If it fails, the next
// leader does that.
func (s *Shard) dropUpload(ctx context.Context, upload uint64) {
	if upload == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	err := s.commitOne(ctx, &jobpb.Op{Kind: &jobpb.Op_DropStateChunks{DropStateChunks: &jobpb.DropStateChunks{Upload: upload}}})
	if err != nil && s.machine.Upload() == upload {
		s.log.Warn("could not remove what was sent of a backup; the next leader does that", "error", err)
	}
}
