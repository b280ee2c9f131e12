package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt's pages have no checksums. A damaged page can make bbolt panic, read past its
// mapping, or follow a cycle until the stack overflows; each of these ends the process.
// So checkBolt reads the whole tree before bbolt does and checks every step: each page
// is in the tree once and at the place that its parent names, keys ascend, and the keys
// of the log have no gap. It does not read the entries themselves: each has its own
// checksum (checksum.go).
//
// The layout is bbolt's format 2, in the byte order of the machine.
const (
	boltMagic        = 0xED0CDAED
	boltVersion      = 2
	boltPageHeader   = 16 // id 8, flags 2, count 2, overflow 4
	boltElementBytes = 16
	boltBucketHeader = 16 // root page 8, sequence 8
	boltMetaBytes    = 64 // after the page header, its checksum included

	branchPage = 0x01
	leafPage   = 0x02
	bucketLeaf = 0x01 // flag of an element

	minBoltPage, maxBoltPage = 1 << 10, 16 << 20
)

// boltMeta is the content of one of the two meta pages of a file.
type boltMeta struct {
	pageSize   int64
	root, high uint64 // pages: that of the root bucket, and the first that was never used
	txid       uint64
}

// decodeMeta decodes a meta page and reports whether it is valid.
func decodeMeta(page []byte) (m boltMeta, ok bool) {
	if len(page) < boltPageHeader+boltMetaBytes {
		return m, false
	}
	b, n := page[boltPageHeader:], binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(b[:boltMetaBytes-8])
	if n.Uint32(b) != boltMagic || n.Uint32(b[4:]) != boltVersion || n.Uint64(b[boltMetaBytes-8:]) != sum.Sum64() {
		return m, false
	}
	m = boltMeta{pageSize: int64(n.Uint32(b[8:])), root: n.Uint64(b[16:]), high: n.Uint64(b[40:]), txid: n.Uint64(b[48:])}
	return m, m.pageSize >= minBoltPage && m.pageSize <= maxBoltPage
}

// newestMeta reads the meta page that bbolt would use. The second one starts at the end
// of the first page, whose size is only known from a meta page.
func newestMeta(file io.ReaderAt) (newest boltMeta, err error) {
	found := false
	readMeta := func(at int64) (boltMeta, bool, error) {
		page := make([]byte, boltPageHeader+boltMetaBytes)
		if _, err := file.ReadAt(page, at); err != nil {
			return boltMeta{}, false, ignoreEOF(err)
		}
		m, ok := decodeMeta(page)
		return m, ok, nil
	}
	first, ok, err := readMeta(0)
	if err != nil {
		return newest, err
	}
	sizes := []int64{first.pageSize}
	if ok {
		newest, found = first, true
	} else {
		sizes = sizes[:0]
		for size := int64(minBoltPage); size <= maxBoltPage; size *= 2 {
			sizes = append(sizes, size)
		}
	}
	for _, at := range sizes {
		m, ok, err := readMeta(at)
		if err != nil {
			return newest, err
		}
		if ok && m.pageSize == at && (!found || m.txid > newest.txid) {
			newest, found = m, true
		}
	}
	if !found {
		return newest, fmt.Errorf("%w: neither of its meta pages is valid", ErrFileDamaged)
	}
	return newest, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// boltChecker walks the tree of one file.
type boltChecker struct {
	file io.ReaderAt
	meta boltMeta
	seen []uint64 // a bit for each visited page
	logs *bucketWalk
}

// bucketWalk is the state of a walk over one bucket's tree, in the order of its keys.
type bucketWalk struct {
	root    bool   // it holds the buckets
	entries bool   // it holds the log's entries: its keys are their indexes, without a gap
	prev    []byte // the last visited key; nil: none
}

// checkBolt returns an error unless bbolt can read the file. It returns the newest
// transaction in it.
func checkBolt(file io.ReaderAt, size int64) (commitMark, error) {
	meta, err := newestMeta(file)
	if err != nil {
		return commitMark{}, err
	}
	if meta.high < 3 || meta.high > uint64(size/meta.pageSize) {
		return commitMark{}, fmt.Errorf("%w: it has %d bytes, but %d pages of %d are in use", ErrFileDamaged, size, meta.high, meta.pageSize)
	}
	c := &boltChecker{file: file, meta: meta, seen: make([]uint64, meta.high/64+1)}
	if err := c.walk(&bucketWalk{root: true}, meta.root, nil); err != nil {
		return commitMark{}, err
	}
	found := commitMark{seq: meta.txid}
	if c.logs != nil && c.logs.prev != nil {
		found.last = binary.BigEndian.Uint64(c.logs.prev)
	}
	return found, nil
}

func damagedPage(page uint64, what string) error {
	return fmt.Errorf("%w: page %d %s", ErrFileDamaged, page, what)
}

// markSeen marks a page and its overflow pages as visited.
func (c *boltChecker) markSeen(page, overflow uint64) error {
	if overflow >= c.meta.high-page {
		return damagedPage(page, "overflows into pages that are not in use")
	}
	for p := page; p <= page+overflow; p++ {
		if c.seen[p/64]&(1<<(p%64)) != 0 {
			return damagedPage(p, "is in the tree twice")
		}
		c.seen[p/64] |= 1 << (p % 64)
	}
	return nil
}

// walk checks a page and all pages below it. No key in them may be less than least.
func (c *boltChecker) walk(b *bucketWalk, page uint64, least []byte) error {
	if page < 2 || page >= c.meta.high {
		return damagedPage(page, "is in the tree but not in use")
	}
	v := &pageView{file: c.file, id: page, at: int64(page) * c.meta.pageSize, head: make([]byte, c.meta.pageSize)}
	if _, err := c.file.ReadAt(v.head, v.at); err != nil {
		return fmt.Errorf("read page %d: %w", page, err)
	}
	if id := binary.NativeEndian.Uint64(v.head); id != page {
		return damagedPage(page, fmt.Sprintf("has the number %d", id))
	}
	overflow := uint64(binary.NativeEndian.Uint32(v.head[12:]))
	if err := c.markSeen(page, overflow); err != nil {
		return err
	}
	v.size = int64(overflow+1) * c.meta.pageSize
	return c.page(b, v, least)
}

func (c *boltChecker) page(b *bucketWalk, v *pageView, least []byte) error {
	switch v.flags() {
	case branchPage:
		return c.branch(b, v, least)
	case leafPage:
		return c.leaf(b, v, least)
	}
	return damagedPage(v.id, "is neither branch nor leaf")
}

func (c *boltChecker) branch(b *bucketWalk, v *pageView, least []byte) error {
	if v.count() == 0 {
		return damagedPage(v.id, "is an empty branch")
	}
	for i := range v.count() {
		e, err := v.element(i)
		if err != nil {
			return err
		}
		key, err := v.bytes(e.at+int64(e.word(0)), int64(e.word(4)))
		if err != nil {
			return err
		}
		if bytes.Compare(key, least) < 0 || b.prev != nil && bytes.Compare(key, b.prev) <= 0 {
			return damagedPage(v.id, "has keys out of order")
		}
		if err := c.walk(b, binary.NativeEndian.Uint64(e.bytes[8:]), key); err != nil {
			return err
		}
	}
	return nil
}

func (c *boltChecker) leaf(b *bucketWalk, v *pageView, least []byte) error {
	for i := range v.count() {
		e, err := v.element(i)
		if err != nil {
			return err
		}
		pos, keyBytes, valueBytes := e.at+int64(e.word(4)), int64(e.word(8)), int64(e.word(12))
		key, err := v.bytes(pos, keyBytes)
		if err != nil {
			return err
		}
		if err := v.checkRange(pos+keyBytes, valueBytes); err != nil {
			return err
		}
		if bytes.Compare(key, least) < 0 {
			return damagedPage(v.id, "has keys out of order")
		}
		if err := b.visit(v.id, key); err != nil {
			return err
		}
		switch isBucket := e.word(0)&bucketLeaf != 0; {
		case isBucket != b.root:
			return damagedPage(v.id, "has an element of the wrong kind")
		case isBucket:
			if err := c.bucket(v, key, pos+keyBytes, valueBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// visit checks the next key of the bucket.
func (b *bucketWalk) visit(page uint64, key []byte) error {
	if b.prev != nil && bytes.Compare(key, b.prev) <= 0 {
		return damagedPage(page, "has keys out of order")
	}
	if b.entries && len(key) != 8 {
		return damagedPage(page, "has an entry without an index")
	}
	if b.entries && b.prev != nil && binary.BigEndian.Uint64(key) != binary.BigEndian.Uint64(b.prev)+1 {
		return damagedPage(page, fmt.Sprintf("has entry %d after entry %d", binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(b.prev)))
	}
	b.prev = bytes.Clone(key)
	return nil
}

// bucket checks a bucket below the root. A small bucket is inline: its only page is in
// its value.
func (c *boltChecker) bucket(v *pageView, name []byte, at, size int64) error {
	head, err := v.bytes(at, boltBucketHeader)
	if err != nil {
		return err
	}
	b := &bucketWalk{}
	if bytes.Equal(name, []byte("logs")) { // raft-boltdb's name
		b.entries = true
		c.logs = b
	}
	if root := binary.NativeEndian.Uint64(head); root != 0 {
		return c.walk(b, root, nil)
	}
	content, err := v.bytes(at+boltBucketHeader, size-boltBucketHeader)
	if err != nil {
		return err
	}
	inline := &pageView{file: c.file, id: v.id, head: content, size: int64(len(content))}
	if inline.size < boltPageHeader || inline.flags() != leafPage {
		return damagedPage(v.id, "has a bucket without a leaf")
	}
	return c.leaf(b, inline, nil)
}

// pageView reads parts of one page, or of the page of an inline bucket.
type pageView struct {
	file io.ReaderAt
	id   uint64
	at   int64  // offset in the file
	size int64  // including its overflow pages
	head []byte // its first bytes
}

func (v *pageView) flags() uint16 { return binary.NativeEndian.Uint16(v.head[8:]) }
func (v *pageView) count() int64  { return int64(binary.NativeEndian.Uint16(v.head[10:])) }

// checkRange returns an error unless n bytes at an offset are in the page.
func (v *pageView) checkRange(off, n int64) error {
	if off < boltPageHeader || n < 0 || off > v.size || n > v.size-off {
		return damagedPage(v.id, "has an element that exceeds it")
	}
	return nil
}

func (v *pageView) bytes(off, n int64) ([]byte, error) {
	if err := v.checkRange(off, n); err != nil {
		return nil, err
	}
	if off+n <= int64(len(v.head)) {
		return v.head[off : off+n], nil
	}
	b := make([]byte, n)
	if _, err := v.file.ReadAt(b, v.at+off); err != nil {
		return nil, fmt.Errorf("read page %d: %w", v.id, err)
	}
	return b, nil
}

// element returns the fixed part of element i.
func (v *pageView) element(i int64) (e boltElement, err error) {
	e.at = boltPageHeader + i*boltElementBytes
	e.bytes, err = v.bytes(e.at, boltElementBytes)
	return e, err
}

// boltElement is the fixed part of an element. In a branch it has the offset of the key
// from the element, the key's size, and the page below. In a leaf it has flags, the
// offset, and the sizes of key and value.
type boltElement struct {
	at    int64
	bytes []byte
}

func (e boltElement) word(at int) uint32 { return binary.NativeEndian.Uint32(e.bytes[at:]) }

// checkBolt returns an error if the database has lost committed transactions. bbolt has two meta
// pages: if the newer one is damaged it silently uses the older one, which loses the last
// transaction. It cannot recognize an older copy of its file either.
func (w *watermark) checkBolt(found commitMark) error {
	switch {
	case found.seq < w.held.seq:
		return fmt.Errorf("%w: it ends with transaction %d, but %d was committed: it is an older copy, or its newest meta page is damaged", ErrFileDamaged, found.seq, w.held.seq)
	case found.seq == w.held.seq && found.seq > 0 && found.last != w.held.last:
		return fmt.Errorf("%w: it ends with entry %d, but it was committed with entry %d as its last", ErrFileDamaged, found.last, w.held.last)
	}
	return nil
}
