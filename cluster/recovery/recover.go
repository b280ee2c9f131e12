package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/backup"
	"tarry/cluster/datadir"
	"tarry/cluster/raftconfig"
	"tarry/cluster/statemachine"
	"tarry/fsm"
)

// Held is what a stopped node has on its disk.
type Held struct {
	NodeID    string
	ServerID  string // Raft's id
	ClusterID string // empty: it was in no cluster
	// AppliedIndex is the last entry in the state; LastIndex and LastTerm are the end of the
	// log. A node with the larger LastTerm, and of equal ones with the larger LastIndex, has
	// more.
	AppliedIndex, LastIndex, LastTerm uint64
	VoteTerm                          uint64    // the newest term that it has heard of
	LastEntry                         time.Time // when the leader made the last entry; zero: not known
	QueueTime                         time.Time // the queue's clock in the state
	Members                           []Member  // of the last configuration that it has
	Counts                            backup.Counts
	Interrupted                       bool // a recovery has begun and not ended: no node starts before another has ended
}

// Member is a server of a configuration.
type Member struct {
	ServerID string
	Address  string
	Voter    bool
}

// Voter reports whether the node itself is a voter of the last configuration that it has.
func (h *Held) Voter() bool {
	return slices.ContainsFunc(h.Members, func(m Member) bool { return m.Voter && m.ServerID == h.ServerID })
}

// Voters counts the voters.
func (h *Held) Voters() (n int) {
	for _, m := range h.Members {
		if m.Voter {
			n++
		}
	}
	return n
}

// Recovered is what Recover has made.
type Recovered struct {
	Before    Held
	ClusterID string // the new one
	Index     uint64 // at which the log of the new cluster begins
	Counts    backup.Counts
}

// Inspect returns what the stopped node of a data directory has. It changes nothing but what
// each start does: the store's own log is replayed.
func Inspect(dataDir string) (h Held, err error) {
	dir, s, err := openStopped(dataDir, false)
	if err != nil {
		return Held{}, err
	}
	h, err = s.held(dir)
	return h, errors.Join(err, s.close(), dir.Close())
}

// Recover makes the stopped node of a data directory the only voter of a new cluster, with
// everything that it has: the whole log is applied, also entries of which no majority is
// known. Other nodes join with empty directories. The servers of the old configuration
// cannot join, nor vote. It blocks while the log is applied. It may be interrupted by ctx, or
// by a crash: no node starts in the directory then, until another call has ended well.
func Recover(ctx context.Context, dataDir string) (Recovered, error) {
	return recoverIn(ctx, dataDir, false)
}

// RecoverReadable is Recover for a directory whose log is damaged at its end, which Check has
// found: what cannot be read, and all behind it, is removed.
func RecoverReadable(ctx context.Context, dataDir string) (Recovered, error) {
	return recoverIn(ctx, dataDir, true)
}

func recoverIn(ctx context.Context, dataDir string, cut bool) (done Recovered, err error) {
	dir, s, err := openStopped(dataDir, cut)
	if err != nil {
		return Recovered{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	done, err = s.recover(ctx, dir)
	if err = errors.Join(err, s.close()); err != nil {
		return Recovered{}, err
	}
	return done, dir.EndRecovery()
}

// openStopped opens a stopped node's directory. With cut no node starts in it any more before a
// recovery has ended.
func openStopped(dataDir string, cut bool) (*datadir.Dir, *stores, error) {
	dir, err := datadir.OpenStopped(dataDir)
	if err != nil {
		return nil, nil, err
	}
	var s *stores
	if cut {
		err = dir.BeginRecovery()
	}
	if err == nil {
		s, err = openStores(dir, false, cut)
	}
	if err == nil {
		err = statemachine.CheckStart(s.machine, s.log.Log, s.log.Stable)
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}
	if err != nil {
		if !cut {
			err = fmt.Errorf("%w; tarry check --data-dir %s says what is damaged, what can be read, and what to do", err, dataDir)
		}
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, s, nil
}

func (s *stores) held(dir *datadir.Dir) (h Held, err error) {
	a := s.machine.Applied()
	h = Held{NodeID: dir.NodeID(), ServerID: dir.ServerID(), ClusterID: s.machine.ClusterID(), AppliedIndex: a.Index, LastIndex: a.Index, LastTerm: a.Term}
	if a.ClockMS > 0 {
		h.QueueTime = time.UnixMilli(a.ClockMS)
	}
	if h.Interrupted, err = dir.Recovering(); err != nil {
		return h, err
	}
	if h.VoteTerm, err = statemachine.Term(s.log.Stable); err != nil {
		return h, err
	}
	configuration := a.Configuration
	err = s.eachEntry(func(e *raft.Log) error {
		h.LastIndex, h.LastTerm = e.Index, e.Term
		if !e.AppendedAt.IsZero() {
			h.LastEntry = e.AppendedAt
		}
		if e.Type == raft.LogConfiguration {
			configuration = e.Data
		}
		return nil
	})
	if err != nil {
		return h, err
	}
	if h.LastEntry.IsZero() { // all entries are in the state: the last one may still be in the log
		if h.LastEntry, err = s.appended(h.LastIndex); err != nil {
			return h, err
		}
	}
	if len(configuration) > 0 {
		for _, m := range raft.DecodeConfiguration(configuration).Servers {
			h.Members = append(h.Members, Member{ServerID: string(m.ID), Address: string(m.Address), Voter: m.Suffrage == raft.Voter})
		}
	}
	h.Counts, err = countsOf(s.machine)
	return h, err
}

// appended returns when the leader made an entry; zero: it is not in the log any more.
func (s *stores) appended(index uint64) (time.Time, error) {
	var e raft.Log
	err := s.log.Log.GetLog(index, &e)
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read entry %d of the log: %w", index, err)
	}
	return e.AppendedAt, nil
}

// eachEntry calls f for the entries of the log after the state.
func (s *stores) eachEntry(f func(*raft.Log) error) error {
	first, err := s.log.Log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	last, err := s.log.Log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	// CheckStart has verified that there is no gap and that all can be read.
	for i := max(first, s.machine.Applied().Index+1); i <= last && last > 0; i++ {
		var e raft.Log
		if err := s.log.Log.GetLog(i, &e); err != nil {
			return fmt.Errorf("read entry %d of the log: %w", i, err)
		}
		if err := f(&e); err != nil {
			return err
		}
	}
	return nil
}

// recoverBatch is how many entries are applied together.
const recoverBatch = 64

func (s *stores) recover(ctx context.Context, dir *datadir.Dir) (done Recovered, err error) {
	if done.Before, err = s.held(dir); err != nil {
		return done, err
	}
	h := &done.Before
	if h.ClusterID == "" && len(h.Members) == 0 {
		return done, errors.New("the node was never in a cluster; there is nothing to recover")
	}
	if err := ctx.Err(); err != nil {
		return done, err
	}
	// From here to EnterCluster the state is of the old cluster, with entries that may never
	// have been committed there.
	if err := dir.BeginRecovery(); err != nil {
		return done, err
	}
	if err := s.applyLog(ctx); err != nil {
		return done, err
	}
	// A term that no server of the old cluster has seen on this node.
	term := max(h.VoteTerm, h.LastTerm) + 1
	if err := setTerm(s.log.Stable, term); err != nil {
		return done, err
	}
	address := "127.0.0.1:7301"
	for _, m := range h.Members {
		if m.ServerID == h.ServerID {
			address = m.Address
		}
	}
	done.ClusterID, done.Index = newClusterID(), h.LastIndex+1
	err = s.machine.EnterCluster(fsm.NewCluster{ID: done.ClusterID, NodeID: raftconfig.NodeID(h.ServerID), Index: done.Index, Term: term, Configuration: onlyVoter(h.ServerID, address)})
	if err != nil {
		return done, err
	}
	// The state is ahead of the log now: this drops the log, as any start would.
	if err := statemachine.CheckStart(s.machine, s.log.Log, s.log.Stable); err != nil {
		return done, err
	}
	done.Counts, err = countsOf(s.machine)
	return done, err
}

// applyLog applies the entries after the state.
func (s *stores) applyLog(ctx context.Context) error {
	var batch []fsm.Entry
	apply := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _, err := s.machine.Apply(batch, false)
		batch = batch[:0]
		return err
	}
	err := s.eachEntry(func(e *raft.Log) error {
		if e.Type == raft.LogCommand || e.Type == raft.LogConfiguration {
			batch = append(batch, fsm.Entry{Index: e.Index, Term: e.Term, Data: e.Data, Configuration: e.Type == raft.LogConfiguration})
		}
		if len(batch) < recoverBatch {
			return nil
		}
		return apply()
	})
	if err == nil && len(batch) > 0 {
		err = apply()
	}
	return err
}
