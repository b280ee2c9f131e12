package fsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// The store replays the write-ahead logs that it finds when it is opened, and
// misses none that is not there, nor the end of one that was cut between two of
// its blocks: a state with a hole, which would look sound. So beside them lies a
// ledger of the logs that there must be. A log is in it from before its first byte
// until just before it is removed, so that after a crash there may be logs that are
// not in the ledger but none missing that is.
//
// A log that was closed, whole and synced, is in the ledger with its length and
// checksum from before the first byte of the next one. The newest has none: it may
// end early, because the Raft log has what comes behind.
//
// The manifest says which logs are needed no more, and Pebble takes it to end where
// it cannot be read: it would then miss the tables that have replaced those logs. So
// the ledger also has what the manifest held, synced, when a log was last struck
// out. What comes behind that in the manifest may be lost as in a crash: the logs
// are there, and a store that lacks one of its tables does not open.
//
// A store that came as a snapshot has no ledger before its first log.

// ledgerName is the ledger's file in a store's directory. Pebble ignores it.
const ledgerName = "LOGS"

var (
	errLogMissing = errors.New("a part of the store's write-ahead log is missing")
	errChanged    = errors.New("the file is not as it was written")
)

// logLedger is the file system of one store that keeps the ledger.
type logLedger struct {
	vfs.FS
	dir   string
	fatal func(error) // the ledger could not be written; Pebble forgives that where it removes a log

	mu       sync.Mutex
	notes    ledgerNotes
	manifest *storeManifest // the one made last; nil: none since the store was opened
}

// openLedger reads the ledger of the store in dir and checks that its logs are
// there and whole, and its manifest too. It blocks for reading them.
func openLedger(fsys vfs.FS, dir string, fatal func(error)) (*logLedger, error) {
	l := &logLedger{FS: fsys, fatal: fatal, dir: fsys.PathDir(fsys.PathJoin(dir, ledgerName)), notes: ledgerNotes{logs: map[uint64]content{}}}
	f, err := fsys.Open(fsys.PathJoin(dir, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	if l.notes, err = decodeLedger(data); err == nil {
		err = l.checkLogs()
	}
	if err == nil {
		err = l.checkManifest()
	}
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return l, nil
}

func (l *logLedger) checkLogs() error {
	for number, held := range l.notes.logs {
		name := fmt.Sprintf("%06d.log", number)
		err := held.check(l.FS, l.PathJoin(l.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errLogMissing, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkManifest leaves alone a manifest that is newer than the ledger knows: no log
// was struck out since it was begun.
func (l *logLedger) checkManifest() error {
	name, err := atomicfs.ReadMarker(l.FS, l.dir, manifestMarker)
	if err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	number, _ := numberIn(name, manifestPrefix, "")
	switch {
	case number > l.notes.manifest:
		return nil
	case number < l.notes.manifest:
		return fmt.Errorf("the manifest is %q, but there was number %d: %w", name, l.notes.manifest, errChanged)
	case number == 0:
		return nil
	}
	if err := l.notes.held.check(l.FS, l.PathJoin(l.dir, name)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// numberIn is the number between a prefix and a suffix, if name is made of them.
func numberIn(name, prefix, suffix string) (uint64, bool) {
	digits, is := strings.CutPrefix(name, prefix)
	digits, ends := strings.CutSuffix(digits, suffix)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, is && ends && err == nil
}

// nameOf is the file's name, empty for one of another directory.
func (l *logLedger) nameOf(path string) string {
	if l.PathDir(path) != l.dir {
		return ""
	}
	return l.PathBase(path)
}

// Unwrap lets the store find what it knows below.
func (l *logLedger) Unwrap() vfs.FS { return l.FS }

func (l *logLedger) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(path, c)
	if err != nil {
		return nil, err
	}
	name := l.nameOf(path)
	if number, is := numberIn(name, manifestPrefix, ""); is {
		return l.newManifest(number, f), nil
	}
	if strings.HasPrefix(name, "marker."+manifestMarker+".") {
		if err := l.moved(name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	return l.enter(path, f)
}

func (l *logLedger) ReuseForWrite(old, path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := l.strike(old); err != nil {
		return nil, err
	}
	f, err := l.FS.ReuseForWrite(old, path, c)
	if err != nil {
		return nil, err
	}
	return l.enter(path, f)
}

func (l *logLedger) Remove(path string) error {
	if err := l.strike(path); err != nil {
		return err
	}
	return l.FS.Remove(path)
}

// enter notes a log that was just made. Its name is made durable before, or a
// crash could leave the note without the log.
func (l *logLedger) enter(path string, f vfs.File) (vfs.File, error) {
	number, is := numberIn(l.nameOf(path), "", ".log")
	if !is {
		return f, nil
	}
	err := syncDir(l.FS, l.dir)
	if err == nil {
		err = l.change(func() { l.notes.logs[number] = content{} })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &storeLog{File: f, ledger: l, number: number}, nil
}

// closed takes in what a log holds that was closed. It is written with the next
// log, which Pebble makes after this.
func (l *logLedger) closed(number uint64, held content) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.notes.logs[number]; there {
		l.notes.logs[number] = held
	}
}

// storeLog is a write-ahead log, written from its start. Pebble remembers a failed
// write of it until somebody waits for a sync, and drops what comes behind it
// meanwhile; here it is told at once. One goroutine at a time uses it.
type storeLog struct {
	vfs.File
	ledger *logLedger
	number uint64
	held   content
	synced bool // all of held
}

func (f *storeLog) Write(p []byte) (int, error) {
	f.synced = false
	f.held.add(p) // before the write: a file may change what it is given
	n, err := f.File.Write(p)
	return n, f.tell(err)
}

func (f *storeLog) Sync() error { return f.sync(f.File.Sync) }

func (f *storeLog) SyncData() error { return f.sync(f.File.SyncData) }

// SyncTo is a part of a write to Pebble, and promises nothing.
func (f *storeLog) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	return fullSync, f.tell(err)
}

func (f *storeLog) sync(do func() error) error {
	err := do()
	f.synced = err == nil
	return f.tell(err)
}

// Close enters what the log holds only if that is on disk: a power failure must
// not make a sound store look damaged.
func (f *storeLog) Close() error {
	if f.synced {
		f.ledger.closed(f.number, f.held)
	}
	return f.File.Close()
}

func (f *storeLog) tell(err error) error {
	if err != nil {
		f.ledger.fatal(fmt.Errorf("store: write the log: %w", err))
	}
	return err
}

// strike takes out a log that is to be removed.
func (l *logLedger) strike(path string) error {
	number, is := numberIn(l.nameOf(path), "", ".log")
	if !is {
		return nil
	}
	return l.change(func() { delete(l.notes.logs, number) })
}

// change writes the ledger anew, durably and in one step.
func (l *logLedger) change(what func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	path := l.PathJoin(l.dir, ledgerName)
	tmp := path + unfinishedSuffix
	f, err := l.FS.Create(tmp, vfsCategory)
	if err == nil {
		_, err = f.Write(encodeLedger(l.notes))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = l.FS.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(l.FS, l.dir)
	}
	if err != nil {
		err = fmt.Errorf("write the list of logs: %w", err)
		l.fatal(fmt.Errorf("store: %w", err))
	}
	return err
}
