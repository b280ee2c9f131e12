package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/cluster/diskspace"
	"tarry/internal/durable"
)

const (
	// syncBytes is how much of a backup is written between two syncs. One sync of the whole
	// file at its end would delay those of the log, if both are on one disk.
	syncBytes = 16 << 20

	// abandoned is the age of an incomplete file of another node at which nobody can be
	// writing it any more: a backup ends within job.MaxBackupTime.
	abandoned = 24 * time.Hour
)

var partialName = regexp.MustCompile(`^tarry-\d{8}T\d{6}Z\.([0-9a-f]+)\.partial$`)

// directory is a place on a file system. It is for one goroutine.
type directory struct {
	reading
	path        string
	incarnation string       // of this node; hexadecimal
	room        func() error // returns why there is too little room to go on
}

func (d *directory) String() string { return d.path }

// prepare makes the directory if it is missing, but not its parents: where a mount is missing,
// nothing must be written. It removes the incomplete files that nobody is writing.
func (d *directory) prepare(context.Context) error {
	if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		m := partialName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil || m[1] != d.incarnation && time.Since(info.ModTime()) < abandoned {
			continue // it is gone, or another node may be writing it
		}
		if err := remove(filepath.Join(d.path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless a file can be written.
func (d *directory) check(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	f, err := d.createPartial(0)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), remove(f.Name()))
}

func (d *directory) createPartial(instantMS int64) (*os.File, error) {
	name := fmt.Sprintf("tarry-%s.%s.partial", time.UnixMilli(instantMS).UTC().Format(stamp), d.incarnation)
	return os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// list implements place.
func (d *directory) list(context.Context) ([]File, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var found []stored
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			found = append(found, stored{e.Name(), info.Size(), info.ModTime().String()})
		}
	}
	return d.files(found, func(s stored, read func(io.ReaderAt) error) error { return d.read(s.name, read) }), nil
}

func (d *directory) open(_ context.Context, f *File, read func(io.ReaderAt) error) error {
	return d.read(f.Name, read)
}

func (d *directory) read(name string, read func(io.ReaderAt) error) error {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// create makes a backup that write writes. It has its name when it is complete, synced and was
// read back.
func (d *directory) create(ctx context.Context, instantMS int64, write func(context.Context, io.Writer) error) (made File, err error) {
	f, err := d.createPartial(instantMS)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, remove(f.Name())) }()
	if err = d.room(); err == nil {
		err = write(ctx, &syncedWriter{f: f, room: d.room})
	}
	if err == nil {
		err = f.Sync()
	}
	dropCache(f) // so that what is read back comes from the disk, and the cache keeps the store
	if err = errors.Join(err, f.Close()); err != nil {
		return File{}, err
	}
	if made, err = d.readBack(ctx, f.Name(), instantMS); err != nil {
		return File{}, fmt.Errorf("read it back: %w", err)
	}
	path := filepath.Join(d.path, made.Name)
	// A rename replaces. Between this check and the rename only a leader that is cut off could
	// make a file of this name: a backup of the same instant, at the same entry.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return File{}, errors.Join(fmt.Errorf("%s exists already", path), err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return File{}, err
	}
	if err := durable.SyncDir(vfs.Default, d.path); err != nil {
		return File{}, errors.Join(err, remove(path))
	}
	return made, nil
}

func (d *directory) readBack(ctx context.Context, path string, instantMS int64) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	defer dropCache(f)
	return d.all(ctx, f, instantMS)
}

// remove implements place.
func (d *directory) remove(_ context.Context, name string) error {
	return remove(filepath.Join(d.path, name))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncedWriter syncs a file every syncBytes, and then looks whether there is still room.
type syncedWriter struct {
	f        *os.File
	room     func() error
	unsynced int
}

func (w *syncedWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if w.unsynced += n; err != nil || w.unsynced < syncBytes {
		return n, err
	}
	w.unsynced = 0
	return n, errors.Join(w.f.Sync(), w.room())
}

// room returns an error if a backup takes the space that the data directory needs: where both
// are on one disk, a backup must not be the reason why the node refuses adds.
func room(dir, dataDir string, lowWater uint64) error {
	if !diskspace.SameDisk(dir, dataDir) {
		return nil
	}
	free, err := diskspace.Free(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && free < lowWater+syncBytes {
		err = fmt.Errorf("the data directory is on the same disk, which has %d MiB free, and its low-water mark is %d MiB: use another disk, or keep fewer backups", free>>20, lowWater>>20)
	}
	return err
}
