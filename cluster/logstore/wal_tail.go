package logstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// sector is the unit that a disk writes whole or not at all.
const sector = 512

// A tail is what follows the whole appends of the last segment and is not zeros: a torn write,
// or damage.
//
// An append is synced before the next one is written, and the file has only zeros where it has
// not been written. So at most one append can be torn, the last one, and its sectors that did not
// reach the disk are blank. A write that failed, or whose process was killed, can also have ended
// at any byte, and then all that follows is blank. Everything else is damage. In particular, a
// later append is proof that the one before it was complete.
//
// What is not told apart: damage that leaves the last append as a torn one would be, such as a
// sector of zeros. The watermark finds that, unless it is behind after a power failure.
type tail struct {
	data   []byte // from the end of the whole appends, padded to whole frame headers
	at     int64  // where that is in the segment
	used   int    // length without the zeros at its end
	next   uint64 // index of the entry that would follow the whole appends
	header []byte // the segment's, if it has no whole append
}

func readTail(file types.ReadableFile, info types.SegmentInfo, s segmentScan) (*tail, error) {
	t := &tail{at: s.to, used: int(s.used - s.to), next: info.BaseIndex + s.entries}
	t.data = make([]byte, (t.used+frameHeader-1)/frameHeader*frameHeader)
	if _, err := file.ReadAt(t.data[:t.used], t.at); err != nil {
		return nil, err
	}
	if s.to == 0 {
		t.header = headerOf(info)
	}
	return t, nil
}

// damage returns an error unless the tail is a torn write. Without strict it may also have what
// earlier releases left behind torn writes; then only a later append counts as damage.
func (t *tail) damage(strict bool) error {
	if err := t.laterAppend(); err != nil || !strict {
		return err
	}
	if at, what := t.notTorn(); what != "" {
		return fmt.Errorf("%w at byte %d: %s, and it is not a write that a crash cut off. %d bytes follow entry %d, the last one that can be read",
			ErrFileDamaged, t.at+int64(at), what, t.used, t.next-1)
	}
	return nil
}

// laterAppend returns an error if the tail has a later append than the one that begins it: a
// whole one, or an entry behind a commit.
func (t *tail) laterAppend() error {
	var found uint64 // entries that can be read
	var last uint64
	later := false
	for at := frameHeader; at < len(t.data); {
		if e, _ := t.entry(at); e == nil {
			at += frameHeader
			continue
		}
		// Walk on from here. The append that this entry is part of may have begun before it.
		sum, passed := uint32(0), false
		for at < len(t.data) {
			if f := frameOf(t.data[at:]); f.commit() {
				later = later || f.value == sum
				sum, passed, at = 0, true, at+frameHeader
				continue
			}
			e, end := t.entry(at)
			if e == nil {
				break
			}
			later = later || passed
			found, last = found+1, max(last, e.Index)
			sum = crc32.Update(sum, sumTable, t.data[at:end])
			at = end
		}
	}
	if !later {
		return nil
	}
	return fmt.Errorf("%w behind byte %d: entry %d cannot be read, but %d later entries are there, up to entry %d, in the %d bytes that follow",
		ErrFileDamaged, t.at, t.next, found, last, t.used)
}

// entry returns the entry of the frame at a place, and where the frame ends; nil if it is none
// with a checksum that is right, or not one that can follow.
func (t *tail) entry(at int) (*raft.Log, int) {
	f := frameOf(t.data[at:])
	end := int64(at+frameHeader) + f.padded()
	if !f.content() || f.kind != segment.FrameEntry || end > int64(len(t.data)) {
		return nil, 0
	}
	data := t.data[at+frameHeader:][:f.value]
	if index, _ := binary.Uvarint(data); index < t.next || index-t.next > uint64(len(t.data)) {
		return nil, 0
	}
	e := new(raft.Log)
	if decodeEntry(data, e) != nil || len(e.Extensions) == 0 || verifyChecksum(e) != nil {
		return nil, 0
	}
	return e, int(end)
}

// notTorn returns what in the tail cannot be the rest of a torn append, and where; empty: nothing.
func (t *tail) notTorn() (at int, what string) {
	const noHeader, wrongSum = "there is no header of an entry", "the checksum of the last append is wrong"
	end := len(t.data)
	whole := t.used == end && frameOf(t.data[end-frameHeader:]).commit() // its last sector was written, so it is not cut off
	if whole && !t.blank(0, end) {
		return 0, wrongSum
	}
	var sum uint32
	missing := false // a sector of the frames so far
	if t.header != nil {
		if missing = t.blank(0, segmentHeader); !missing && !bytes.HasPrefix(t.header, t.data[:min(t.used, segmentHeader)]) {
			return 0, "its header is wrong"
		}
		sum, at = crc32.Checksum(t.header, sumTable), segmentHeader
	}
	for next := t.next; at < end; {
		f := frameOf(t.data[at:])
		cut := t.used < at+frameHeader
		switch {
		case t.blank(at, at+frameHeader):
			return 0, ""
		case !f.reserved || f.kind == segment.FrameInvalid || f.kind > segment.FrameCommit:
			return at, noHeader
		case !missing && f.commit() && cut && bytes.HasPrefix(binary.LittleEndian.AppendUint32(nil, sum), t.data[at+4:max(t.used, at+4)]):
			return 0, ""
		case !missing && f.commit():
			return at, wrongSum
		case !missing && !cut && f.value == sum:
			return at, "the header of a commit is wrong"
		case cut || f.commit():
			return 0, ""
		case !f.content() || f.value == 0:
			return at, noHeader
		}
		to := at + frameHeader + int(f.padded())
		if to > end {
			if whole {
				return at, "the length of an entry is wrong"
			}
			return 0, ""
		}
		e, _ := t.entry(at)
		switch {
		case e != nil && e.Index == next:
		case t.blank(at, to):
			missing = true
		case to == end:
			return 0, "" // cut off in its last bytes
		case f.kind == segment.FrameEntry:
			return at, fmt.Sprintf("entry %d is not as it was written", next)
		}
		if f.kind == segment.FrameEntry {
			next++
		}
		sum = crc32.Update(sum, sumTable, t.data[at:to])
		at = to
	}
	return 0, ""
}

// blank reports whether one of the sectors of a range has nothing of the tail: it was not written.
func (t *tail) blank(from, to int) bool {
	offset := int(t.at % sector)
	for s := (from + offset) / sector; s*sector-offset < to; s++ {
		first, last := max(s*sector-offset, 0), min((s+1)*sector-offset, len(t.data))
		if first < last && usedOf(t.data[first:last]) == 0 {
			return true
		}
	}
	return false
}
