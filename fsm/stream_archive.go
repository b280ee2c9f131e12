package fsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"regexp"
)

// The archive: a whole state as one stream of bytes whose length is known before
// the first of them is read. Integers are big-endian.
//
//	"TARRYSNP" version(4) length(4) manifest CRC-32C(4)
//	for each file of the manifest: its bytes CRC-32C(4)
//	"TARRYEND"
//
//	manifest: index(8) term(8) cluster version(4) count(4), then for each file: len(1) name size(8)
//
// The checksum after the manifest covers everything before it.
const (
	archiveMagic   = "TARRYSNP"
	archiveEnd     = "TARRYEND"
	archiveVersion = 2

	archivePreambleLen = len(archiveMagic) + 4 + 4
	archiveSumLen      = 4
	manifestFixed      = 8 + 8 + 4 + 4

	// maxManifest holds some hundred thousand files, maxFileSize is far above
	// what the store makes: whatever is larger is damage.
	maxManifest = 16 << 20
	maxFileSize = 1 << 40
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// archiveName keeps a received archive from writing anywhere but into its own
// directory.
var archiveName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// archiveFile is one file of the store.
type archiveFile struct {
	name string
	size int64
}

// manifest says what an archive holds.
type manifest struct {
	index, term uint64
	version     uint32 // the cluster's
	files       []archiveFile
}

// size is the length of the whole archive.
func (m *manifest) size() int64 {
	n := int64(archivePreambleLen + m.bodyLen() + archiveSumLen + len(archiveEnd))
	for _, f := range m.files {
		n += f.size + archiveSumLen
	}
	return n
}

func (m *manifest) bodyLen() int {
	n := manifestFixed
	for _, f := range m.files {
		n += 1 + len(f.name) + 8
	}
	return n
}

// appendHead appends everything up to the first file.
func (m *manifest) appendHead(b []byte) []byte {
	start := len(b)
	b = append(b, archiveMagic...)
	b = binary.BigEndian.AppendUint32(b, archiveVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(m.bodyLen()))
	b = binary.BigEndian.AppendUint64(b, m.index)
	b = binary.BigEndian.AppendUint64(b, m.term)
	b = binary.BigEndian.AppendUint32(b, m.version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.files)))
	for _, f := range m.files {
		b = append(b, byte(len(f.name)))
		b = append(b, f.name...)
		b = binary.BigEndian.AppendUint64(b, uint64(f.size))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// checkPreamble reads the first bytes of an archive and returns how long the
// manifest is.
func checkPreamble(b []byte) (int, error) {
	if string(b[:len(archiveMagic)]) != archiveMagic {
		return 0, fmt.Errorf("this is no snapshot archive: it begins with %q", b[:len(archiveMagic)])
	}
	b = b[len(archiveMagic):]
	if v := binary.BigEndian.Uint32(b); v != archiveVersion {
		return 0, fmt.Errorf("the snapshot archive has format %d, this node knows only %d: it comes from another release", v, archiveVersion)
	}
	n := binary.BigEndian.Uint32(b[4:])
	if n < manifestFixed || n > maxManifest {
		return 0, fmt.Errorf("the snapshot archive is damaged: its manifest has %d bytes", n)
	}
	return int(n), nil
}

// decodeManifest reads a manifest and refuses every list of files that would not
// make a plain directory.
func decodeManifest(b []byte) (manifest, error) {
	m := manifest{index: binary.BigEndian.Uint64(b), term: binary.BigEndian.Uint64(b[8:]), version: binary.BigEndian.Uint32(b[16:])}
	count := binary.BigEndian.Uint32(b[20:])
	b = b[manifestFixed:]
	seen := make(map[string]struct{})
	for range count {
		if len(b) < 1 || len(b) < 1+int(b[0])+8 {
			return manifest{}, fmt.Errorf("the manifest ends within file %d of %d", len(m.files)+1, count)
		}
		n := int(b[0])
		f := archiveFile{name: string(b[1 : 1+n]), size: int64(binary.BigEndian.Uint64(b[1+n:]))}
		b = b[1+n+8:]
		if !archiveName.MatchString(f.name) {
			return manifest{}, fmt.Errorf("the manifest has the file name %q", f.name)
		}
		if f.size < 0 || f.size > maxFileSize {
			return manifest{}, fmt.Errorf("the manifest has the file %s with %d bytes", f.name, f.size)
		}
		if _, ok := seen[f.name]; ok {
			return manifest{}, fmt.Errorf("the manifest has the file %s twice", f.name)
		}
		seen[f.name] = struct{}{}
		m.files = append(m.files, f)
	}
	if len(b) > 0 {
		return manifest{}, fmt.Errorf("the manifest goes on for %d bytes after its last file", len(b))
	}
	return m, nil
}
