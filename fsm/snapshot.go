package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/job"
	"tarry/job/jobpb"
)

// ErrHalfInstalled is wrapped by the error of an Install that failed when it could not
// be undone. The machine's state is undefined then, so the process must end. The next
// Open finds the old state or the new one, each complete.
var ErrHalfInstalled = errors.New("a snapshot was installed only half: the process must end")

// Stream reads a whole state as an archive, for a node that lacks it or for a
// backup. Its content was fixed when it was opened; the machine continues meanwhile.
// Its checkpoint keeps files that the machine would delete, so the owner must
// Close it, even if its reader has stalled. Read and Close must not run concurrently.
type Stream struct {
	// Applied is read from the archive's own data, so index and data agree. So are the
	// others.
	Applied
	*store.Archive
	ClusterID string
	Version   uint32 // the cluster's
	Totals    *jobpb.Totals
	// Incremental: it is of use only with its base.
	Incremental bool
}

// OpenStream fixes the present state in a checkpoint, which costs hard links and
// a sync, and opens it as an archive. It blocks for about as long as a flush.
func (m *Machine) OpenStream() (*Stream, error) {
	return m.open(func(s *Stream, path, _ string, h store.Header) (err error) {
		s.Archive, err = store.OpenArchive(m.options.FS, path, h)
		return err
	})
}

// Base is what a backup leaves out: the files that an earlier one of the same node has.
type Base = store.Base

// OpenBackup is OpenStream for a backup. If base is of the store that the machine has now, the
// stream is incremental: it has no file that base has. storeID is a random text of 26 letters and
// digits, which becomes the id of the store if that has none.
func (m *Machine) OpenBackup(base *Base, storeID string) (*Stream, error) {
	return m.open(func(s *Stream, path, live string, h store.Header) error {
		id, err := m.dir.StoreID(live, storeID)
		if err != nil {
			return err
		}
		s.Archive, s.Incremental, err = store.OpenBackup(m.options.FS, path, h, id, base)
		return err
	})
}

// ReadBase reads the beginning of the state in a backup, and returns what a later one may leave
// out.
func ReadBase(state io.Reader) (*Base, error) { return store.ReadBase(state) }

// Compose returns the whole state that an incremental one makes with the whole state that is its
// base, and its size.
func Compose(top, base io.Reader) (io.Reader, int64, error) {
	c, err := store.Compose(top, base)
	if err != nil {
		return nil, 0, err
	}
	return c, c.Size, nil
}

// open takes a checkpoint and opens it; archive opens its archive.
func (m *Machine) open(archive func(s *Stream, path, live string, h store.Header) error) (*Stream, error) {
	path := m.dir.CheckpointPath()
	live, err := m.checkpoint(path)
	if err != nil {
		return nil, fmt.Errorf("take a checkpoint of the state: %w", err)
	}
	s, err := m.readStream(path)
	if err == nil {
		err = archive(s, path, live, store.Header{Index: s.Index, Term: s.Term, Version: s.Version})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a checkpoint of the state: %w", err), m.dir.Remove(path))
	}
	return s, nil
}

// checkpoint makes a checkpoint and returns the generation that it is of.
func (m *Machine) checkpoint(path string) (live string, err error) {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return "", errClosed
	}
	m.options.Point("before-checkpoint")
	err = m.store.db.Checkpoint(path)
	m.options.Point("after-checkpoint")
	return m.store.path, err
}

// readStream reads what a stream says of a checkpoint.
func (m *Machine) readStream(path string) (*Stream, error) {
	s := &Stream{}
	err := m.dir.Inspect(path, func(db *pebble.DB) error {
		meta, err := record.ReadMeta(db)
		if err != nil {
			return err
		}
		s.Applied = record.Furthest(meta.Applied(), meta.Durable)
		s.ClusterID, s.Version, s.Totals = meta.ClusterID, meta.Version, meta.Totals()
		return nil
	})
	return s, err
}

// Receiver takes the archive of another machine's Stream.
type Receiver = store.Receiver

// Receive starts to receive a state beside the present one, which is not touched
// before Install. It may be called from any goroutine.
func (m *Machine) Receive() (*Receiver, error) {
	return m.dir.Receive(func(h store.Header) error { return job.ReleaseVersions().Check(h.Version) })
}

// Install replaces the whole state by what r received, a Receiver of this
// machine. That must be the state at want.Index and want.Term. Like Apply it
// belongs to the one goroutine that applies. All views end. It blocks for some
// syncs and for opening the store.
//
// On an error that wraps ErrHalfInstalled the process must end. On any other the
// old state stays, unchanged, and r is aborted.
func (m *Machine) Install(r *Receiver, want Applied) error {
	if err := m.checkReceived(r, want); err != nil {
		return errors.Join(fmt.Errorf("install a snapshot: %w", err), r.Abort())
	}
	return m.swapTo(r)
}

// swapTo makes the generation that r has received the machine's state. Its errors are those of
// Install.
func (m *Machine) swapTo(r *Receiver) error {
	old := m.store.path
	m.options.Point("before-swap")
	path, err := r.Keep()
	if err != nil {
		return fmt.Errorf("install a snapshot: %w", err)
	}
	err = m.dir.SetLive(path)
	m.options.Point("after-swap")
	if err == nil {
		err = m.reopen(path)
	}
	if err == nil {
		m.settingsVersion.Add(1)
		err = m.recheckWatches()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHalfInstalled, err)
	}
	if err := m.dir.Remove(old); err != nil {
		// The next Open removes the rest; the new state is in force.
		m.options.infof("the replaced state in %s could not be removed: %v", old, err)
	}
	return nil
}

// checkReceived verifies that r holds a complete store of a known format whose applied
// index and term are exactly those that Raft expects. The archive's checksums are not
// enough: the sender does not check the content of its files, so damage on its disk
// would spread, and a damaged block ends the process later. So every record is read
// once here, which verifies the checksums of all blocks.
func (m *Machine) checkReceived(r *Receiver, want Applied) error {
	if err := r.Finish(); err != nil {
		return err
	}
	if m.store == nil {
		return errClosed
	}
	var got Applied
	err := r.Inspect(func(db *pebble.DB) (err error) {
		if got, err = record.ReadApplied(db); err != nil {
			return err
		}
		return readAll(db)
	})
	if err != nil {
		return err
	}
	header := r.Header()
	for _, has := range []Applied{{Index: header.Index, Term: header.Term}, got} {
		if has.Index != want.Index || has.Term != want.Term {
			return fmt.Errorf(
				"it holds the state at entry %d of term %d, expected was entry %d of term %d", has.Index, has.Term, want.Index, want.Term)
		}
	}
	return nil
}
