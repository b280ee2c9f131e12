package logstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// The format of raft-wal's segments, version 0. A segment begins with a header. An append is
// the frames of its entries, an index if it fills the segment, and a commit. A frame's header
// has its type, three bytes of zeros, and four with its length, or in a commit, which has no
// content, the CRC-32C of the append (in the first one, of the segment's header too). Frames
// are padded with zeros to the size of a header.
const (
	segmentHeader = 32
	frameHeader   = 8
	segmentMagic  = 0x58eb6b0d
)

// headerOf returns the first bytes of a segment.
func headerOf(info types.SegmentInfo) []byte {
	h := binary.LittleEndian.AppendUint64(nil, segmentMagic) // with three reserved bytes, and version 0
	h = binary.LittleEndian.AppendUint64(h, info.BaseIndex)
	h = binary.LittleEndian.AppendUint64(h, info.ID)
	return binary.LittleEndian.AppendUint64(h, info.Codec)
}

// frame is the header of a frame.
type frame struct {
	kind     byte
	reserved bool   // the reserved bytes are zero
	value    uint32 // length, or the checksum of a commit
}

func frameOf(head []byte) frame {
	return frame{kind: head[0], reserved: head[1]|head[2]|head[3] == 0, value: binary.LittleEndian.Uint32(head[4:])}
}

func (f frame) commit() bool { return f.kind == segment.FrameCommit && f.reserved }

// content reports whether it is a frame of an entry or an index.
func (f frame) content() bool {
	return (f.kind == segment.FrameEntry || f.kind == segment.FrameIndex) && f.reserved && f.value <= segment.MaxEntrySize
}

// padded returns the length of the frame's content with its padding.
func (f frame) padded() int64 {
	return (int64(f.value) + frameHeader - 1) / frameHeader * frameHeader
}

// segmentScan is what a segment holds: whole appends, whose checksums are right, and what is
// behind them.
type segmentScan struct {
	from, to int64  // where the last two appends begin, and where the last one ends; both are 0 if there is none
	entries  uint64 // of the appends
	sealed   bool   // the last append has the segment's index
	used     int64  // where the last byte that is not zero ends
}

// scanSegment reads a segment. It calls visit, if that is not nil, for each entry of a whole
// append; the bytes are valid during the call only.
func scanSegment(file io.ReaderAt, info types.SegmentInfo, visit func(data []byte) error) (s segmentScan, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, 0, math.MaxInt64), 64<<10)
	type span struct{ from, to int }
	var (
		body    []byte // of the append so far
		entries []span // in body
		between int64
		indexed bool
	)
	end := func() (segmentScan, error) {
		s.used, err = lastUsed(file, s.to)
		return s, err
	}
	// read reads n more bytes of the append. Without them the scan ends.
	read := func(n int64) (more bool, err error) {
		if body, err = appendFrom(body, r, n); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			s, err = end()
			return false, err
		}
		return err == nil, err
	}
	if more, err := read(segmentHeader); !more {
		return s, err
	}
	at, start := int64(segmentHeader), int64(0)
	for {
		head, err := r.Peek(frameHeader)
		if err != nil && !errors.Is(err, io.EOF) {
			return s, err
		}
		if len(head) < frameHeader {
			return end()
		}
		f := frameOf(head)
		switch {
		case f.content() && !indexed:
			length := int64(frameHeader) + f.padded()
			if f.kind == segment.FrameEntry {
				from := len(body) + frameHeader
				entries = append(entries, span{from, from + int(f.value)})
			}
			indexed = f.kind == segment.FrameIndex
			if more, err := read(length); !more {
				return s, err
			}
			at += length
		case f.commit() && len(body) > 0 && crc32.Checksum(body, sumTable) == f.value:
			if start == 0 && [segmentHeader]byte(body) != [segmentHeader]byte(headerOf(info)) {
				return s, fmt.Errorf("%w: its header is one of another segment", ErrFileDamaged)
			}
			for i := 0; visit != nil && i < len(entries); i++ {
				if err := visit(body[entries[i].from:entries[i].to]); err != nil {
					return s, err
				}
			}
			if _, err := r.Discard(frameHeader); err != nil {
				return s, err
			}
			at += frameHeader
			s.entries += uint64(len(entries))
			s.sealed = indexed
			s.from, between, s.to = between, start, at
			start = at
			body, entries = body[:0], entries[:0]
		default:
			return end()
		}
	}
}

// appendFrom appends n bytes of r to b.
func appendFrom(b []byte, r io.Reader, n int64) ([]byte, error) {
	was := len(b)
	b = append(b, make([]byte, n)...)
	_, err := io.ReadFull(r, b[was:])
	return b, err
}

// lastUsed returns where the last byte behind from that is not zero ends; from: there is none.
func lastUsed(file io.ReaderAt, from int64) (used int64, err error) {
	used = from
	buf := make([]byte, 64<<10)
	for at := from; ; {
		n, err := file.ReadAt(buf, at)
		if !bytes.Equal(buf[:n], zeros[:n]) {
			used = at + int64(usedOf(buf[:n]))
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return used, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// usedOf returns the length of data without the zeros at its end.
func usedOf(data []byte) int {
	n := len(data)
	for n > 0 && data[n-1] == 0 {
		n--
	}
	return n
}

// decodeEntry decodes an entry as raft-wal writes it. raft-wal's decoder panics on some damage.
func decodeEntry(data []byte, e *raft.Log) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	if err := new(wal.BinaryCodec).Decode(data, e); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
