package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
)

// An archive is a whole state as one stream of bytes, of a length that is known in
// advance. Integers are big-endian.
//
//	"TARRYSNP" version(4) length(4) index CRC-32C(4)
//	for each file of the index: its bytes CRC-32C(4)
//	"TARRYEND"
//
//	index: Raft index(8) term(8) cluster version(4) count(4), then for each file: len(1) name size(8)
//
// The checksum after the index covers everything before it.
//
// An incremental archive leaves out files that another archive, its base, has. Its version is 3,
// and in its index each file goes on: where(1) tail(4). where is 1 for a file that is in the base
// and not in the body; then tail is the CRC-32C of its last 4 KiB. Else both are 0.
//
// A backup's first file has no bytes, and its name is that of the store (storeMark).
const (
	archiveMagic   = "TARRYSNP"
	archiveEnd     = "TARRYEND"
	archiveVersion = 2
	// incrementalVersion is the version of an archive that needs a base.
	incrementalVersion = 3

	archivePreambleLen = len(archiveMagic) + 4 + 4
	archiveSumLen      = 4
	archiveIndexFixed  = 8 + 8 + 4 + 4
	whereLen           = 1 + 4

	// An archive beyond these is damaged: maxArchiveIndex is enough for some hundred
	// thousand files, and maxFileSize is far more than the store writes.
	maxArchiveIndex = 16 << 20
	maxFileSize     = 1 << 40
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// archiveName prevents that a received archive writes outside its directory.
var archiveName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// archiveFile is one file of the store.
type archiveFile struct {
	name string
	size int64
	// inBase is set in an incremental archive for a file that its base has; tail is the checksum
	// of its end.
	inBase bool
	tail   uint32
}

// Header is the point that the state in an archive has reached.
type Header struct {
	Index, Term uint64 // of the Raft log
	Version     uint32 // the cluster's
}

type archiveIndex struct {
	Header
	files       []archiveFile
	incremental bool
}

// size is the length of the whole archive.
func (x *archiveIndex) size() int64 {
	n := int64(archivePreambleLen + x.bodyLen() + archiveSumLen + len(archiveEnd))
	for _, f := range x.files {
		if !f.inBase {
			n += f.size + archiveSumLen
		}
	}
	return n
}

func (x *archiveIndex) bodyLen() int {
	n := archiveIndexFixed
	for _, f := range x.files {
		n += 1 + len(f.name) + 8
		if x.incremental {
			n += whereLen
		}
	}
	return n
}

// appendHead appends everything up to the first file.
func (x *archiveIndex) appendHead(b []byte) []byte {
	start := len(b)
	b = append(b, archiveMagic...)
	version := uint32(archiveVersion)
	if x.incremental {
		version = incrementalVersion
	}
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(x.bodyLen()))
	b = binary.BigEndian.AppendUint64(b, x.Index)
	b = binary.BigEndian.AppendUint64(b, x.Term)
	b = binary.BigEndian.AppendUint32(b, x.Version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(x.files)))
	for _, f := range x.files {
		b = append(b, byte(len(f.name)))
		b = append(b, f.name...)
		b = binary.BigEndian.AppendUint64(b, uint64(f.size))
		if x.incremental {
			where := byte(0)
			if f.inBase {
				where = 1
			}
			b = binary.BigEndian.AppendUint32(append(b, where), f.tail)
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// checkPreamble checks the first bytes of an archive. It returns the length of its index, and
// whether it is incremental.
func checkPreamble(b []byte) (n int, incremental bool, err error) {
	if string(b[:len(archiveMagic)]) != archiveMagic {
		return 0, false, fmt.Errorf("this is no snapshot archive: it begins with %q", b[:len(archiveMagic)])
	}
	b = b[len(archiveMagic):]
	v := binary.BigEndian.Uint32(b)
	if v != archiveVersion && v != incrementalVersion {
		return 0, false, fmt.Errorf(
			"the snapshot archive has format %d, this node knows only %d and %d: it comes from another release",
			v, archiveVersion, incrementalVersion)
	}
	size := binary.BigEndian.Uint32(b[4:])
	if size < archiveIndexFixed || size > maxArchiveIndex {
		return 0, false, fmt.Errorf("the snapshot archive is damaged: its index has %d bytes", size)
	}
	return int(size), v == incrementalVersion, nil
}

// decodeArchiveIndex reads an index. It refuses a list of files that is not a plain
// directory.
func decodeArchiveIndex(b []byte, incremental bool) (archiveIndex, error) {
	x := archiveIndex{incremental: incremental, Header: Header{
		Index:   binary.BigEndian.Uint64(b),
		Term:    binary.BigEndian.Uint64(b[8:]),
		Version: binary.BigEndian.Uint32(b[16:]),
	}}
	count := binary.BigEndian.Uint32(b[20:])
	b = b[archiveIndexFixed:]
	more := 0
	if incremental {
		more = whereLen
	}
	seen := make(map[string]struct{})
	for range count {
		if len(b) < 1 || len(b) < 1+int(b[0])+8+more {
			return archiveIndex{}, fmt.Errorf("the index ends within file %d of %d", len(x.files)+1, count)
		}
		n := int(b[0])
		f := archiveFile{name: string(b[1 : 1+n]), size: int64(binary.BigEndian.Uint64(b[1+n:]))}
		b = b[1+n+8:]
		if incremental {
			if b[0] > 1 {
				return archiveIndex{}, fmt.Errorf("the index says that the file %q is at place %d", f.name, b[0])
			}
			f.inBase, f.tail = b[0] == 1, binary.BigEndian.Uint32(b[1:])
			b = b[whereLen:]
		}
		if !archiveName.MatchString(f.name) {
			return archiveIndex{}, fmt.Errorf("the index has the file name %q", f.name)
		}
		if f.size < 0 || f.size > maxFileSize {
			return archiveIndex{}, fmt.Errorf("the index has the file %s with %d bytes", f.name, f.size)
		}
		if _, ok := seen[f.name]; ok {
			return archiveIndex{}, fmt.Errorf("the index has the file %s twice", f.name)
		}
		seen[f.name] = struct{}{}
		x.files = append(x.files, f)
	}
	if len(b) > 0 {
		return archiveIndex{}, fmt.Errorf("the index goes on for %d bytes after its last file", len(b))
	}
	return x, nil
}

// readIndex reads the beginning of an archive, up to the first file.
func readIndex(from io.Reader) (archiveIndex, error) {
	pre := make([]byte, archivePreambleLen)
	if _, err := io.ReadFull(from, pre); err != nil {
		return archiveIndex{}, fmt.Errorf("read the archive: %w", err)
	}
	n, incremental, err := checkPreamble(pre)
	if err != nil {
		return archiveIndex{}, err
	}
	b := make([]byte, n+archiveSumLen)
	if _, err := io.ReadFull(from, b); err != nil {
		return archiveIndex{}, fmt.Errorf("read the archive: %w", err)
	}
	if crc32.Update(crc32.Checksum(pre, crcTable), crcTable, b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return archiveIndex{}, errors.New("the archive's index does not match its checksum")
	}
	return decodeArchiveIndex(b[:n], incremental)
}
