package store

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

	"tarry/internal/durable"
)

// Earlier releases wrote a write-ahead log, which Pebble replays when it opens a store. It does not
// detect that a log is missing, or was cut off between two of its blocks: the state then
// has an undetected gap. So they wrote an index of the logs that must exist, each with its length
// and checksum if it was closed and synced. The newest has neither: it may end early, because the Raft
// log has what follows. Open checks the logs in the index; once they are replayed and flushed
// Pebble removes them. The logs that Pebble still makes are empty, and in no index.
//
// Pebble's manifest lists the tables, and Pebble assumes that it ends where it cannot be read: then
// the newest tables would be missing. So the index also has the length and checksum of
// the manifest as it was synced by Open and the last Flush. The rest of the manifest may be lost as
// in a crash: the Raft log has what follows, and a store that lacks one of its tables does not open.
//
// A store that was received as a snapshot has no index before it is opened.

// walIndexName is the index's file in a store's directory. Pebble ignores it.
const walIndexName = "LOGS"

var (
	errWALMissing = errors.New("a part of the store's write-ahead log is missing")
	errChanged    = errors.New("the file is not as it was written")
)

// walIndex is the file system of one store. It updates the index as Pebble writes its manifest and
// removes logs.
type walIndex struct {
	vfs.FS
	dir   string
	fatal func(error) // reports a failed write of the index: Pebble ignores the error when it removes a log

	mu       sync.Mutex
	entries  walEntries
	manifest *pebbleManifest // the one made last; nil: none since the store was opened
}

// openWALIndex reads the index of the store in dir and checks its logs and its manifest. It
// blocks while it reads them.
func openWALIndex(fsys vfs.FS, dir string, fatal func(error)) (*walIndex, error) {
	x := &walIndex{FS: fsys, fatal: fatal, dir: fsys.PathDir(fsys.PathJoin(dir, walIndexName)), entries: walEntries{logs: map[uint64]filePrefix{}}}
	f, err := fsys.Open(fsys.PathJoin(dir, walIndexName))
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxWALIndex))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	if x.entries, err = decodeWALIndex(data); err == nil {
		err = x.checkLogs()
	}
	if err == nil {
		err = x.checkManifest()
	}
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return x, nil
}

func (x *walIndex) checkLogs() error {
	for number, prefix := range x.entries.logs {
		name := fmt.Sprintf("%06d.log", number)
		err := prefix.check(x.FS, x.PathJoin(x.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errWALMissing, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkManifest does not check a manifest that is newer than the one in the index, because
// nothing was flushed since on which the Raft log relies.
func (x *walIndex) checkManifest() error {
	name, err := atomicfs.ReadMarker(x.FS, x.dir, manifestMarker)
	if err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	number, _ := numberIn(name, manifestBase, "")
	switch {
	case number > x.entries.manifest:
		return nil
	case number < x.entries.manifest:
		return fmt.Errorf("the manifest is %q, but there was number %d: %w", name, x.entries.manifest, errChanged)
	case number == 0:
		return nil
	}
	if err := x.entries.manifestPrefix.check(x.FS, x.PathJoin(x.dir, name)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// numberIn returns the number between a prefix and a suffix, if name has that form.
func numberIn(name, prefix, suffix string) (uint64, bool) {
	digits, is := strings.CutPrefix(name, prefix)
	digits, ends := strings.CutSuffix(digits, suffix)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, is && ends && err == nil
}

// nameOf returns the file's name; empty: it is in another directory.
func (x *walIndex) nameOf(path string) string {
	if x.PathDir(path) != x.dir {
		return ""
	}
	return x.PathBase(path)
}

// Unwrap returns the file system below, as Pebble expects.
func (x *walIndex) Unwrap() vfs.FS { return x.FS }

func (x *walIndex) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := x.FS.Create(path, c)
	if err != nil {
		return nil, err
	}
	name := x.nameOf(path)
	if number, is := numberIn(name, manifestBase, ""); is {
		return x.newManifest(number, f), nil
	}
	if strings.HasPrefix(name, "marker."+manifestMarker+".") {
		if err := x.markerMade(name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (x *walIndex) ReuseForWrite(old, path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := x.remove(old); err != nil {
		return nil, err
	}
	return x.FS.ReuseForWrite(old, path, c)
}

func (x *walIndex) Remove(path string) error {
	if err := x.remove(path); err != nil {
		return err
	}
	return x.FS.Remove(path)
}

// remove removes a log from the index, before its file is removed.
func (x *walIndex) remove(path string) error {
	number, is := numberIn(x.nameOf(path), "", ".log")
	if !is {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, listed := x.entries.logs[number]; !listed {
		return nil
	}
	delete(x.entries.logs, number)
	return x.write()
}

// record makes the index say how much of the manifest is on disk now.
func (x *walIndex) record() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.write()
}

// write replaces the index, durably and in one step. It is called with mu held.
func (x *walIndex) write() error {
	err := durable.Replace(x.FS, x.PathJoin(x.dir, walIndexName), x.entries.encode())
	if err != nil {
		err = fmt.Errorf("write the list of logs: %w", err)
		x.fatal(fmt.Errorf("store: %w", err))
	}
	return err
}
