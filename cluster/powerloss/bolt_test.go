package powerloss

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"
)

// boltDisk is the real file of raft-boltdb during one run of a node, and the content that a
// power loss would leave. bbolt maps its file, so the file cannot be on the disk in memory,
// and its writes and syncs cannot be observed one by one. But a commit has a fixed order: it
// writes the changed pages, syncs, writes a meta page, and syncs. So each commit is made
// first, and then the pages in which the file differs count as its writes: a power loss may
// happen before any of them, or before either sync. This cannot show that bbolt syncs where
// it should. The faulty disk of package chaos does, which observes the real syncs.
type boltDisk struct {
	dir      string
	write    func() // counts a write, and may cause a power loss
	unsynced bool   // the syncs do nothing

	mu      sync.Mutex
	durable []byte           // what is synced
	pending map[int64][]byte // written and not synced: pages by their offset
}

const boltPage = 4096

// scratch returns the directory for the files: in memory if possible, for speed.
func scratch() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return ""
}

// newBoltDisk creates a directory with the content that a power loss has left; nil: no file.
func newBoltDisk(left []byte, unsynced bool, write func()) (*boltDisk, error) {
	dir, err := os.MkdirTemp(scratch(), "powerloss-")
	if err != nil {
		return nil, err
	}
	d := &boltDisk{dir: dir, write: write, unsynced: unsynced, durable: left, pending: map[int64][]byte{}}
	if left != nil {
		err = os.WriteFile(filepath.Join(dir, "raft.db"), left, 0o600)
	}
	return d, err
}

func (d *boltDisk) close() error { return os.RemoveAll(d.dir) }

// wrap is logstore.Disk's WrapBolt.
func (d *boltDisk) wrap(path string, log raft.LogStore) raft.LogStore {
	b := &boltOnDisk{LogStore: log, disk: d, path: path}
	_ = b.commit(func() error { return nil }) // the commit of opening the file
	return b
}

// put writes a page, or zeros at the end of the file.
func (d *boltDisk) put(at int64, page []byte) {
	d.write()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[at] = page
}

func (d *boltDisk) sync() {
	d.write()
	if d.unsynced {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable = laid(d.durable, d.pending, func() bool { return true })
	d.pending = map[int64][]byte{}
}

// current returns the file as the node sees it.
func (d *boltDisk) current() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return laid(d.durable, d.pending, func() bool { return true })
}

// remains returns what a power loss leaves: everything that was synced, and some sectors of
// the rest. The caller holds mu.
func (d *boltDisk) remains(percent int, rng *rand.Rand) []byte {
	return laid(d.durable, d.pending, func() bool { return rng.IntN(100) < percent })
}

// laid overwrites a file with sectors of pages.
func laid(under []byte, pages map[int64][]byte, keep func() bool) []byte {
	const sector = 512
	file := append([]byte(nil), under...)
	for at := int64(0); len(pages) > 0 && at <= last(pages); at += boltPage { // in one order, for the seed
		page := pages[at]
		for off := int64(0); off < int64(len(page)); off += sector {
			if !keep() {
				continue
			}
			if end := at + off + sector; int64(len(file)) < end {
				file = append(file, make([]byte, end-int64(len(file)))...)
			}
			copy(file[at+off:], page[off:off+sector])
		}
	}
	if len(file)%boltPage != 0 {
		file = append(file, make([]byte, boltPage-len(file)%boltPage)...)
	}
	return file
}

func last(pages map[int64][]byte) (at int64) {
	for p := range pages {
		at = max(at, p)
	}
	return at
}

// boltOnDisk is raft-boltdb on such a disk.
type boltOnDisk struct {
	raft.LogStore
	disk *boltDisk
	path string
	mu   sync.Mutex // one commit at a time
}

func (b *boltOnDisk) StoreLogs(entries []*raft.Log) error {
	return b.commit(func() error { return b.LogStore.StoreLogs(entries) })
}

func (b *boltOnDisk) DeleteRange(first, last uint64) error {
	return b.commit(func() error { return b.LogStore.DeleteRange(first, last) })
}

func (b *boltOnDisk) commit(f func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	before := b.disk.current()
	after, err := b.used()
	if err != nil {
		return err
	}
	var roots []int64
	for at := int64(0); at < int64(len(after)); at += boltPage {
		page := after[at : at+boltPage]
		switch {
		case at+boltPage <= int64(len(before)) && string(before[at:at+boltPage]) == string(page):
		case at < 2*boltPage:
			roots = append(roots, at)
		default:
			b.disk.put(at, page)
		}
	}
	b.disk.sync()
	for _, at := range roots {
		b.disk.put(at, after[at:at+boltPage])
	}
	b.disk.sync()
	return nil
}

// used is the file as far as its pages are in use.
func (b *boltOnDisk) used() ([]byte, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	roots := make([]byte, 2*boltPage)
	if _, err := f.ReadAt(roots, 0); err != nil {
		return nil, err
	}
	high := uint64(0) // the first page that was never used, by either meta page
	for _, at := range []int{0, boltPage} {
		high = max(high, binary.NativeEndian.Uint64(roots[at+16+40:]))
	}
	file := make([]byte, high*boltPage)
	n, err := f.ReadAt(file, 0)
	if n < len(file) && err == nil {
		err = errors.New("the file is short")
	}
	return file, err
}
