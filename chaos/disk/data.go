//go:build linux

package disk

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
)

// pageSize is the unit of data that a power loss keeps or drops.
const pageSize = 4096

var zeros [pageSize]byte

// unsynced has what is needed to undo the writes to one file since an instant.
type unsynced struct {
	size  int64            // of the file at that instant
	pages map[int64][]byte // page number -> its content at that instant; nil: zeros, or past the end
}

// remember keeps the pages that a change of n bytes at off will change. It must be called
// before the change. It returns the bytes of memory that it has used.
func (u *unsynced) remember(f *os.File, off, n int64) (int64, error) {
	var took int64
	for p := off / pageSize; p*pageSize < off+n; p++ {
		if _, known := u.pages[p]; known {
			continue
		}
		before, err := u.read(f, p)
		if err != nil {
			return took, err
		}
		u.pages[p] = before
		took += int64(len(before))
	}
	return took, nil
}

func (u *unsynced) read(f *os.File, p int64) ([]byte, error) {
	if p*pageSize >= u.size {
		return nil, nil
	}
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, p*pageSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(page, zeros[:]) {
		return nil, nil
	}
	return page, nil
}

func (u *unsynced) bytes() int64 {
	var n int64
	for _, before := range u.pages {
		n += int64(len(before))
	}
	return n
}

// merge adds the pages of older. If both have a page, the content of older counts.
func (u *unsynced) merge(older *unsynced) {
	for p, before := range older.pages {
		u.pages[p] = before
	}
}

// undo restores the pages that the chooser does not keep. Growth of the file is kept or lost
// as a whole. If it is kept, lost pages in it are zeros. Undoing a truncation restores all
// that it removed.
func (u *unsynced) undo(f *os.File, resize bool, keep func() bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size, cut := info.Size(), info.Size()
	if resize && size != u.size && !keep() {
		size = u.size
		if err := f.Truncate(size); err != nil {
			return err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(u.pages)) { // in order, so that a seed repeats it
		at := p * pageSize
		kept := keep() && at+pageSize <= cut
		if kept || at >= size {
			continue
		}
		before := u.pages[p]
		if before == nil {
			before = zeros[:]
		}
		if _, err := f.WriteAt(before[:min(pageSize, size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// keeper chooses for each page and name: it is kept with probability p.
func keeper(r *rand.Rand, p float64) func() bool {
	return func() bool { return p > 0 && r.Float64() < p }
}
