package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"tarry/auth"
	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// Machine is the state of one Raft group. Apply, and the methods that replace the state, are
// called by one goroutine; all other methods may be called by any.
type Machine struct {
	dir     *store.Dir
	options Options

	// Used only by the goroutine that applies.
	memory
	tx     *tx
	broken error // the first failure of Apply; nothing is applied after it

	nextDue      atomic.Int64
	nextEffect   atomic.Int64
	lastEffect   atomic.Int64
	effectTerm   atomic.Uint64
	nextSchedule atomic.Int64
	version      atomic.Uint32 // the cluster's
	migrating    atomic.Bool
	following    atomic.Bool // it is a standby
	replacing    atomic.Bool // as Replacing

	// storeMu is held for reading while the store is in use by other
	// goroutines, for writing while it is replaced.
	storeMu sync.RWMutex
	store   *database // nil once closed

	durableMu sync.Mutex // one MarkDurable at a time

	mu     sync.RWMutex // guards public
	public public

	watches watches

	settingsVersion atomic.Uint64

	authState    atomic.Pointer[auth.State]
	namespaceSet atomic.Pointer[Namespaces]
	authChanged  chan struct{} // closed with the next change; guarded by mu
	configNews   chan struct{} // as authChanged
}

// public is what other goroutines may read, as of the last commit.
type public struct {
	applied   Applied // of the state alone
	durable   record.DurableMark
	clusterID string
	sharding  *jobpb.Sharding // as record.Meta.Sharding
	// replacedAt is the index at which a backup replaced the state; 0: none did.
	replacedAt  uint64
	upload      uint64              // as Upload
	standby     *jobpb.StandbyState // replaced, never changed; nil: none
	forgotten   map[string]struct{}
	removed     map[string]int64 // as memory.removed
	configLog   record.ConfigLog
	configGroup configlog.Group
	admission   *jobpb.Admission // as memory.admission
	topics      map[string]TopicChange
	schedules   scheduleTimes
	uses        limitUses
}

// TopicChange is the state of a topic as far as it matters to Reserve.
type TopicChange struct {
	Name string
	// Ready is how many jobs a Reserve would get: 0 while the topic is paused, and
	// no more than its limits allow.
	Ready uint64
	// Held is how many more a Reserve would get if as many reservations ended: ready jobs
	// that only the limit on reserved jobs holds back.
	Held uint64
	// NextDue is when a Reserve may get another job by the passing of time alone, in
	// Unix milliseconds: the earliest due instant of a delayed job or end of a
	// reservation. It is not before the end of a pause, before the rate allows a job,
	// or before a reservation ends when there are as many as the limit allows. 0: there
	// is none, or the pause has no end.
	NextDue int64
	// Soon are the due instants of its first delayed jobs, in order, in the changes
	// of an Apply with replies: 16 at most, and no more than happen to be in memory.
	// Empty while a pause or a limit may hold them back.
	Soon []int64
}

// Open opens the state in dir, or makes a fresh one. It blocks for the replay of the
// write-ahead log that an earlier release may have written, at most a few seconds.
func Open(dir string, o Options) (*Machine, error) {
	o = o.withDefaults()
	files, err := store.OpenDir(dir, o.store())
	if err != nil {
		return nil, err
	}
	m := &Machine{dir: files, options: o}
	if err := m.reopen(files.Live()); err != nil {
		return nil, err
	}
	return m, nil
}

// Close makes all that was applied durable, ends all views and closes the store. Apply must not be
// running.
func (m *Machine) Close() error { return m.close(true) }

func (m *Machine) close(flush bool) (err error) {
	m.storeMu.Lock()
	defer m.storeMu.Unlock()
	s := m.store
	m.store = nil
	flush = flush && !errors.Is(m.broken, errOrder) // the state before the effect is the better one to start from
	m.broken = errClosed
	if s == nil {
		return nil
	}
	if flush {
		err = s.db.Flush()
	}
	return errors.Join(err, s.close())
}

var errClosed = errors.New("the state machine is closed")

// reopen makes the store in path the machine's state. The state before it, if
// any, is closed; its views end. On an error the state before it stays, unless
// the error came from closing it. Like Apply, it belongs to the one goroutine.
func (m *Machine) reopen(path string) error {
	s, err := openDatabase(m.dir, path)
	if err != nil {
		return err
	}
	mem, pub, err := load(s.db.DB, m.options)
	if err != nil {
		return errors.Join(fmt.Errorf("read the store in %s: %w", path, err), s.close())
	}
	m.memory = mem
	m.storeEffects() // first, as in commit
	// Both at once: MarkDurable must not mix one state's with the other's.
	m.storeMu.Lock()
	old := m.store
	m.store = s
	m.mu.Lock()
	m.public = pub
	m.mu.Unlock()
	m.storeMu.Unlock()
	if m.tx != nil {
		_ = m.tx.close() // of the old store; its content is discarded
	}
	m.namespaceSet.Store(newNamespaces(mem.namespaces))
	m.mu.Lock()
	m.publishAuth()
	m.publishConfig()
	m.mu.Unlock()
	m.tx = newTx(m)
	m.broken = nil
	m.version.Store(mem.meta.Version)
	m.migrating.Store(mem.meta.Migrating != nil)
	m.following.Store(m.follows())
	m.nextDue.Store(m.earliest())
	m.nextSchedule.Store(m.public.schedules.earliest())
	if old == nil {
		return nil
	}
	if err := old.close(); err != nil {
		return fmt.Errorf("close the store in %s: %w", old.path, err)
	}
	return nil
}

// SettingsVersion returns a number that grows with every change of topic settings. It
// starts again with the process.
func (m *Machine) SettingsVersion() uint64 { return m.settingsVersion.Load() }

// NextDue returns the instant, in Unix milliseconds, at which the state next needs an
// Advance; 0: none.
func (m *Machine) NextDue() int64 { return m.nextDue.Load() }

// Applied returns how far the log is applied.
func (m *Machine) Applied() Applied {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return record.Furthest(m.public.applied, m.public.durable)
}

// DurableIndex returns the index up to which the log is no longer needed, because the
// state is durable up to it.
func (m *Machine) DurableIndex() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.durable.Index
}

// ClusterID returns the cluster's id; empty before it has one.
func (m *Machine) ClusterID() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.clusterID
}

// Forgotten reports whether a Raft server was removed for good.
func (m *Machine) Forgotten(serverID string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.public.forgotten[serverID]
	return ok
}

// RemovedNodes returns when each node was removed that must not join again, in Unix
// milliseconds by node id. The caller must not change it.
func (m *Machine) RemovedNodes() map[string]int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.removed
}

// TopicChanges returns the states of all topics, by name.
func (m *Machine) TopicChanges() []TopicChange {
	m.mu.RLock()
	all := make([]TopicChange, 0, len(m.public.topics))
	for _, c := range m.public.topics {
		all = append(all, c)
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b TopicChange) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// View opens a consistent view of the committed state. Close it.
func (m *Machine) View() *view.View {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return view.New(m.options.Shard, nil, nil)
	}
	return m.store.view(m.options.Shard)
}

// Metrics returns the store's metrics; nil once the machine is closed.
func (m *Machine) Metrics() *pebble.Metrics {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return nil
	}
	return m.store.db.Metrics()
}

// Flush makes all that was applied durable. It blocks until that is done, and may run beside Apply.
func (m *Machine) Flush() error {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return errClosed
	}
	return m.store.db.Flush()
}

// MarkDurable records that Raft has reached index, with the configuration in force
// there, and makes everything up to it durable: when it returns, the log up to
// index is no longer needed. What is recorded never moves back. It blocks until
// the memtables are on disk, and may run beside Apply: it has a key of its own, which
// no batch of Apply writes.
func (m *Machine) MarkDurable(index, term uint64, configuration []byte, configurationIndex uint64) error {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return errClosed
	}
	m.durableMu.Lock()
	defer m.durableMu.Unlock()
	m.mu.RLock()
	w := m.public.durable
	m.mu.RUnlock()
	if index > w.Index {
		w.Index, w.Term = index, term
	}
	if configurationIndex > w.ConfigurationIndex {
		w.ConfigurationIndex, w.Configuration = configurationIndex, slices.Clone(configuration)
	}
	m.options.Point("before-flush")
	err := m.store.db.Set(record.KeyDurable, w.Append(nil), pebble.NoSync)
	if err == nil {
		err = m.store.db.Flush() // of every earlier batch, too
	}
	m.options.Point("after-flush")
	if err != nil {
		return fmt.Errorf("record that the log is applied up to %d: %w", index, err)
	}
	m.mu.Lock()
	m.public.durable = w
	m.mu.Unlock()
	return nil
}

// Applied is the point that a state has reached.
type Applied = record.Applied

// FormatVersion is the version of the layout of a state, for the header of a backup.
const FormatVersion uint32 = record.FormatVersion
