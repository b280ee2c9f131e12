package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Names of raft-wal's files below the directory of the stores. They are on disk.
const (
	logDir      = "wal"
	listFile    = "segments"  // below logDir
	walMarkFile = "watermark" // below logDir
)

// walLog is a log in raft-wal. raft-wal creates the next segment concurrently with an
// append. If that fails it only logs why, and the append after it fails with "segment is
// sealed". walLog adds the cause, such as a full disk, to that error.
//
// raft-wal takes the first thing in the last segment that it cannot read for a torn write, and
// creates a last segment that is missing. walLog has a watermark, and looks before raft-wal does
// (checkWAL), so that neither loses entries in silence.
type walLog struct {
	*wal.WAL
	rotation *rotation

	writing sync.Mutex // held during a write, also of the watermark
	mark    *watermark
}

// openWAL opens the raft-wal log below dir. used reports whether Raft has run on it: then
// its list of segments must exist.
func openWAL(dir string, disk *Disk, used bool, o Options) (raft.LogStore, func() error, error) {
	walDir := filepath.Join(dir, logDir)
	l, err := openWALIn(walDir, disk, used, o)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	return l, l.close, nil
}

func openWALIn(walDir string, disk *Disk, used bool, o Options) (_ *walLog, err error) {
	l := &walLog{rotation: new(rotation)}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	list := listOfSegments{segmentList{record{disk.Records, walDir, listFile}}, l.rotation, new(atomic.Bool)}
	content, err := list.content()
	if err != nil {
		return l, err
	}
	list.silent.Store(len(content.Segments) > 0 && !content.Watermark)
	if err := checkList(content.PersistentState, segment.NewFiler(walDir, disk.Segments), used); err != nil {
		return l, err
	}
	if l.mark, err = openWALMark(disk.Records, walDir, content.Watermark && !o.CutDamage); err != nil {
		return l, err
	}
	end, err := checkWAL(walDir, disk.Segments, content, l.mark.held)
	if err != nil && !(o.CutDamage && errors.Is(err, ErrFileDamaged)) {
		return l, err
	}
	size := cmp.Or(o.SegmentBytes, wal.DefaultSegmentSize)
	filer := segment.NewFiler(walDir, newSegments{zeroedSegments{disk.Segments, disk.Records, int64(size), end}, l.rotation})
	if len(content.Segments) > 0 {
		if err := list.CommitState(content.PersistentState); err != nil { // see record.store
			return l, err
		}
	}
	if end.scan != nil && end.scan.sealed {
		if err := repairTail(list, content.PersistentState, filer); err != nil {
			return l, err
		}
	}
	if l.WAL, err = wal.Open(walDir, wal.WithLogger(o.Logger), wal.WithMetaStore(list), wal.WithSegmentFiler(filer), wal.WithSegmentSize(size)); err != nil {
		return l, err
	}
	if err := l.startMark(); err != nil || !list.silent.Swap(false) {
		return l, err
	}
	// Only now the end of the log has none of what releases without a watermark leave there.
	if content, err = list.content(); err != nil {
		return l, err
	}
	return l, list.CommitState(content.PersistentState)
}

// openWALMark opens the watermark, or makes one if the list of segments does not mention it.
func openWALMark(files vfs.FS, walDir string, mentioned bool) (*watermark, error) {
	if mentioned {
		return openWatermark(files, walDir, walMarkFile, 3, true)
	}
	return createWatermark(files, walDir, walMarkFile, 3)
}

// startMark checks the term of the log's last entry by the watermark, and makes the watermark
// that of the log.
func (l *walLog) startMark() error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if held := l.mark.held; held.last > 0 && held.last >= first { // it may be behind after a power failure
		term, err := l.termOf(held.last)
		if err == nil && term != held.term {
			err = fmt.Errorf("%w: its entry %d is of term %d, and this node has acknowledged one of term %d: it is an older copy", ErrFileDamaged, held.last, term, held.term)
		}
		if err != nil {
			return err
		}
	}
	term := uint64(0)
	if last > 0 {
		if term, err = l.termOf(last); err != nil {
			return err
		}
	}
	return errors.Join(l.mark.next(last, term), l.mark.sync())
}

func (l *walLog) termOf(index uint64) (uint64, error) {
	var e raft.Log
	err := l.GetLog(index, &e)
	if err == nil {
		err = verifyChecksum(&e)
	}
	if err != nil {
		return 0, fmt.Errorf("read entry %d: %w", index, err)
	}
	return e.Term, nil
}

// logEnd is the end of a log, as it was found before raft-wal opens it.
type logEnd struct {
	last uint64       // index; 0: the log is empty
	name string       // of the segment that is not sealed in the list
	scan *segmentScan // of that segment; nil: it is missing, or there is none
}

// checkWAL looks at the end of the log before raft-wal does. It returns an error if something that
// was acknowledged is missing there, or damaged, and changes nothing.
func checkWAL(walDir string, files types.VFS, list listContent, held commitMark) (end logEnd, err error) {
	what := "its end is missing"
	for _, s := range list.Segments {
		if !s.SealTime.IsZero() {
			end.last = s.MaxIndex
			continue
		}
		end.name = segment.FileName(s)
		if end.scan, err = checkTail(walDir, files, s, list.Watermark); err != nil {
			return end, fmt.Errorf("segment %s: %w", end.name, err)
		}
		switch {
		case end.scan == nil:
			what = fmt.Sprintf("its last segment, %s, is missing", end.name)
		case end.scan.entries == 0:
			what = fmt.Sprintf("its last segment, %s, is empty", end.name)
		default:
			end.last = s.BaseIndex + end.scan.entries - 1
			what = fmt.Sprintf("its last segment, %s, ends at byte %d", end.name, end.scan.to)
		}
	}
	if end.last < held.last {
		return end, fmt.Errorf("%w: it ends with entry %d, but this node has acknowledged entries up to %d (%s says so): %s. %d entries are lost",
			ErrFileDamaged, end.last, held.last, walMarkFile, what, held.last-end.last)
	}
	return end, nil
}

// checkTail reads the segment that is not sealed in the list. It returns nil if there is no such file.
func checkTail(walDir string, files types.VFS, s types.SegmentInfo, marked bool) (_ *segmentScan, err error) {
	f, err := files.OpenReader(walDir, segment.FileName(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // raft-wal creates it in Open
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	scan, err := scanSegment(f, s, nil)
	if err != nil || scan.used == scan.to {
		return &scan, err
	}
	t, err := readTail(f, s, scan)
	if err != nil {
		return nil, err
	}
	return &scan, t.damage(marked)
}

// GetLog implements raft.LogStore. raft-wal's decoder panics on some damage.
func (l *walLog) GetLog(index uint64, entry *raft.Log) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("entry %d: %w: %v", index, ErrDamaged, p)
		}
	}()
	return l.WAL.GetLog(index, entry)
}

// StoreLog implements raft.LogStore.
func (l *walLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l *walLog) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.WAL.StoreLogs(entries); err != nil {
		if cause := l.rotation.failure(); cause != nil && !errors.Is(err, cause) {
			return fmt.Errorf("%w: create the next segment: %w", err, cause)
		}
		return err
	}
	newest := entries[len(entries)-1]
	if err := l.mark.next(newest.Index, newest.Term); err != nil {
		return err
	}
	if l.rotation.begins(entries[0].Index) {
		// From now on the segment must be there, also after a power failure.
		return l.mark.sync()
	}
	return nil
}

// DeleteRange implements raft.LogStore. The range must reach one end of the log.
func (l *walLog) DeleteRange(first, last uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.lowerMark(first, last); err != nil {
		return err
	}
	return l.WAL.DeleteRange(first, last)
}

// lowerMark lowers the watermark if a range reaches the end of the log.
func (l *walLog) lowerMark(first, last uint64) error {
	begin, err := l.FirstIndex()
	if err != nil {
		return err
	}
	end, err := l.LastIndex()
	if err != nil || first > last || last < end || first > end {
		return err
	}
	if first <= begin {
		return l.mark.lower(0, 0)
	}
	term, err := l.termOf(first - 1)
	if err != nil {
		return err
	}
	return l.mark.lower(first-1, term)
}

func (l *walLog) close() error {
	var err error
	if l.WAL != nil {
		err = l.WAL.Close()
	}
	if l.mark != nil {
		err = errors.Join(err, l.mark.close())
	}
	return err
}

// rotation keeps the error of the last attempt to create a segment, and where the last two
// segments begin.
type rotation struct {
	mu    sync.Mutex
	err   error
	bases [2]uint64 // the newest first
}

func (r *rotation) record(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	return err
}

func (r *rotation) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *rotation) setBase(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bases[0] != index {
		r.bases = [2]uint64{index, r.bases[0]}
	}
}

// begins reports whether the segment of an append that was just made begins with an entry. If the
// append filled the segment, the next one may exist already.
func (r *rotation) begins(index uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bases[0] == index || r.bases[1] == index
}

type newSegments struct {
	types.VFS
	rotation *rotation
}

func (s newSegments) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.VFS.Create(dir, name, size)
	return f, s.rotation.record(err)
}

type listOfSegments struct {
	segmentList
	rotation *rotation
	silent   *atomic.Bool // about the watermark
}

func (l listOfSegments) CommitState(s types.PersistentState) error {
	if n := len(s.Segments); n > 0 {
		l.rotation.setBase(s.Segments[n-1].BaseIndex)
	}
	err := l.commit(s, !l.silent.Load())
	return l.rotation.record(err)
}
