package fsm

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

// ledgerVersion starts the ledger's file. Uvarints follow: number, length and
// checksum of the manifest, then of each log, in the order of their numbers; and the
// CRC-32 (Castagnoli) of all that.
const ledgerVersion = 3

// maxLedger bounds what is read of the file: far more logs than there can be.
const maxLedger = 64 << 10

var errLedger = errors.New("the list of the store's write-ahead logs (LOGS) is damaged")

var ledgerTable = crc32.MakeTable(crc32.Castagnoli)

// ledgerNotes are what the ledger's file says.
type ledgerNotes struct {
	manifest uint64             // its number; 0: none is known
	held     content            // of the manifest
	logs     map[uint64]content // by number; zero for one that was not seen closed
}

// content is what a file holds from its start. There may be more behind: a log's
// file is used again, and a manifest grows.
type content struct {
	size uint64
	sum  uint32
}

func (c *content) add(p []byte) {
	c.size += uint64(len(p))
	c.sum = crc32.Update(c.sum, ledgerTable, p)
}

// check compares a file with what it held.
func (c content) check(fsys vfs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	sum := crc32.New(ledgerTable)
	size, err := io.Copy(sum, io.LimitReader(f, int64(c.size)))
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return fmt.Errorf("read it: %w", err)
	case uint64(size) < c.size:
		return fmt.Errorf("%w: it has %d bytes, and had %d", errChanged, size, c.size)
	case sum.Sum32() != c.sum:
		return fmt.Errorf("%w: its checksum is wrong", errChanged)
	}
	return nil
}

func encodeLedger(n ledgerNotes) []byte {
	b := appendNote([]byte{ledgerVersion}, n.manifest, n.held)
	for _, number := range slices.Sorted(maps.Keys(n.logs)) {
		b = appendNote(b, number, n.logs[number])
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, ledgerTable))
}

func appendNote(b []byte, number uint64, held content) []byte {
	b = binary.AppendUvarint(b, number)
	b = binary.AppendUvarint(b, held.size)
	return binary.AppendUvarint(b, uint64(held.sum))
}

// decodeLedger is the inverse; anything else is damage.
func decodeLedger(data []byte) (ledgerNotes, error) {
	if len(data) < 1+4 {
		return ledgerNotes{}, errLedger
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, ledgerTable) != binary.BigEndian.Uint32(sum) {
		return ledgerNotes{}, errLedger
	}
	if v := data[0]; v != ledgerVersion {
		return ledgerNotes{}, fmt.Errorf("the list of the store's write-ahead logs (LOGS) has format %d, and this release knows only %d: another release wrote it", v, ledgerVersion)
	}
	n := ledgerNotes{logs: map[uint64]content{}}
	var err error
	rest := body[1:]
	if n.manifest, n.held, rest, err = cutNote(rest); err != nil {
		return ledgerNotes{}, err
	}
	for len(rest) > 0 {
		var number uint64
		var held content
		if number, held, rest, err = cutNote(rest); err != nil {
			return ledgerNotes{}, err
		}
		n.logs[number] = held
	}
	if !bytes.Equal(encodeLedger(n), data) {
		return ledgerNotes{}, errLedger
	}
	return n, nil
}

func cutNote(b []byte) (number uint64, held content, rest []byte, err error) {
	var fields [3]uint64
	for i := range fields {
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, content{}, nil, errLedger
		}
		fields[i], b = value, b[n:]
	}
	return fields[0], content{fields[1], uint32(fields[2])}, b, nil
}
