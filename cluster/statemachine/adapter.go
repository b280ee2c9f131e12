package statemachine

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"tarry/fsm"
	"tarry/internal/hook"
	"tarry/job/jobpb"
)

// Options connects an Adapter to its node.
type Options struct {
	// OnChanges is called with the changes of a batch of entries or an installed
	// snapshot. It runs on Raft's FSM goroutine and must not block. May be nil.
	OnChanges func(fsm.Changes)
	// Fatal is called when continuing would risk the state. It must end the process.
	// Required.
	Fatal func(error)
	// Log is the shard's log. Restore checks an installed snapshot against it; nil: it
	// does not.
	Log raft.LogStore
}

// Adapter drives a machine for one Raft group. It implements raft.BatchingFSM.
type Adapter struct {
	mu        sync.Mutex // held while the state changes
	machine   *fsm.Machine
	o         Options
	snapshots *snapshots
	serving   atomic.Bool
	mutant    *mutant // nil: none

	// persisting is held while Raft takes a snapshot of the machine, from Persist on until it has
	// recorded it, and while a leader's state is installed. Otherwise Raft could record the
	// older of the two last, and take that for the end of its log.
	persisting sync.Mutex
	installed  uint64 // the last entry of the state that was installed last; guarded by persisting
}

var _ raft.BatchingFSM = (*Adapter)(nil)

// New returns an adapter of m. The caller closes m, after Raft has stopped.
func New(m *fsm.Machine, o Options) *Adapter {
	if o.OnChanges == nil {
		o.OnChanges = func(fsm.Changes) {}
	}
	return &Adapter{machine: m, o: o, snapshots: &snapshots{machine: m, fatal: o.Fatal}, mutant: newMutant()}
}

// Snapshots returns the snapshot store that Raft must use with this FSM.
func (a *Adapter) Snapshots() raft.SnapshotStore { return a.snapshots }

// Installing reports whether a leader's state is being received or installed, or a backup replaces
// the state. That takes as long as the state is large, and nothing else is applied meanwhile.
func (a *Adapter) Installing() bool { return a.snapshots.installing.Load() || a.machine.Replacing() }

// SetServing sets whether results are needed, as on the leader. If not, entries are
// applied the same way, but their results, which have the bodies, are not built. It may
// be called from any goroutine.
func (a *Adapter) SetServing(serving bool) { a.serving.Store(serving) }

// Apply implements raft.FSM. The result is that of ApplyBatch.
func (a *Adapter) Apply(entry *raft.Log) any { return a.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch implements raft.BatchingFSM. Every response is a []*jobpb.Result,
// one per operation of the entry; nil for an entry of Raft's own, one that was
// applied before, and while not serving. An error is fatal: the entries are committed, so
// a node that cannot apply them must stop.
func (a *Adapter) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	entries := make([]fsm.Entry, len(logs))
	for i, l := range logs {
		responses[i] = []*jobpb.Result(nil)
		entries[i] = fsm.Entry{Index: l.Index, Term: l.Term, Data: l.Data, Configuration: l.Type == raft.LogConfiguration}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	hook.Point(hook.BeforeApply)
	results, changes, err := a.mutant.apply(a.machine, entries, a.serving.Load())
	hook.Point(hook.AfterApply)
	if err != nil {
		a.o.Fatal(fmt.Errorf("apply the log entries %d to %d: %w", logs[0].Index, logs[len(logs)-1].Index, err))
		return responses
	}
	for i, r := range results {
		responses[i] = r
	}
	a.o.OnChanges(changes)
	return responses
}

// TakeEffect lets what was committed ahead for instants up to untilMS take effect; see
// fsm.Machine.TakeEffect for what the caller must know.
func (a *Adapter) TakeEffect(untilMS int64, term, epoch uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changes, err := a.machine.TakeEffect(untilMS, term, epoch)
	switch {
	case err != nil:
		a.o.Fatal(fmt.Errorf("let an advance take effect at %d: %w", untilMS, err))
	case len(changes.Effects) > 0:
		a.o.OnChanges(changes)
	}
}

// Snapshot implements raft.FSM. It returns at once: the state is on disk already.
func (a *Adapter) Snapshot() (raft.FSMSnapshot, error) { return &virtual{Adapter: a}, nil }

// Restore implements raft.FSM: it installs what the snapshot store has received.
//
// Raft empties its log on disk after that, but keeps the log's last entry in memory
// (raft issue 697). If that entry is beyond the snapshot, or at its index with another
// term, Raft would reject the leader's next message, and the leader would send the
// snapshot again and again. A restart fixes that, so the process ends.
//
// A snapshot that the state has passed is refused: what it lacks was acknowledged with this
// node's disk, and the log may begin after it. A leader sends one when it has just been elected
// and has not yet applied what this node has, or sends again what it takes for lost. Raft does
// not notice that. The leader then sends its newer state.
func (a *Adapter) Restore(snapshot io.ReadCloser) error {
	defer a.snapshots.installing.Store(false)
	for {
		w, ok := snapshot.(raft.ReadCloserWrapper)
		if !ok {
			break
		}
		snapshot = w.WrappedReadCloser()
	}
	s, ok := snapshot.(*received)
	if !ok {
		return fmt.Errorf("restore a snapshot: a %T was not received from a leader", snapshot)
	}
	a.persisting.Lock()
	defer a.persisting.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := checkNewer(a.machine.Applied(), s.meta); err != nil {
		return err
	}
	if err := a.machine.Install(s.receiver, fsm.Applied{Index: s.meta.Index, Term: s.meta.Term}); err != nil {
		if errors.Is(err, fsm.ErrHalfInstalled) {
			a.o.Fatal(err)
		}
		return err
	}
	a.installed = s.meta.Index
	if err := a.checkLog(s.meta); err != nil {
		a.o.Fatal(err)
		return err
	}
	a.o.OnChanges(fsm.Changes{Topics: a.machine.TopicChanges(), NextDue: a.machine.NextDue(), Cluster: true})
	return nil
}

// ErrRestart is wrapped by the error with which an undamaged node ends because it must
// restart from its disk.
var ErrRestart = errors.New("the node must restart to continue from the snapshot")

// checkNewer returns an error if a snapshot is older than the state.
func checkNewer(state fsm.Applied, to *raft.SnapshotMeta) error {
	if to.Index >= state.Index && to.Term >= state.Term {
		return nil
	}
	return fmt.Errorf("a snapshot at entry %d of term %d is older than the state, at entry %d of term %d", to.Index, to.Term, state.Index, state.Term)
}

// checkLog returns an error unless Raft can continue from an installed state without a restart.
func (a *Adapter) checkLog(to *raft.SnapshotMeta) error {
	if a.o.Log == nil {
		return nil
	}
	last, err := a.o.Log.LastIndex()
	if err != nil || last < to.Index {
		return err
	}
	var e raft.Log
	if err := a.o.Log.GetLog(last, &e); err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	if last == to.Index && e.Term == to.Term {
		return nil
	}
	return fmt.Errorf("a snapshot at entry %d of term %d replaced the state, but the log ends with entry %d of term %d: %w", to.Index, to.Term, last, e.Term, ErrRestart)
}

// virtual is a snapshot of the machine: the machine itself.
type virtual struct {
	*Adapter
	holds bool // persisting
}

// Persist makes the state durable up to the point of the sink, so that Raft may
// drop the log before it. Entries may be applied meanwhile. It fails if a leader's state
// was installed since.
func (v *virtual) Persist(to raft.SnapshotSink) error {
	s, ok := to.(*sink)
	if !ok {
		return fmt.Errorf("persist a snapshot: a %T is not a sink of this store", to)
	}
	v.persisting.Lock()
	v.holds = true
	if installed := v.installed; s.meta.Index < installed {
		return fmt.Errorf("the snapshot at entry %d is out of date: the state at entry %d was installed", s.meta.Index, installed)
	}
	err := v.machine.MarkDurable(s.meta.Index, s.meta.Term, raft.EncodeConfiguration(s.meta.Configuration), s.meta.ConfigurationIndex)
	if err != nil {
		v.o.Fatal(err) // after a failed sync the content of the disk is unknown
		return err
	}
	s.persisted = true
	return s.Close()
}

// Release implements raft.FSMSnapshot. Raft calls it when it has recorded the snapshot.
func (v *virtual) Release() {
	if v.holds {
		v.persisting.Unlock()
	}
}
