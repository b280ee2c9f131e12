package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/job"
)

// maxPiece bounds one write to a file.
const maxPiece = 256 << 10

// Receiver builds a generation from an archive that is written to it in pieces
// of any size. Nothing uses the generation before Machine.Install. It belongs to
// one goroutine; end it with Install or Abort.
type Receiver struct {
	fs   vfs.FS
	dir  string // the machine's
	name string // of the generation, without the suffix

	manifest manifest
	err      error // the first failure, kept

	// What is read next: fill gathers len(fill) bytes, then hands them to step.
	// While a file is open its bytes pass by instead.
	fill  []byte
	have  int
	step  func([]byte) error
	next  int // the next file of the manifest
	file  vfs.File
	left  int64
	crc   uint32
	piece []byte // a copy of what is written
	whole bool   // the end was reached
	ended bool   // finished or aborted
}

// Receive starts a generation beside the one in use. It may be called from any
// goroutine; the state is not touched before Install.
func (m *Machine) Receive() (*Receiver, error) { return newReceiver(m.options.FS, m.dir) }

func newReceiver(fsys vfs.FS, dir string) (*Receiver, error) {
	number, err := nextGeneration(fsys, dir)
	if err != nil {
		return nil, err
	}
	r := &Receiver{fs: fsys, dir: dir, name: generationOf(number)}
	if err := fsys.MkdirAll(r.unfinished(), 0o700); err != nil {
		return nil, fmt.Errorf("receive a snapshot: %w", err)
	}
	r.expect(archivePreambleLen, r.preamble)
	return r, nil
}

func (r *Receiver) unfinished() string { return r.fs.PathJoin(r.dir, r.name+unfinishedSuffix) }

// Write takes the next piece. After an error it fails for good.
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
		// A vfs.File may change what it is given; an io.Writer must not.
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
	n, err := checkPreamble(b)
	if err != nil {
		return err
	}
	sum := crc32.Checksum(b, crcTable)
	r.expect(n+archiveSumLen, func(b []byte) error {
		if crc32.Update(sum, crcTable, b[:n]) != binary.BigEndian.Uint32(b[n:]) {
			return errors.New("the archive's manifest does not match its checksum")
		}
		if r.manifest, err = decodeManifest(b[:n]); err != nil {
			return err
		}
		// Here, and not when all has come: it may be a lot.
		if err := job.ReleaseVersions().Check(r.manifest.version); err != nil {
			return err
		}
		return r.nextFile()
	})
	return nil
}

// nextFile starts the next file, or awaits the archive's end.
func (r *Receiver) nextFile() error {
	if r.next == len(r.manifest.files) {
		r.expect(len(archiveEnd), r.end)
		return nil
	}
	f := r.manifest.files[r.next]
	r.next++
	var err error
	if r.file, err = r.fs.Create(r.fs.PathJoin(r.unfinished(), f.name), vfsCategory); err != nil {
		return err
	}
	r.left, r.crc = f.size, 0
	r.expect(archiveSumLen, func(b []byte) error { return r.endFile(f, b) })
	return nil
}

func (r *Receiver) endFile(f archiveFile, sum []byte) error {
	if r.crc != binary.BigEndian.Uint32(sum) {
		return fmt.Errorf("the file %s of the archive does not match its checksum", f.name)
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

// Finish makes what was received durable. It fails when that is not a whole
// archive; then Abort is what remains to be done. It may be called again.
func (r *Receiver) Finish() error {
	if r.err == nil && !r.whole {
		r.err = errors.New("receive a snapshot: the archive ended early")
	}
	if r.err == nil && !r.ended {
		r.ended = true
		r.err = errors.Join(syncDir(r.fs, r.unfinished()), syncDir(r.fs, r.dir))
	}
	return r.err
}

// Abort removes what was received. After Install it does nothing.
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
