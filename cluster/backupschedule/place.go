package backupschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"time"

	"tarry/cluster/backup"
	"tarry/internal/sleep"
)

// place is where the backups are. It is for one goroutine.
type place interface {
	fmt.Stringer
	// check returns an error unless a backup can be written.
	check(ctx context.Context) error
	// prepare makes room for backups, and removes what nobody completes any more.
	prepare(ctx context.Context) error
	// list returns the scheduled backups of this cluster, and those named like one whose headers
	// cannot be read, the newest first. Their order is that of the log, whatever the clocks of
	// the nodes that made them were.
	list(ctx context.Context) ([]File, error)
	// open calls read with a file of the list.
	open(ctx context.Context, f *File, read func(io.ReaderAt) error) error
	// create makes a backup that write writes.
	create(ctx context.Context, instantMS int64, write func(context.Context, io.Writer) error) (File, error)
	remove(ctx context.Context, name string) error
}

// File is a scheduled backup.
type File struct {
	Name    string
	Instant int64 // of the schedule, in Unix milliseconds
	Index   uint64
	Taken   time.Time // zero: the header cannot be read
	Bytes   int64
	NodeID  string // that made it
	ID      string // of the file; empty: it is damaged
	BaseID  string // of the file that it builds on; empty: it is whole
	Base    string // the name of that
	Problem string // why it cannot be restored; empty: its beginning and its end are as they were, and its bases are there
}

// fileOf describes a backup by its header.
func fileOf(instantMS int64, h *backup.Header) File {
	return File{
		Name: fileName(instantMS, h.Index), Instant: instantMS, Index: h.Index, Taken: h.Taken(),
		NodeID: h.NodeID, BaseID: h.BaseID, Base: h.BaseName,
	}
}

// unreadable reports whether nothing is known of a file but its name.
func (f *File) unreadable() bool { return f.Taken.IsZero() }

// stamp is the instant in a name.
const stamp = "20060102T150405Z"

var completeName = regexp.MustCompile(`^tarry-(\d{8}T\d{6}Z)-(\d{12,20})\.backup$`)

func fileName(instantMS int64, index uint64) string {
	return fmt.Sprintf("tarry-%s-%012d.backup", time.UnixMilli(instantMS).UTC().Format(stamp), index)
}

// parseName reads the instant of the schedule and the index in a name.
func parseName(name string) (instant int64, index uint64, err error) {
	m := completeName.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, fmt.Errorf("%s is not the name of a scheduled backup", name)
	}
	at, err := time.Parse(stamp, m[1])
	if err != nil {
		return 0, 0, err
	}
	index, err = strconv.ParseUint(m[2], 10, 64)
	return at.UnixMilli(), index, err
}

// reading is how every place reads the backups in it.
type reading struct {
	clusterID func() string
	rate      int64 // bytes a second at which files are read back; 0: without limit
	known     map[string]knownFile
}

// stored is what a place knows of a file without reading it. The mark changes with the content.
type stored struct {
	name string
	size int64
	mark string
}

// knownFile is a file whose header was read, so that it is not read again each time.
type knownFile struct {
	stored
	cluster string
	file    File
}

// files returns what place.list does. open opens a file for read.
func (d *reading) files(found []stored, open func(s stored, read func(io.ReaderAt) error) error) (list []File) {
	known := map[string]knownFile{}
	for _, s := range found {
		if !completeName.MatchString(s.name) {
			continue
		}
		k := d.known[s.name]
		if k.stored != s {
			err := open(s, func(f io.ReaderAt) (err error) {
				k, err = readEnds(s, f)
				return err
			})
			if err != nil { // of another origin, or damaged: it is left alone
				if f, ours := nameOnly(s, err); ours && !errors.Is(err, fs.ErrNotExist) {
					list = append(list, f)
				}
				continue
			}
		}
		known[s.name] = k
		if k.cluster == d.clusterID() {
			list = append(list, k.file)
		}
	}
	d.known = known
	slices.SortFunc(list, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(b.Instant, a.Instant))
	})
	link(list)
	return list
}

// nameOnly is a backup of which only the name can be read.
func nameOnly(s stored, err error) (f File, ours bool) {
	instant, index, bad := parseName(s.name)
	return File{Name: s.name, Instant: instant, Index: index, Bytes: s.size, Problem: oneLine(err)}, bad == nil
}

// readEnds reads the header of a backup, and where it ends.
func readEnds(s stored, f io.ReaderAt) (knownFile, error) {
	r, err := backup.NewReader(io.NewSectionReader(f, 0, s.size))
	if err != nil {
		return knownFile{}, err
	}
	defer r.Close()
	instant, index, err := parseName(s.name)
	if err != nil || index != r.Header.Index {
		return knownFile{}, fmt.Errorf("%s has index %d", s.name, r.Header.Index)
	}
	file := fileOf(instant, &r.Header)
	file.Name, file.Bytes = s.name, s.size
	if err = backup.CheckEnd(f, s.size, &r.Header); err == nil {
		file.ID, err = backup.ReadID(f, s.size)
	}
	if err != nil {
		file.Problem = oneLine(err)
	}
	return knownFile{stored: s, cluster: r.Header.ClusterID, file: file}, nil
}

// all reads the whole of a backup, checks all its checksums, and describes it.
func (d *reading) all(ctx context.Context, f io.Reader, instantMS int64) (File, error) {
	from := &pacedReader{ctx: ctx, from: f, rate: d.rate, began: time.Now()}
	r, err := backup.NewReader(from)
	if err != nil {
		return File{}, err
	}
	defer r.Close()
	if r.Header.ClusterID != d.clusterID() {
		return File{}, errors.New("the cluster has another id now")
	}
	_, err = io.Copy(io.Discard, r)
	file := fileOf(instantMS, &r.Header)
	file.ID, file.Bytes = r.ID(), from.read
	return file, err
}

// readable are the files of a list whose headers can be read.
func readable(list []File, err error) ([]File, error) {
	return slices.DeleteFunc(list, func(f File) bool { return f.unreadable() }), err
}

// prune removes what is too much of a list, but never the file that must stay, nor one on which
// a file builds that stays.
func prune(ctx context.Context, p place, list []File, keep int, stays string) (removed []File, err error) {
	var errs []error
	stay := kept(list, keep, stays)
	for _, f := range list {
		if stay[f.Name] {
			continue
		}
		if err := p.remove(ctx, f.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, f)
	}
	return removed, errors.Join(errs...)
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
