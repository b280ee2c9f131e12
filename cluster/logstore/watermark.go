package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// commitMark identifies a committed transaction of bbolt.
type commitMark struct {
	txid uint64 // 0: no transaction was acknowledged
	last uint64 // index of the log's last entry then; 0: the log was empty
}

// watermark is a file that holds the newest committed transaction.
//
// bbolt has two meta pages. If the newer one is damaged it silently uses the older one,
// which loses the last transaction. It cannot recognize an older copy of its file either.
// The watermark is written after each commit, so it is never ahead of the database. A
// database behind its watermark has lost acknowledged entries.
//
// A commit does not wait for a sync of the watermark, which would be its third sync. If
// the process is killed, no write of the watermark is lost. After a power failure the
// watermark may be behind by what the kernel had not written. Then a loss is found by the
// other nodes, which remember what this node acknowledged, as at the end of raft-wal's
// last segment.
//
// Two slots are written in turn, each in its own sector, so that a torn write leaves the
// other one valid. Only one goroutine at a time may use a watermark.
type watermark struct {
	file vfs.File
	name string
	held commitMark
}

const (
	slotSpacing = 512
	slotBytes   = 8 + 8 + crc32.Size
)

// openWatermark opens the file. If there is none it creates one, or fails if mustExist.
func openWatermark(files vfs.FS, dir, name string, mustExist bool) (w *watermark, err error) {
	path := files.PathJoin(dir, name)
	w = &watermark{name: name}
	_, err = files.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mustExist:
		return nil, fmt.Errorf("%s: %w: it is missing", path, ErrFileDamaged)
	case errors.Is(err, fs.ErrNotExist):
		return w, w.create(files, path)
	case err != nil:
		return nil, err
	}
	if w.file, err = files.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	if err := w.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), w.file.Close())
	}
	return w, nil
}

// create creates the file atomically, so that it always has two slots.
func (w *watermark) create(files vfs.FS, path string) (err error) {
	both := make([]byte, slotSpacing+slotBytes)
	copy(both, w.encode(commitMark{}))
	copy(both[slotSpacing:], w.encode(commitMark{}))
	if err := durable.Replace(files, path, both); err != nil {
		return err
	}
	w.file, err = files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	return err
}

// encode returns a slot: both numbers, then the CRC-32C of the file's name and of them.
func (w *watermark) encode(m commitMark) []byte {
	slot := binary.BigEndian.AppendUint64(nil, m.txid)
	slot = binary.BigEndian.AppendUint64(slot, m.last)
	return binary.BigEndian.AppendUint32(slot, w.sum(slot))
}

func (w *watermark) sum(content []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(w.name), sumTable), sumTable, content)
}

// load reads the newer of the valid slots.
func (w *watermark) load() error {
	valid := 0
	for i := range int64(2) {
		slot := make([]byte, slotBytes)
		if _, err := w.file.ReadAt(slot, i*slotSpacing); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		content := slot[:slotBytes-crc32.Size]
		if binary.BigEndian.Uint32(slot[len(content):]) != w.sum(content) {
			continue
		}
		valid++
		if m := (commitMark{binary.BigEndian.Uint64(content), binary.BigEndian.Uint64(content[8:])}); m.txid >= w.held.txid {
			w.held = m
		}
	}
	if valid == 0 {
		return fmt.Errorf("%w: the checksums of both its slots are wrong", ErrFileDamaged)
	}
	return nil
}

// store writes a committed transaction.
func (w *watermark) store(m commitMark) error {
	if _, err := w.file.WriteAt(w.encode(m), int64(m.txid%2)*slotSpacing); err != nil {
		return fmt.Errorf("write the watermark of the log: %w", err)
	}
	w.held = m
	return nil
}

// check returns an error if the database has lost committed transactions.
func (w *watermark) check(found commitMark) error {
	switch {
	case found.txid < w.held.txid:
		return fmt.Errorf("%w: it ends with transaction %d, but %d was committed: it is an older copy, or its newest meta page is damaged", ErrFileDamaged, found.txid, w.held.txid)
	case found.txid == w.held.txid && found.txid > 0 && found.last != w.held.last:
		return fmt.Errorf("%w: it ends with entry %d, but it was committed with entry %d as its last", ErrFileDamaged, found.last, w.held.last)
	}
	return nil
}

func (w *watermark) sync() error { return w.file.Sync() }

func (w *watermark) close() error { return errors.Join(w.file.Sync(), w.file.Close()) }
