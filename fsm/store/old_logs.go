package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walIndexVersion is the first byte of the index's file. Then follow, as uvarints, number,
// length and checksum of the manifest, and of each log by number; then the CRC-32C of all
// that.
const walIndexVersion = 3

// maxWALIndex bounds the file, in bytes: far more logs than a store has.
const maxWALIndex = 64 << 10

var errWALIndex = errors.New("the list of the store's write-ahead logs (LOGS) is damaged")

// walEntries is the content of the index's file.
type walEntries struct {
	manifest       uint64 // its number; 0: none is known
	manifestPrefix filePrefix
	logs           map[uint64]filePrefix // by number; zero for one that was not closed
}

// filePrefix is the length and the checksum of a file's first bytes. More may
// follow: a log's file is used again, and a manifest grows.
type filePrefix struct {
	size uint64
	sum  uint32
}

func (p *filePrefix) add(b []byte) {
	p.size += uint64(len(b))
	p.sum = crc32.Update(p.sum, crcTable, b)
}

// check compares the first bytes of a file with p.
func (p filePrefix) check(fsys vfs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	sum := crc32.New(crcTable)
	size, err := io.Copy(sum, io.LimitReader(f, int64(p.size)))
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return fmt.Errorf("read it: %w", err)
	case uint64(size) < p.size:
		return fmt.Errorf("%w: it has %d bytes, and had %d", errChanged, size, p.size)
	case sum.Sum32() != p.sum:
		return fmt.Errorf("%w: its checksum is wrong", errChanged)
	}
	return nil
}

func (e *walEntries) encode() []byte {
	b := appendEntry([]byte{walIndexVersion}, e.manifest, e.manifestPrefix)
	for _, number := range slices.Sorted(maps.Keys(e.logs)) {
		b = appendEntry(b, number, e.logs[number])
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

func appendEntry(b []byte, number uint64, p filePrefix) []byte {
	b = binary.AppendUvarint(b, number)
	b = binary.AppendUvarint(b, p.size)
	return binary.AppendUvarint(b, uint64(p.sum))
}

// decodeWALIndex is the inverse of encode; anything else is damage.
func decodeWALIndex(data []byte) (walEntries, error) {
	if len(data) < 1+4 {
		return walEntries{}, errWALIndex
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, crcTable) != binary.BigEndian.Uint32(sum) {
		return walEntries{}, errWALIndex
	}
	if v := data[0]; v != walIndexVersion {
		return walEntries{}, fmt.Errorf("the list of the store's write-ahead logs (LOGS) has format %d, and this release knows only %d: another release wrote it", v, walIndexVersion)
	}
	e := walEntries{logs: map[uint64]filePrefix{}}
	var err error
	rest := body[1:]
	if e.manifest, e.manifestPrefix, rest, err = cutEntry(rest); err != nil {
		return walEntries{}, err
	}
	for len(rest) > 0 {
		var number uint64
		var prefix filePrefix
		if number, prefix, rest, err = cutEntry(rest); err != nil {
			return walEntries{}, err
		}
		e.logs[number] = prefix
	}
	if !bytes.Equal(e.encode(), data) {
		return walEntries{}, errWALIndex
	}
	return e, nil
}

func cutEntry(b []byte) (number uint64, prefix filePrefix, rest []byte, err error) {
	var fields [3]uint64
	for i := range fields {
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, filePrefix{}, nil, errWALIndex
		}
		fields[i], b = value, b[n:]
	}
	return fields[0], filePrefix{fields[1], uint32(fields[2])}, b, nil
}
