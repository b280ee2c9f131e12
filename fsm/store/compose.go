package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Composed is a whole archive, made while it is read from an incremental one and the archive that
// is its base. Both have their files in the same order, so neither is read twice.
type Composed struct {
	Size int64 // in bytes, exact

	parts io.Reader
}

// Compose returns the archive that top makes with its base, which is whole. Both are read to
// their ends. What is wrong with the content of the files is found by who reads it.
func Compose(top, base io.Reader) (*Composed, error) {
	x, err := readIndex(top)
	if err != nil {
		return nil, err
	}
	if !x.incremental {
		return nil, errors.New("the archive is whole: it has no base")
	}
	y, err := readIndex(base)
	if err != nil {
		return nil, fmt.Errorf("the base: %w", err)
	}
	if y.incremental {
		return nil, errors.New("the base is incremental: it needs its own base first")
	}
	whole := archiveIndex{Header: x.Header}
	b := &baseFiles{from: base, left: y.files}
	var parts []io.Reader
	for _, f := range x.files {
		if isStoreMark(f.name) && !f.inBase {
			parts = append(parts, &skipped{from: top, bytes: f.size + archiveSumLen})
			continue
		}
		whole.files = append(whole.files, archiveFile{name: f.name, size: f.size})
		if f.inBase {
			parts = append(parts, &baseFile{of: b, file: f})
		} else {
			parts = append(parts, &exact{from: top, left: f.size + archiveSumLen})
		}
	}
	parts = append(parts, &exact{from: top, left: int64(len(archiveEnd))}, &rest{top, base})
	head := io.Reader(bytes.NewReader(whole.appendHead(nil)))
	return &Composed{Size: whole.size(), parts: io.MultiReader(append([]io.Reader{head}, parts...)...)}, nil
}

func (c *Composed) Read(p []byte) (int, error) { return c.parts.Read(p) }

// exact reads so many bytes, and fails if there are fewer.
type exact struct {
	from io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.from.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if e.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// skipped reads bytes that are not passed on.
type skipped struct {
	from  io.Reader
	bytes int64
}

func (s *skipped) Read([]byte) (int, error) {
	n, err := io.CopyN(io.Discard, s.from, s.bytes)
	if s.bytes -= n; err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, io.EOF
}

// rest reads what comes after the end of archives: nothing, but their readers check them there.
type rest struct{ top, base io.Reader }

func (r *rest) Read([]byte) (int, error) {
	n, err := io.Copy(io.Discard, r.top)
	if err == nil && n > 0 {
		err = errors.New("the archive goes on after its end")
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r.base)
	}
	if err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// baseFiles are the files of a base, of which those in left were not read.
type baseFiles struct {
	from io.Reader
	left []archiveFile
}

// open skips to a file.
func (b *baseFiles) open(f archiveFile) (io.Reader, error) {
	for len(b.left) > 0 {
		next := b.left[0]
		b.left = b.left[1:]
		if next.name == f.name && next.size == f.size {
			return &exact{from: b.from, left: next.size + archiveSumLen}, nil
		}
		if _, err := io.CopyN(io.Discard, b.from, next.size+archiveSumLen); err != nil {
			return nil, fmt.Errorf("read the base: %w", err)
		}
	}
	return nil, fmt.Errorf("the base does not have the file %s with %d bytes: it is another backup's", f.name, f.size)
}

// baseFile reads one file of a base, and compares its end with what the index says.
type baseFile struct {
	of   *baseFiles
	file archiveFile
	from io.Reader
	at   int64
	sum  uint32
}

func (f *baseFile) Read(p []byte) (int, error) {
	if f.from == nil {
		var err error
		if f.from, err = f.of.open(f.file); err != nil {
			return 0, err
		}
	}
	n, err := f.from.Read(p)
	first := f.file.size - min(f.file.size, tailBytes) // of the end
	from, to := max(f.at, first), min(f.at+int64(n), f.file.size)
	if from < to {
		f.sum = crc32.Update(f.sum, crcTable, p[from-f.at:to-f.at])
	}
	f.at += int64(n)
	if errors.Is(err, io.EOF) && f.sum != f.file.tail {
		return n, fmt.Errorf(
			"the file %s of the base is not the one that the backup left out: the node's disk was set back in between", f.file.name)
	}
	return n, err
}
