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

// record is a small file that is replaced durably and atomically: after a crash it has
// the old content or the new. On disk it is the version, the payload, and the CRC-32C of
// the file's name and of both, so that a flipped bit, a truncation, or another file in
// its place is detected. Only one goroutine at a time may use a record.
type record struct {
	fs        vfs.FS
	dir, name string
}

const (
	recordVersion = 1
	maxRecord     = 16 << 20 // bytes, far above what a list of segments takes
)

// ErrFileDamaged is wrapped by the error of a file that is not as it was written.
var ErrFileDamaged = errors.New("the file is damaged")

func (r record) path() string { return r.fs.PathJoin(r.dir, r.name) }

func (r record) sum(content []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(r.name), sumTable), sumTable, content)
}

// load returns the payload; fs.ErrNotExist before the first store.
func (r record) load() ([]byte, error) {
	f, err := r.fs.Open(r.path())
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.path(), err)
	}
	end := len(data) - crc32.Size
	switch {
	case end < 1 || len(data) > maxRecord:
		return nil, fmt.Errorf("%s: %w: it has %d bytes", r.path(), ErrFileDamaged, len(data))
	case binary.BigEndian.Uint32(data[end:]) != r.sum(data[:end]):
		return nil, fmt.Errorf("%s: %w: its checksum is wrong", r.path(), ErrFileDamaged)
	case data[0] != recordVersion:
		return nil, fmt.Errorf("%s has format %d, and this release knows only %d: another release wrote it", r.path(), data[0], recordVersion)
	}
	return data[1:end], nil
}

// store replaces the payload. It returns after the disk has it. What a process finds when it
// starts is stored again before it is relied on: the process that stored it may have ended
// because a sync failed, and then no later sync makes it durable (segments.go).
func (r record) store(payload []byte) error {
	data := append([]byte{recordVersion}, payload...)
	data = binary.BigEndian.AppendUint32(data, r.sum(data))
	if len(data) > maxRecord {
		return fmt.Errorf("write %s: %d bytes are more than %d", r.path(), len(data), maxRecord)
	}
	if err := durable.Replace(r.fs, r.path(), data); err != nil {
		return fmt.Errorf("write %s: %w", r.path(), err)
	}
	return nil
}

// exists reports by load's error whether the record was ever stored. It returns any other
// error.
func exists(err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
