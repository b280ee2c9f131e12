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

// commitMark is the newest write of a log that is on disk.
type commitMark struct {
	seq  uint64 // grows with each mark: bbolt's transaction, or the number of the mark; 0: nothing was acknowledged
	last uint64 // index of the log's last entry; 0: the log is empty
	term uint64 // of that entry; raft-boltdb's watermark does not have it, because a transaction is of one log
}

// watermark is a file that holds the newest mark. A log that is behind its watermark has lost
// acknowledged entries: its end was damaged, or it is an older copy.
//
// The mark is written after each write of the log, so it is never ahead of the log. No write
// waits for a sync of the watermark, which would cost as much as that of the log. If the process
// is killed, no write of the watermark is lost. After a power failure the watermark may be
// behind by what the kernel had not written. The log is then checked by what it holds itself
// (wal_tail.go, bolt_check.go), and by the other nodes, which remember what this node has
// acknowledged.
//
// Two slots are written in turn, each in its own sector, so that a torn write leaves the
// other one valid. Only one goroutine at a time may use a watermark.
type watermark struct {
	file    vfs.File
	numbers int // of a mark that are in the file
	nameSum uint32
	buf     []byte
	held    commitMark
}

const slotSpacing = 512

// openWatermark opens the file. If there is none it creates one, or fails if mustExist.
func openWatermark(files vfs.FS, dir, name string, numbers int, mustExist bool) (w *watermark, err error) {
	path := files.PathJoin(dir, name)
	_, err = files.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mustExist:
		return nil, fmt.Errorf("%s: %w: it is missing", path, ErrFileDamaged)
	case errors.Is(err, fs.ErrNotExist):
		return createWatermark(files, dir, name, numbers)
	case err != nil:
		return nil, err
	}
	w = newWatermark(name, numbers)
	if w.file, err = files.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	if w.held, err = w.load(w.file); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), w.file.Close())
	}
	return w, nil
}

func newWatermark(name string, numbers int) *watermark {
	return &watermark{numbers: numbers, nameSum: crc32.Checksum([]byte(name), sumTable)}
}

// createWatermark creates the file atomically, so that it always has two slots. One that is there
// is replaced.
func createWatermark(files vfs.FS, dir, name string, numbers int) (w *watermark, err error) {
	w = newWatermark(name, numbers)
	both := make([]byte, slotSpacing, slotSpacing+w.slotBytes())
	copy(both, w.encode(commitMark{}))
	path := files.PathJoin(dir, name)
	if err := durable.Replace(files, path, append(both, w.encode(commitMark{})...)); err != nil {
		return nil, err
	}
	w.file, err = files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	return w, err
}

func (w *watermark) slotBytes() int { return 8*w.numbers + crc32.Size }

// encode returns a slot: the mark's numbers, then the CRC-32C of the file's name and of them. It
// is valid until the next call.
func (w *watermark) encode(m commitMark) []byte {
	w.buf = w.buf[:0]
	for _, n := range []uint64{m.seq, m.last, m.term}[:w.numbers] {
		w.buf = binary.BigEndian.AppendUint64(w.buf, n)
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, crc32.Update(w.nameSum, sumTable, w.buf))
	return w.buf
}

// load reads the newer of the valid slots.
func (w *watermark) load(file io.ReaderAt) (held commitMark, err error) {
	valid := 0
	for i := range int64(2) {
		slot := make([]byte, w.slotBytes())
		if _, err := file.ReadAt(slot, i*slotSpacing); err != nil && !errors.Is(err, io.EOF) {
			return held, err
		}
		content := slot[:8*w.numbers]
		if binary.BigEndian.Uint32(slot[len(content):]) != crc32.Update(w.nameSum, sumTable, content) {
			continue
		}
		valid++
		var n [3]uint64
		for i := range w.numbers {
			n[i] = binary.BigEndian.Uint64(content[8*i:])
		}
		if n[0] >= held.seq {
			held = commitMark{seq: n[0], last: n[1], term: n[2]}
		}
	}
	if valid == 0 {
		return held, fmt.Errorf("%w: the checksums of both its slots are wrong", ErrFileDamaged)
	}
	return held, nil
}

// store writes a mark.
func (w *watermark) store(m commitMark) error {
	if _, err := w.file.WriteAt(w.encode(m), int64(m.seq%2)*slotSpacing); err != nil {
		return fmt.Errorf("write the watermark of the log: %w", err)
	}
	w.held = m
	return nil
}

// next writes a mark with the next number.
func (w *watermark) next(last, term uint64) error {
	return w.store(commitMark{seq: w.held.seq + 1, last: last, term: term})
}

// lower makes both slots durable with a mark that may be lower, before the end of the log is
// deleted: the log must never be behind its watermark.
func (w *watermark) lower(last, term uint64) error {
	return errors.Join(w.next(last, term), w.next(last, term), w.sync())
}

func (w *watermark) sync() error { return w.file.SyncData() }

func (w *watermark) close() error { return errors.Join(w.file.Sync(), w.file.Close()) }
