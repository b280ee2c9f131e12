package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/cluster/datadir"
	"tarry/cluster/statemachine"
	"tarry/fsm"
)

// RecoverPeers makes the stopped node of a data directory a voter of the new cluster that the
// nodes of p form. The source, the node that has most, applies its whole log, also entries of
// which no majority is known, and its log goes on with the new configuration. The others change
// nothing but their cluster and its configuration: they get what they lack from the source,
// by Raft, which also drops what only they have. So there is one log, and no state has applied
// another. It may be interrupted, as Recover.
func RecoverPeers(ctx context.Context, dataDir string, p *Peers) (done Recovered, err error) {
	dir, s, err := openStopped(dataDir, false)
	if err != nil {
		return Recovered{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	done, err = s.recoverPeers(ctx, dir, p)
	if err = errors.Join(err, s.close()); err != nil {
		return Recovered{}, err
	}
	return done, dir.EndRecovery()
}

func (s *stores) recoverPeers(ctx context.Context, dir *datadir.Dir, p *Peers) (done Recovered, err error) {
	if done.Before, err = s.held(dir); err != nil {
		return done, err
	}
	if err := p.CheckNode(&done.Before); err != nil {
		return done, err
	}
	if err := ctx.Err(); err != nil {
		return done, err
	}
	source := p.source()
	done.ClusterID, done.Index = p.NewClusterID(), source.LastIndex+1
	if err := dir.BeginRecovery(); err != nil {
		return done, err
	}
	if s.machine.ClusterID() != done.ClusterID { // an interrupted call may have come so far
		if dir.ServerID() == source.ServerID {
			err = s.becomeSource(ctx, p)
		} else {
			err = s.followSource(p)
		}
		if err != nil {
			return done, err
		}
	}
	if err := statemachine.CheckStart(s.machine, s.log.Log, s.log.Stable); err != nil {
		return done, err
	}
	done.Counts, err = countsOf(s.machine)
	return done, err
}

// becomeSource applies the whole log and puts the new configuration behind it.
func (s *stores) becomeSource(ctx context.Context, p *Peers) error {
	end := p.source().LastIndex
	if err := s.dropAfter(end); err != nil { // the entry of an interrupted call
		return err
	}
	least := p.leastApplied()
	keep, err := s.mayBeSent(least, end)
	if err != nil {
		return err
	}
	if err := s.applyLog(ctx); err != nil {
		return err
	}
	first := raft.Log{Index: end + 1, Term: p.term(), Type: raft.LogConfiguration, Data: p.configuration(true)}
	if err := setTerm(s.log.Stable, first.Term); err != nil {
		return err
	}
	if keep {
		// What the log loses must be in the state on disk: a crash may come before EnterCluster.
		if err := s.machine.Flush(); err != nil {
			return err
		}
		if err := s.dropBefore(least); err != nil {
			return err
		}
		if err := s.log.Log.StoreLogs([]*raft.Log{&first}); err != nil {
			return fmt.Errorf("append to the log: %w", err)
		}
	}
	return s.machine.EnterCluster(fsm.NewCluster{ID: p.NewClusterID(), Index: first.Index, Term: first.Term, Configuration: first.Data})
}

// mayBeSent reports whether the log has the entry that the others have at least, and all after
// it up to the end, and none of these is a configuration of the old cluster, which must not come
// into force on another node, not even until the new one follows. Otherwise the others get the
// whole state.
func (s *stores) mayBeSent(least, end uint64) (bool, error) {
	first, err := s.log.Log.FirstIndex()
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	last, err := s.log.Log.LastIndex()
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	if last == 0 || last != end || first > least {
		return false, nil
	}
	for i := least + 1; i <= end; i++ {
		var e raft.Log
		if err := s.log.Log.GetLog(i, &e); err != nil {
			return false, fmt.Errorf("read entry %d of the log: %w", i, err)
		}
		if e.Type == raft.LogConfiguration {
			return false, nil
		}
	}
	return true, nil
}

// followSource makes the node one that knows the source as the only voter. Its log keeps the
// entries after the state: the source has most of them too.
func (s *stores) followSource(p *Peers) error {
	a := s.machine.Applied()
	cut := uint64(0) // the first configuration of the old cluster that would come into force
	err := s.eachEntry(func(e *raft.Log) error {
		if e.Type == raft.LogConfiguration && cut == 0 {
			cut = e.Index
		}
		return nil
	})
	if err == nil && cut > 0 {
		err = s.dropAfter(cut - 1)
	}
	if err != nil {
		return err
	}
	return s.machine.EnterCluster(fsm.NewCluster{ID: p.NewClusterID(), Index: a.Index, Term: a.Term, Configuration: p.configuration(false), Behind: true})
}

// dropBefore drops the entries of the log before one, which all nodes of the file have applied.
// The change of the cluster is not in the log: a node that joins without data must get the
// state, and would be in the old cluster if it applied the log from its beginning.
func (s *stores) dropBefore(least uint64) error {
	first, err := s.log.Log.FirstIndex()
	if err == nil && first < least {
		err = s.log.Log.DeleteRange(first, least-1)
	}
	if err != nil {
		return fmt.Errorf("drop the entries before %d of the log: %w", least, err)
	}
	return nil
}

// dropAfter drops the entries of the log after one.
func (s *stores) dropAfter(end uint64) error {
	last, err := s.log.Log.LastIndex()
	if err == nil && last > end {
		err = s.log.Log.DeleteRange(end+1, last)
	}
	if err != nil {
		return fmt.Errorf("drop the entries after %d of the log: %w", end, err)
	}
	return nil
}
