package cluster

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"tarry/cluster/groupcommit"
	"tarry/fsm"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
)

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
