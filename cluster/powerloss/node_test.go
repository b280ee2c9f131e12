package powerloss

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"tarry/cluster/logstore"
	"tarry/cluster/statemachine"
	"tarry/fsm"
	"tarry/internal/durable"
)

// nodeRun is one run of a node: from a start to the next power loss.
type nodeRun struct {
	id   raft.ServerID
	s    *simulation
	disk *disk
	kind logstore.Kind
	bolt *boltDisk     // nil unless the log is in raft-boltdb
	dead atomic.Bool   // the power is off: what it still does must have no effect
	over chan struct{} // closed when it is stopped
	wire *raft.InmemTransport

	stores  *logstore.Stores
	machine *fsm.Machine
	adapter *statemachine.Adapter
	raft    *raft.Raft
	ready   atomic.Bool // raft is set
	relays  sync.WaitGroup
	writes  sync.WaitGroup // that clients wait for

	mu       sync.Mutex
	stopping bool    // no write begins
	next     remains // of its disks
}

// remains is what a power loss leaves of a node's disks.
type remains struct {
	mem  *vfs.MemFS
	bolt []byte // the file of raft-boltdb; nil: there is none
}

// openStores opens or creates log and state.
func (l *nodeRun) openStores() error {
	const dir, walDir = "raft", "raft/wal"
	if err := durable.MkdirAll(l.disk, walDir); err != nil {
		return err
	}
	var files types.VFS = segments{l.disk}
	if l.s.unsynced {
		files = logstore.Unsynced(files)
	}
	d := &logstore.Disk{Segments: files, Records: l.disk}
	if l.bolt != nil {
		d.BoltDir, d.WrapBolt = l.bolt.dir, l.bolt.wrap
	}
	var err error
	if l.stores, err = logstore.Open(dir, logstore.Options{Kind: l.kind, Fatal: l.fatal, SegmentBytes: 64 << 10, Disk: d}); err != nil {
		return err
	}
	l.machine, err = fsm.Open("fsm", fsm.Options{FS: l.disk, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, OnFatal: l.fatal})
	if err != nil {
		return err
	}
	return statemachine.CheckStart(l.machine, l.stores.Log, l.stores.Stable)
}

// fatal ends the process. Only a power loss, and a snapshot over a log that goes beyond it,
// may cause that.
func (l *nodeRun) fatal(err error) {
	switch {
	case l.dead.Load():
	case errors.Is(err, statemachine.ErrRestart):
		l.s.exit(l)
	default:
		l.s.fail(fmt.Errorf("node %s would have ended its process: %w", l.id, err))
	}
}

func (l *nodeRun) startRaft() error {
	l.adapter = statemachine.New(l.machine, statemachine.Options{Fatal: l.fatal, Log: l.stores.Log})
	c := raft.DefaultConfig()
	c.LocalID = l.id
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	c.CommitTimeout = 20 * time.Millisecond
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 200*time.Millisecond, 16, 8
	if l.s.eager {
		c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 30*time.Millisecond, 2, 1
	}
	c.NoSnapshotRestoreOnStart, c.NoLegacyTelemetry, c.BatchApplyCh = true, true, true
	c.Logger = hclog.NewNullLogger()
	cache, err := raft.NewLogCache(16, strictLog{l.stores.Log.(raft.MonotonicLogStore), l.stores.Log})
	if err != nil {
		return err
	}
	l.raft, err = raft.NewRaft(c, recorder{l.adapter, l}, cache, l.stores.Stable, l.adapter.Snapshots(), l.cutOff())
	l.ready.Store(err == nil)
	return err
}

// beginWrite reports whether a client may write to this node; then it must call writes.Done.
func (l *nodeRun) beginWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopping {
		l.writes.Add(1)
	}
	return !l.stopping
}

// stop ends the rest of a run and waits for it. As in a real node, Raft ends after all
// writes: it completes them while it runs, without power when its leader lease ends, but
// not the ones that are pending when it shuts down.
func (l *nodeRun) stop() error {
	l.mu.Lock()
	l.stopping = true
	l.mu.Unlock()
	l.writes.Wait()
	var errs []error
	if l.raft != nil {
		errs = append(errs, l.raft.Shutdown().Error())
	}
	close(l.over)
	l.relays.Wait()
	if l.machine != nil {
		errs = append(errs, l.machine.Close())
	}
	if l.stores != nil {
		errs = append(errs, l.stores.Close())
	}
	if l.bolt != nil {
		errs = append(errs, l.bolt.close())
	}
	return errors.Join(errs...)
}

// recorder records in the ledger what Raft applies.
type recorder struct {
	*statemachine.Adapter
	l *nodeRun
}

func (r recorder) Apply(e *raft.Log) any { return r.ApplyBatch([]*raft.Log{e})[0] }

func (r recorder) ApplyBatch(logs []*raft.Log) []any {
	r.record(logs)
	return r.Adapter.ApplyBatch(logs)
}

// record records what is about to be applied. It counts until it is determined what is left of the
// disk, not only until the power is off: what was applied in between may be in the state that is
// left, and no longer in the log, which the next snapshot truncates.
func (r recorder) record(logs []*raft.Log) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.next.mem == nil {
		r.l.s.ledger.applied(r.l.id, logs)
	}
}

// strictLog does not find what was truncated, so that a follower can be too far
// behind although segments are kept for a while.
type strictLog struct {
	raft.MonotonicLogStore
	raft.LogStore
}

func (l strictLog) GetLog(index uint64, entry *raft.Log) error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	if index < first {
		return raft.ErrLogNotFound
	}
	return l.LogStore.GetLog(index, entry)
}

// cutTransport is a transport that sends no reply once the power is off, because what the
// reply acknowledges may not be on the remaining disk.
type cutTransport struct {
	*raft.InmemTransport
	calls chan raft.RPC
}

func (t cutTransport) Consumer() <-chan raft.RPC { return t.calls }

func (l *nodeRun) cutOff() raft.Transport {
	t := cutTransport{l.wire, make(chan raft.RPC)}
	l.relays.Go(func() {
		for {
			select {
			case call := <-l.wire.Consumer():
				l.relay(t, call)
			case <-l.over:
				return
			}
		}
	})
	return t
}

func (l *nodeRun) relay(t cutTransport, call raft.RPC) {
	to, answer := call.RespChan, make(chan raft.RPCResponse, 1)
	call.RespChan = answer
	select {
	case t.calls <- call:
	case <-l.over:
		return
	}
	l.relays.Go(func() {
		select {
		case r := <-answer:
			if !l.dead.Load() {
				to <- r
			}
		case <-l.over:
		}
	})
}

// holds reports whether this node has an entry, in its log or in its state.
func (l *nodeRun) holds(index, term uint64) (bool, error) {
	if l.machine.Applied().Index >= index {
		return true, nil
	}
	var e raft.Log
	err := strictLog{l.stores.Log.(raft.MonotonicLogStore), l.stores.Log}.GetLog(index, &e)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	return err == nil && e.Term == term, err
}
