package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Archive reads a checkpoint as an archive. Read and Close must not run concurrently.
type Archive struct {
	Size int64 // in bytes, exact

	fs     vfs.FS
	dir    string // the checkpoint
	body   io.Reader
	files  []*fileReader
	closed bool
}

// OpenArchive opens the checkpoint in dir as an archive with header h. Close removes
// the checkpoint; after an error the caller does.
func OpenArchive(fsys vfs.FS, dir string, h Header) (*Archive, error) {
	files, err := filesIn(fsys, dir)
	if err != nil {
		return nil, err
	}
	return newArchive(fsys, dir, archiveIndex{Header: h, files: files}), nil
}

func newArchive(fsys vfs.FS, dir string, x archiveIndex) *Archive {
	a := &Archive{Size: x.size(), fs: fsys, dir: dir}
	parts := []io.Reader{bytes.NewReader(x.appendHead(nil))}
	for _, f := range x.files {
		if f.inBase {
			continue
		}
		r := &fileReader{fs: fsys, path: fsys.PathJoin(dir, f.name), left: f.size}
		a.files = append(a.files, r)
		parts = append(parts, r)
	}
	a.body = io.MultiReader(append(parts, strings.NewReader(archiveEnd))...)
	return a
}

func (a *Archive) Read(p []byte) (int, error) {
	if a.closed {
		return 0, errors.New("the snapshot stream is closed")
	}
	return a.body.Read(p)
}

// Close removes the checkpoint. Closing again does nothing.
func (a *Archive) Close() error {
	if a.closed {
		return nil
	}
	a.closed = true
	var err error
	for _, f := range a.files {
		err = errors.Join(err, f.close())
	}
	if err = errors.Join(err, a.fs.RemoveAll(a.dir)); err != nil {
		return fmt.Errorf("remove a checkpoint of the state: %w", err)
	}
	return nil
}

// filesIn returns the files of a store, except its lock, by name.
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
	tail []byte // the rest of the checksum
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
