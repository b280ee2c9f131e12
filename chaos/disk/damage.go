//go:build linux

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// Damage is one kind of damage to a file.
type Damage struct {
	Name string
	// Do damages the file and returns where. Old is the file's content of some time ago. It
	// returns ErrNothingToDamage if the file is too small, or has not changed since.
	Do func(path string, old []byte, r *rand.Rand) (string, error)
}

// ErrNothingToDamage means that the file was not changed.
var ErrNothingToDamage = errors.New("there is nothing to damage")

// Damages returns all kinds of damage.
func Damages() []Damage {
	return []Damage{
		{"flip", flip}, {"cut", cut}, {"zero", zero}, {"old-chunk", putBack}, {"gone", gone},
		{"flip-head", flipHead}, {"cut-tail", cutTail}, {"empty", empty},
	}
}

// flip changes one to eight bits of one place.
func flip(path string, _ []byte, r *rand.Rand) (string, error) {
	f, end, err := openUsed(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at := r.Int64N(end)
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return "", err
	}
	b[0] ^= byte(1 + r.IntN(255))
	_, err = f.WriteAt(b[:], at)
	return fmt.Sprintf("byte %d of %d", at, end), errors.Join(err, f.Sync())
}

// headSize is where the headers of a file and of its first records are.
const headSize = 96

// flipHead changes one bit of the file's beginning, where headers are a large part.
func flipHead(path string, _ []byte, r *rand.Rand) (string, error) {
	f, end, err := openUsed(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at, bit := r.Int64N(min(end, headSize)), r.IntN(8)
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return "", err
	}
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], at)
	return fmt.Sprintf("bit %d of byte %d of %d", bit, at, end), errors.Join(err, f.Sync())
}

// cutTail truncates the file a little before the end of its content.
func cutTail(path string, _ []byte, r *rand.Rand) (string, error) {
	f, end, err := openUsed(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at := end - 1 - r.Int64N(min(end, 4*pageSize))
	return fmt.Sprintf("at %d of %d", at, end), f.Truncate(at)
}

func empty(path string, _ []byte, _ *rand.Rand) (string, error) {
	return "all of it", os.Truncate(path, 0)
}

// cut truncates the file.
func cut(path string, _ []byte, r *rand.Rand) (string, error) {
	f, end, err := openUsed(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at := r.Int64N(end)
	return fmt.Sprintf("at %d of %d", at, end), f.Truncate(at)
}

// zero replaces a sector or a page by zeros.
func zero(path string, _ []byte, r *rand.Rand) (string, error) {
	f, end, err := openUsed(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size := int64(512)
	if r.IntN(2) == 0 {
		size = pageSize
	}
	at := r.Int64N((end+size-1)/size) * size
	_, err = f.WriteAt(make([]byte, min(size, end-at)), at)
	return fmt.Sprintf("%d bytes at %d of %d", min(size, end-at), at, end), err
}

// putBack restores earlier content in a part of the file, like a disk that acknowledged a
// write but lost it.
func putBack(path string, old []byte, r *rand.Rand) (string, error) {
	now, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var changed []int // pages that exist in both and differ
	for at := 0; at < min(len(old), len(now)); at += pageSize {
		if !bytes.Equal(page(old, at), page(now, at)) {
			changed = append(changed, at)
		}
	}
	if len(changed) == 0 {
		return "", ErrNothingToDamage
	}
	at := changed[r.IntN(len(changed))]
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.WriteAt(page(old, at), int64(at))
	return fmt.Sprintf("page at %d of %d, %d have changed", at, len(now), len(changed)), err
}

func page(data []byte, at int) []byte { return data[at:min(at+pageSize, len(data))] }

func gone(path string, _ []byte, _ *rand.Rand) (string, error) { return "all of it", os.Remove(path) }

// openUsed opens a file and finds the end of its content. Files are preallocated, and damage
// to the zeros after the end has no effect.
func openUsed(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	end, err := usedEnd(f)
	if err == nil && end == 0 {
		err = ErrNothingToDamage
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, end, nil
}

func usedEnd(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const step = 1 << 20
	buf := make([]byte, step)
	for end := info.Size(); end > 0; end -= step {
		from := max(end-step, 0)
		n, err := f.ReadAt(buf[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if used := len(bytes.TrimRight(buf[:n], "\x00")); used > 0 {
			return from + int64(used), nil
		}
	}
	return 0, nil
}

// DropCache makes the kernel read files of the disk again. It is needed after the backing
// files were changed while a process runs.
func (d *Disk) DropCache() error { return d.dropCache() }
