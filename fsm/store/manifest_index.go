package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"tarry/internal/durable"
)

// Pebble's manifest lists the tables, and Pebble assumes that it ends where it cannot be read: then
// the newest tables would be missing. So an index has the length and checksum of the manifest as it
// was synced by Open and the last Flush. The rest of the manifest may be lost as in a crash: the Raft
// log has what follows, and a store that lacks one of its tables does not open.
//
// A store that was received as a snapshot has no index before it is opened.

// manifestIndexName is the index's file in a store's directory. Pebble ignores it. Version 0.1 reads
// it, and has write-ahead logs in it, too (old_logs.go).
const manifestIndexName = "LOGS"

// manifestIndexVersion is the first byte of the index's file. Then follow, as uvarints, number, length
// and checksum of the manifest, and, from version 0.1, of each log by number; then the CRC-32C of all
// that.
const manifestIndexVersion = 3

// maxManifestIndex bounds the file, in bytes: far more logs than a store had.
const maxManifestIndex = 64 << 10

var (
	errChanged       = errors.New("the file is not as it was written")
	errManifestIndex = errors.New("the record of how long the store's manifest is (LOGS) is damaged")
)

// manifestIndex is the file system of one store. It updates the index as Pebble writes its manifest.
type manifestIndex struct {
	vfs.FS
	dir   string
	fatal func(error) // reports a failed write of the index

	mu     sync.Mutex
	number uint64          // of the manifest; 0: none is known
	prefix filePrefix      // of the manifest
	made   *pebbleManifest // the one made last; nil: none since the store was opened

	oldLogs map[uint64]filePrefix // by number
}

// filePrefix is the length and the checksum of a file's first bytes. More may
// follow: a manifest grows.
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

// openManifestIndex reads the index of the store in dir and checks what is in it. It blocks while it
// reads these files.
func openManifestIndex(fsys vfs.FS, dir string, fatal func(error)) (*manifestIndex, error) {
	x := &manifestIndex{FS: fsys, fatal: fatal, dir: fsys.PathDir(fsys.PathJoin(dir, manifestIndexName))}
	f, err := fsys.Open(fsys.PathJoin(dir, manifestIndexName))
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read LOGS: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifestIndex))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read LOGS: %w", err)
	}
	if err = x.decode(data); err == nil {
		err = x.checkOldLogs()
	}
	if err == nil {
		err = x.checkManifest()
	}
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return x, nil
}

// checkManifest does not check a manifest that is newer than the one in the index, because
// nothing was flushed since on which the Raft log relies.
func (x *manifestIndex) checkManifest() error {
	name, err := atomicfs.ReadMarker(x.FS, x.dir, manifestMarker)
	if err != nil {
		return fmt.Errorf("find the manifest: %w", err)
	}
	number, _ := numberIn(name, manifestBase)
	switch {
	case number > x.number:
		return nil
	case number < x.number:
		return fmt.Errorf("the manifest is %q, but there was number %d: %w", name, x.number, errChanged)
	case number == 0:
		return nil
	}
	if err := x.prefix.check(x.FS, x.PathJoin(x.dir, name)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// numberIn returns the number after a prefix, if name has that form.
func numberIn(name, prefix string) (uint64, bool) {
	digits, is := strings.CutPrefix(name, prefix)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, is && err == nil
}

// Unwrap returns the file system below, as Pebble expects.
func (x *manifestIndex) Unwrap() vfs.FS { return x.FS }

func (x *manifestIndex) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := x.FS.Create(path, c)
	if err != nil || x.PathDir(path) != x.dir {
		return f, err
	}
	name := x.PathBase(path)
	if number, is := numberIn(name, manifestBase); is {
		return x.newManifest(number, f), nil
	}
	if strings.HasPrefix(name, "marker."+manifestMarker+".") {
		if err := x.markerMade(name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// record makes the index say how much of the manifest is on disk now, durably and in one step.
func (x *manifestIndex) record() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := durable.Replace(x.FS, x.PathJoin(x.dir, manifestIndexName), x.encode())
	if err != nil {
		err = fmt.Errorf("write LOGS: %w", err)
		x.fatal(fmt.Errorf("store: %w", err))
	}
	return err
}

func (x *manifestIndex) encode() []byte {
	b := []byte{manifestIndexVersion}
	for _, n := range [...]uint64{x.number, x.prefix.size, uint64(x.prefix.sum)} {
		b = binary.AppendUvarint(b, n)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

// decode is the inverse of encode. It also reads the logs of version 0.1.
func (x *manifestIndex) decode(data []byte) error {
	if len(data) < 1+4 {
		return errManifestIndex
	}
	rest, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(rest, crcTable) != binary.BigEndian.Uint32(sum) {
		return errManifestIndex
	}
	if v := rest[0]; v != manifestIndexVersion {
		return fmt.Errorf(
			"the record of the store's manifest (LOGS) has format %d, and this release knows only %d: another release wrote it",
			v, manifestIndexVersion)
	}
	var err error
	if x.number, x.prefix, rest, err = cutPrefix(rest[1:]); err != nil {
		return err
	}
	x.oldLogs, err = decodeOldLogs(rest)
	return err
}

// cutPrefix reads the number of a file, and the length and checksum of its first bytes.
func cutPrefix(b []byte) (number uint64, prefix filePrefix, rest []byte, err error) {
	var fields [3]uint64
	for i := range fields {
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, filePrefix{}, nil, errManifestIndex
		}
		fields[i], b = value, b[n:]
	}
	return fields[0], filePrefix{fields[1], uint32(fields[2])}, b, nil
}
