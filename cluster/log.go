package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/logstream"
	"tarry/internal/sleep"
	"tarry/job"
)

const (
	// maxLogReaders bounds the streams of the log that a node sends at a time.
	maxLogReaders = 4
	// logSeenEvery is how often a stream without entries says how far this node is.
	logSeenEvery = 500 * time.Millisecond
	// logRun bounds the entries between two of these messages.
	logRun = 1024
	// maxLogTime ends a stream, so that its reader is asked for its token again.
	maxLogTime = 10 * time.Minute
)

// Log implements api.Operator: it streams the entries of this node's log that are committed and
// applied here, from the one after that which the reader has, until ctx ends. An entry that is
// applied is never lost, so a standby never has one that its primary has not.
func (n *Node) Log(ctx context.Context, to job.LogWriter, o job.LogOptions) error {
	select {
	case n.logReaders <- struct{}{}:
		defer func() { <-n.logReaders }()
	default:
		return job.Errorf(job.CodeOverloaded, "this node sends its log to %d readers already; use another node", maxLogReaders)
	}
	if !n.raftRuns.Load() {
		return job.NotApplied("this node has not started yet")
	}
	if err := n.oneShard("the log is not sent"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxLogTime)
	defer cancel()
	if err := n.shard.checkLogReader(o); err != nil {
		return err
	}
	n.log.Info("a standby reads the log", "after", o.After)
	err := n.shard.streamLog(ctx, to, o.After, func() bool { return n.stopping.Load() })
	n.log.Info("a standby has stopped reading the log", "error", err)
	return err
}

// checkLogReader returns an error unless the log here continues what the reader has.
func (s *Shard) checkLogReader(o job.LogOptions) error {
	id := s.machine.ClusterID()
	switch {
	case id == "":
		return job.NotApplied("this node is in no cluster yet")
	case o.ClusterID != id:
		return job.Errorf(job.CodeConflict, "this is cluster %s, and the standby follows cluster %s", id, o.ClusterID)
	case s.machine.Follows():
		return job.Errorf(job.CodeConflict, "this cluster is a standby itself; follow its primary")
	}
	if why := s.replay.why(); why != "" {
		return job.NotApplied("%s; another node may be further", why)
	}
	reached := s.reached()
	if err := s.replacedAfter(o.After); err != nil {
		return err
	}
	if o.After > reached {
		return job.NotApplied("this node has applied entry %d, and the standby has entry %d; another node may be further", reached, o.After)
	}
	term, err := s.termOf(o.After)
	if err != nil {
		return err
	}
	if term != o.Term {
		return job.Errorf(job.CodeConflict, "entry %d has term %d here and term %d at the standby: they do not have the same history", o.After, term, o.Term)
	}
	return nil
}

// replacedAfter returns an error if a backup has replaced the state after an entry: what became of
// it is not in the entries.
func (s *Shard) replacedAfter(index uint64) error {
	if at := s.machine.ReplacedAt(); at > index {
		return job.Errorf(job.CodeConflict, "a backup replaced the state at entry %d, after entry %d of the standby", at, index)
	}
	return nil
}

// termOf returns the term of an entry that is applied here.
func (s *Shard) termOf(index uint64) (uint64, error) {
	entry, err := s.logEntry(index)
	if err == nil {
		return entry.Term, nil
	}
	if applied := s.machine.Applied(); applied.Index == index {
		return applied.Term, nil // it may not be in the log, after an installed snapshot
	}
	return 0, err
}

func (s *Shard) logEntry(index uint64) (*raft.Log, error) {
	entry := new(raft.Log)
	first, err := s.stores.Log.FirstIndex()
	if err == nil && index >= first {
		err = s.stores.Log.GetLog(index, entry)
	} else if err == nil {
		err = raft.ErrLogNotFound
	}
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return nil, job.Errorf(job.CodeLogTruncated, "entry %d is not in the log any more; it begins with entry %d. The standby must be made again from a backup", index, first)
	case err != nil:
		return nil, job.Errorf(job.CodeInternal, "read the log: %w", err)
	}
	return entry, nil
}

// reached returns the last entry that is applied here. Those by which Raft begins a term are
// never applied: what follows the last applied entry counts if it is of that kind.
func (s *Shard) reached() uint64 {
	index := s.machine.Applied().Index
	for committed := s.raft.CommitIndex(); index < committed; index++ {
		var entry raft.Log
		if err := s.stores.Log.GetLog(index+1, &entry); err != nil || entry.Type == raft.LogCommand || entry.Type == raft.LogConfiguration {
			break
		}
	}
	return index
}

// streamLog writes the entries after an index until ctx ends or stop reports true.
func (s *Shard) streamLog(ctx context.Context, to job.LogWriter, after uint64, stop func() bool) error {
	w, err := logstream.NewWriter(to)
	if err != nil {
		return err
	}
	for next := after + 1; ctx.Err() == nil && s.ctx.Err() == nil && !stop(); {
		more := s.progress.next()
		reached := s.reached()
		if err := s.replacedAfter(after); err != nil { // read later, so it covers all that is reached
			return err
		}
		if err := w.Write(logstream.NewSeen(reached, s.cfg.Host.Wall())); err != nil {
			return err
		}
		end := min(reached, next+logRun-1)
		for ; next <= end; next++ {
			if err := s.writeEntry(w, next); err != nil {
				return errors.Join(err, w.Flush())
			}
		}
		if err := errors.Join(w.Flush(), to.Flush()); err != nil {
			return err
		}
		if next > reached {
			s.awaitEntries(ctx, more)
		}
	}
	return nil
}

// awaitEntries waits until something is applied, and a moment longer so that a stream under load
// has runs of entries; or until it is time to say how far this node is.
func (s *Shard) awaitEntries(ctx context.Context, more <-chan struct{}) {
	seen := time.NewTimer(logSeenEvery)
	defer seen.Stop()
	select {
	case <-more:
		sleep.For(ctx, 2*time.Millisecond)
	case <-seen.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// writeEntry writes one entry. A configuration is of this cluster's members: like Raft's own
// entries it is sent without its data.
func (s *Shard) writeEntry(w *logstream.Writer, index uint64) error {
	entry, err := s.logEntry(index)
	if err != nil {
		return err
	}
	f := logstream.Frame{Kind: logstream.Entry, Index: entry.Index, Term: entry.Term}
	if entry.Type == raft.LogCommand {
		if len(entry.Data) == 0 {
			return fmt.Errorf("entry %d of the log is empty", index)
		}
		f.Data = entry.Data
	}
	return w.Write(f)
}
