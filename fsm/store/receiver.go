package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

const vfsCategory = vfs.WriteCategoryUnspecified

// maxPiece bounds one write to a file.
const maxPiece = 256 << 10

// Receiver makes a generation of an archive that is written to it in pieces of any size.
// It is for one goroutine; end it with Keep or Abort.
type Receiver struct {
	dir   *Dir
	fs    vfs.FS
	name  string // of the generation, without the suffix; empty after Keep or Abort
	check func(Header) error

	index archiveIndex
	err   error // the first failure, kept

	// fill gathers len(fill) bytes for step. While a file is open, bytes go to the file
	// instead.
	fill  []byte
	have  int
	step  func([]byte) error
	next  int // the next file of the index
	file  vfs.File
	left  int64
	crc   uint32
	piece []byte // scratch: a copy of what is written
	whole bool   // the end was reached
	ended bool   // finished or aborted
}

// Receive starts a generation beside the live one. check is called with the archive's
// header before the first file is written; its error ends the Receiver. Receive may be
// called from any goroutine.
func (d *Dir) Receive(check func(Header) error) (*Receiver, error) {
	d.receiving.Lock()
	defer d.receiving.Unlock()
	number, err := nextGeneration(d.options.FS, d.path)
	if err != nil {
		return nil, err
	}
	r := &Receiver{dir: d, fs: d.options.FS, name: generationOf(number), check: check}
	if err := r.fs.MkdirAll(r.unfinished(), 0o700); err != nil {
		return nil, fmt.Errorf("receive a snapshot: %w", err)
	}
	r.expect(archivePreambleLen, r.preamble)
	return r, nil
}

func (r *Receiver) unfinished() string { return r.dir.join(r.name + unfinishedSuffix) }

// Write takes the next piece. After an error it fails forever.
func (r *Receiver) Write(p []byte) (int, error) {
	if r.err == nil && r.ended {
		r.err = errors.New("receive a snapshot: it was ended before")
	}
	written := 0
	for written < len(p) && r.err == nil {
		n, err := r.take(p[written:])
		written += n
		if err != nil {
			r.err = fmt.Errorf("receive a snapshot: %w", err)
		}
	}
	return written, r.err
}

// take consumes at least a byte of p, or fails.
func (r *Receiver) take(p []byte) (int, error) {
	if r.whole {
		return 0, errors.New("the archive goes on after its end")
	}
	if r.left > 0 {
		// A vfs.File may change the slice; an io.Writer must not.
		r.piece = append(r.piece[:0], p[:min(int64(len(p)), r.left, maxPiece)]...)
		n, err := r.file.Write(r.piece)
		r.left -= int64(n)
		r.crc = crc32.Update(r.crc, crcTable, p[:n])
		return n, err
	}
	n := copy(r.fill[r.have:], p)
	r.have += n
	if r.have < len(r.fill) {
		return n, nil
	}
	return n, r.step(r.fill)
}

// expect gathers the next n bytes for step.
func (r *Receiver) expect(n int, step func([]byte) error) {
	r.fill, r.have, r.step = make([]byte, n), 0, step
}

func (r *Receiver) preamble(b []byte) error {
	n, incremental, err := checkPreamble(b)
	if err != nil {
		return err
	}
	if incremental {
		return errors.New("the archive is incremental: it needs its base")
	}
	sum := crc32.Checksum(b, crcTable)
	r.expect(n+archiveSumLen, func(b []byte) error {
		if crc32.Update(sum, crcTable, b[:n]) != binary.BigEndian.Uint32(b[n:]) {
			return errors.New("the archive's index does not match its checksum")
		}
		if r.index, err = decodeArchiveIndex(b[:n], false); err != nil {
			return err
		}
		// Now and not at the end: the archive may be large.
		if err := r.check(r.index.Header); err != nil {
			return err
		}
		return r.nextFile()
	})
	return nil
}

// nextFile starts the next file, or expects the archive's end.
func (r *Receiver) nextFile() error {
	if r.next == len(r.index.files) {
		r.expect(len(archiveEnd), r.end)
		return nil
	}
	f := r.index.files[r.next]
	r.next++
	r.left, r.crc = f.size, 0
	r.expect(archiveSumLen, func(b []byte) error { return r.endFile(f, b) })
	if isStoreMark(f.name) {
		return checkStoreMark(f)
	}
	var err error
	if r.file, err = r.fs.Create(r.fs.PathJoin(r.unfinished(), f.name), vfsCategory); err != nil {
		return err
	}
	return nil
}

func (r *Receiver) endFile(f archiveFile, sum []byte) error {
	if r.crc != binary.BigEndian.Uint32(sum) {
		return fmt.Errorf("the file %s of the archive does not match its checksum", f.name)
	}
	if r.file == nil {
		return r.nextFile()
	}
	if err := r.file.Sync(); err != nil {
		return err
	}
	if err := r.closeFile(); err != nil {
		return err
	}
	return r.nextFile()
}

func (r *Receiver) closeFile() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

func (r *Receiver) end(b []byte) error {
	if string(b) != archiveEnd {
		return fmt.Errorf("the archive's end mark is %q", b)
	}
	r.whole = true
	return nil
}

// Finish makes the generation durable. It fails if the archive is not whole; then call
// Abort. It may be called again.
func (r *Receiver) Finish() error {
	if r.err == nil && !r.whole {
		r.err = errors.New("receive a snapshot: the archive ended early")
	}
	if r.err == nil && !r.ended {
		r.ended = true
		r.err = errors.Join(durable.SyncDir(r.fs, r.unfinished()), durable.SyncDir(r.fs, r.dir.path))
	}
	return r.err
}

// Header returns the header of the archive. It is set once Finish has succeeded.
func (r *Receiver) Header() Header { return r.index.Header }

// Inspect is Dir.Inspect of the received generation. It must not be called before Finish.
func (r *Receiver) Inspect(look func(*pebble.DB) error) error {
	return r.dir.Inspect(r.unfinished(), look)
}

// Keep gives the generation its final name and returns its path, for SetLive. It must not
// be called before Finish. On an error the generation is removed.
func (r *Receiver) Keep() (path string, err error) {
	path = r.dir.join(r.name)
	if err := r.fs.Rename(r.unfinished(), path); err != nil {
		return "", errors.Join(err, r.Abort())
	}
	r.name = ""
	if err := durable.SyncDir(r.fs, r.dir.path); err != nil {
		return "", errors.Join(err, r.fs.RemoveAll(path))
	}
	return path, nil
}

// Abort removes the generation. After Keep it does nothing.
func (r *Receiver) Abort() error {
	r.ended = true
	if r.name == "" {
		return nil
	}
	err := errors.Join(r.closeFile(), r.fs.RemoveAll(r.unfinished()))
	r.name = ""
	if r.err == nil {
		r.err = errors.New("receive a snapshot: it was aborted")
	}
	if err != nil {
		return fmt.Errorf("remove a received snapshot: %w", err)
	}
	return nil
}

// Path returns where the generation is before Keep. What is opened there must be closed before
// Keep and Abort.
func (r *Receiver) Path() string { return r.unfinished() }
