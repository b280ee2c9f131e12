package backupschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/cluster/backup"
	"tarry/cluster/diskspace"
	"tarry/internal/durable"
	"tarry/internal/sleep"
)

const (
	// syncBytes is how much of a backup is written between two syncs. One sync of the whole
	// file at its end would delay those of the log, if both are on one disk.
	syncBytes = 16 << 20

	// abandoned is the age of an incomplete file of another node at which nobody can be
	// writing it any more: a backup ends within job.MaxBackupTime.
	abandoned = 24 * time.Hour

	stamp = "20060102T150405Z"
)

var (
	completeName = regexp.MustCompile(`^tarry-(\d{8}T\d{6}Z)-(\d{12,20})\.backup$`)
	partialName  = regexp.MustCompile(`^tarry-\d{8}T\d{6}Z\.([0-9a-f]+)\.partial$`)
)

// File is a backup in the directory. It has its name since all of it was read back.
type File struct {
	Name    string
	Instant int64 // of the schedule, in Unix milliseconds
	Index   uint64
	Taken   time.Time // zero: the header cannot be read
	Bytes   int64
	Problem string // why it cannot be restored; empty: its beginning and its end are as they were
}

// unreadable reports whether nothing is known of a file but its name.
func (f *File) unreadable() bool { return f.Taken.IsZero() }

func fileName(instantMS int64, index uint64) string {
	return fmt.Sprintf("tarry-%s-%012d.backup", time.UnixMilli(instantMS).UTC().Format(stamp), index)
}

// directory is where the backups are. It is for one goroutine.
type directory struct {
	path        string
	incarnation string // of this node; hexadecimal
	clusterID   func() string
	rate        int64        // bytes a second at which files are read back; 0: without limit
	room        func() error // returns why there is too little room to go on
	known       map[string]knownFile
}

// knownFile is a file whose header was read, so that it is not read again each time.
type knownFile struct {
	size     int64
	modified time.Time
	cluster  string
	file     File
}

// prepare makes the directory if it is missing, but not its parents: where a mount is missing,
// nothing must be written. It removes the incomplete files that nobody is writing.
func (d *directory) prepare() error {
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
func (d *directory) check() error {
	if err := d.prepare(); err != nil {
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

// list returns the scheduled backups of this cluster, the newest first, without those whose
// headers cannot be read.
func (d *directory) list() ([]File, error) {
	all, err := d.listAll()
	return slices.DeleteFunc(all, func(f File) bool { return f.unreadable() }), err
}

// listAll returns the scheduled backups of this cluster, and the files named like one whose
// headers cannot be read, the newest first. Their order is that of the log, whatever the clocks
// of the nodes that made them were.
func (d *directory) listAll() ([]File, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var list []File
	known := map[string]knownFile{}
	for _, e := range entries {
		if !e.Type().IsRegular() || !completeName.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		k := d.known[e.Name()]
		if k.size != info.Size() || !k.modified.Equal(info.ModTime()) {
			if k, err = d.read(e.Name(), info); err != nil { // of another origin, or damaged: it is left alone
				if f, ours := nameOnly(e.Name(), info, err); ours && !errors.Is(err, fs.ErrNotExist) {
					list = append(list, f)
				}
				continue
			}
		}
		known[e.Name()] = k
		if k.cluster == d.clusterID() {
			list = append(list, k.file)
		}
	}
	d.known = known
	slices.SortFunc(list, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(b.Instant, a.Instant))
	})
	return list, nil
}

// nameOnly is a backup of which only the name can be read.
func nameOnly(name string, info fs.FileInfo, err error) (f File, ours bool) {
	instant, index, bad := parseName(name)
	return File{Name: name, Instant: instant, Index: index, Bytes: info.Size(), Problem: oneLine(err)}, bad == nil
}

// parseName reads the instant of the schedule and the index in a name.
func parseName(name string) (instant int64, index uint64, err error) {
	m := completeName.FindStringSubmatch(name)
	at, err := time.Parse(stamp, m[1])
	if err != nil {
		return 0, 0, err
	}
	index, err = strconv.ParseUint(m[2], 10, 64)
	return at.UnixMilli(), index, err
}

// read reads the header of a backup, and where it ends.
func (d *directory) read(name string, info fs.FileInfo) (knownFile, error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return knownFile{}, err
	}
	defer f.Close()
	r, err := backup.NewReader(f)
	if err != nil {
		return knownFile{}, err
	}
	defer r.Close()
	instant, index, err := parseName(name)
	if err != nil || index != r.Header.Index {
		return knownFile{}, fmt.Errorf("%s has index %d", name, r.Header.Index)
	}
	file := File{Name: name, Instant: instant, Index: index, Taken: r.Header.Taken(), Bytes: info.Size()}
	if err := backup.CheckEnd(f, info.Size(), &r.Header); err != nil {
		file.Problem = oneLine(err)
	}
	return knownFile{size: info.Size(), modified: info.ModTime(), cluster: r.Header.ClusterID, file: file}, nil
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
	h, size, err := d.readBack(ctx, f.Name())
	if err != nil {
		return File{}, fmt.Errorf("read it back: %w", err)
	}
	made = File{Name: fileName(instantMS, h.Index), Instant: instantMS, Index: h.Index, Taken: h.Taken(), Bytes: size}
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

// readBack checks all checksums of a backup.
func (d *directory) readBack(ctx context.Context, path string) (h backup.Header, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, 0, err
	}
	defer f.Close()
	defer dropCache(f)
	from := &pacedReader{ctx: ctx, from: f, rate: d.rate, began: time.Now()}
	r, err := backup.NewReader(from)
	if err != nil {
		return h, 0, err
	}
	defer r.Close()
	if r.Header.ClusterID != d.clusterID() {
		return h, 0, errors.New("the cluster has another id now")
	}
	_, err = io.Copy(io.Discard, r)
	return r.Header, from.read, err
}

// prune removes what is too much of a list, but never the file that must stay.
func (d *directory) prune(list []File, keep int, stays string) (removed []File, err error) {
	var errs []error
	for _, f := range list[min(keep, len(list)):] {
		if f.Name == stays {
			continue
		}
		if err := remove(filepath.Join(d.path, f.Name)); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, f)
	}
	return removed, errors.Join(errs...)
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

// pacedReader reads at a rate until its context ends.
type pacedReader struct {
	ctx   context.Context
	from  io.Reader
	rate  int64 // bytes a second; 0: without limit
	began time.Time
	read  int64
}

func (r *pacedReader) Read(p []byte) (int, error) {
	if r.rate > 0 {
		due := r.began.Add(time.Duration(float64(r.read) / float64(r.rate) * float64(time.Second)))
		sleep.For(r.ctx, time.Until(due))
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	r.read += int64(n)
	return n, err
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
