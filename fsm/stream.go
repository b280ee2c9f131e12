package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Stream reads a whole state as an archive, for a node that lacks it or for a
// backup. What it holds was fixed when it was opened; the machine goes on
// meanwhile. Its checkpoint keeps files alive that the machine would drop, so
// the owner must Close it, also when its reader has stalled. Read and Close must
// not run together.
type Stream struct {
	// Applied is read from the archive's own data, so index and data agree.
	Applied
	// Size is the exact number of bytes that Read will give.
	Size int64

	fs     vfs.FS
	dir    string // the checkpoint
	body   io.Reader
	files  []*fileReader
	closed bool
}

// OpenStream fixes the present state in a checkpoint, which costs hard links and
// a sync, and opens it as an archive. It blocks for about as long as a flush.
func (m *Machine) OpenStream() (*Stream, error) {
	dir := m.options.FS.PathJoin(m.dir, fmt.Sprintf("%s%d", checkpointPrefix, m.checkpoints.Add(1)))
	if err := m.checkpoint(dir); err != nil {
		return nil, fmt.Errorf("take a checkpoint of the state: %w", err)
	}
	s := &Stream{fs: m.options.FS, dir: dir}
	if err := s.open(m.options); err != nil {
		return nil, errors.Join(fmt.Errorf("open a checkpoint of the state: %w", err), s.Close())
	}
	return s, nil
}

func (m *Machine) checkpoint(dir string) error {
	m.storeMu.RLock()
	defer m.storeMu.RUnlock()
	if m.store == nil {
		return errClosed
	}
	// A checkpoint holds what is not in tables yet as write-ahead log, which the
	// receiver would have to replay; after a flush little of that is left.
	if err := m.store.db.Flush(); err != nil {
		return err
	}
	// A copy of a write-ahead log that is being written may end in the middle of
	// a record, which its reader takes for damage.
	m.options.Point("before-checkpoint")
	m.writing.Lock()
	defer m.writing.Unlock()
	err := m.store.db.Checkpoint(dir, pebble.WithFlushedWAL())
	m.options.Point("after-checkpoint")
	return err
}

func (s *Stream) open(o Options) error {
	var m manifest
	var err error
	s.Applied, err = inspect(s.dir, o, func(db *pebble.DB) (err error) { m.version, _, err = readVersion(db); return err })
	if err != nil {
		return err
	}
	m.index, m.term = s.Index, s.Term
	if m.files, err = filesIn(s.fs, s.dir); err != nil {
		return err
	}
	s.Size = m.size()
	parts := []io.Reader{bytes.NewReader(m.appendHead(nil))}
	for _, f := range m.files {
		r := &fileReader{fs: s.fs, path: s.fs.PathJoin(s.dir, f.name), left: f.size}
		s.files = append(s.files, r)
		parts = append(parts, r)
	}
	s.body = io.MultiReader(append(parts, strings.NewReader(archiveEnd))...)
	return nil
}

func (s *Stream) Read(p []byte) (int, error) {
	if s.closed {
		return 0, errors.New("the snapshot stream is closed")
	}
	return s.body.Read(p)
}

// Close removes the checkpoint. Closing again does nothing.
func (s *Stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.close())
	}
	if err = errors.Join(err, s.fs.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("remove a checkpoint of the state: %w", err)
	}
	return nil
}

// inspect opens a store that nothing else uses, without changing it, lets look
// have a look, and says how far the store has come. It refuses a store of another
// format. Damage is an error here and no reason to end the process, as it is in
// the live store.
func inspect(dir string, o Options, look func(*pebble.DB) error) (Applied, error) {
	db, err := pebble.Open(dir, &pebble.Options{
		FS: o.FS, ReadOnly: true, ErrorIfNotExists: true, CacheSize: 1 << 20, MaxOpenFiles: 64,
		Logger:        storeLogger{o.Logger, o.OnFatal},
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	})
	if err != nil {
		return Applied{}, err
	}
	a, err := readApplied(db)
	if err == nil {
		err = look(db)
	}
	return a, errors.Join(err, db.Close())
}

// readAll reads every record of a store, and so compares the blocks that they
// are in with their checksums.
func readAll(db *pebble.DB) error {
	return scan(db, nil, nil, func(_, _ []byte) error { return nil })
}

// filesIn lists the files of a store, but for its lock, by name.
func filesIn(fsys vfs.FS, dir string) ([]archiveFile, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var files []archiveFile
	for _, n := range names {
		if n == "LOCK" {
			continue
		}
		info, err := fsys.Stat(fsys.PathJoin(dir, n))
		if err != nil {
			return nil, err
		}
		if info.IsDir() || !archiveName.MatchString(n) {
			return nil, fmt.Errorf("the store has %q, which an archive cannot hold", n)
		}
		files = append(files, archiveFile{name: n, size: info.Size()})
	}
	return files, nil
}

// fileReader reads one file and then its checksum. The file is open only while
// it is being read.
type fileReader struct {
	fs   vfs.FS
	path string
	left int64

	file vfs.File
	crc  uint32
	tail []byte // what is left of the checksum
	done bool
}

func (r *fileReader) Read(p []byte) (int, error) {
	if r.left > 0 {
		return r.readFile(p)
	}
	if !r.done {
		r.done = true
		r.tail = binary.BigEndian.AppendUint32(nil, r.crc)
		if err := r.close(); err != nil {
			return 0, err
		}
	}
	if len(r.tail) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.tail)
	r.tail = r.tail[n:]
	return n, nil
}

func (r *fileReader) readFile(p []byte) (int, error) {
	if r.file == nil {
		f, err := r.fs.Open(r.path, vfs.SequentialReadsOption)
		if err != nil {
			return 0, err
		}
		r.file = f
	}
	n, err := r.file.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.crc = crc32.Update(r.crc, crcTable, p[:n])
	if err == io.EOF {
		err = nil
		if r.left > 0 {
			err = fmt.Errorf("%s has become shorter by %d bytes: %w", r.path, r.left, io.ErrUnexpectedEOF)
		}
	}
	return n, err
}

func (r *fileReader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
