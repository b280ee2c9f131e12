package logstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// rewriteLastAppends writes the last two appends of a segment again, as they are, so that the
// next sync makes them durable. The process that made the last one may have ended because its
// sync failed. Linux then drops the data: the next process still reads it from memory, but no
// later sync writes it, and a power loss takes it away, with all that was appended behind it.
// Every append before the last one was synced, or that process would have ended there. The one
// before it is written again because what looks like the last one may be the rest of a torn one
// behind it.
func rewriteLastAppends(f types.WritableFile) error {
	from, to, err := lastAppends(io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return err
	}
	buf := make([]byte, min(to-from, 1<<20))
	for at := from; at < to; at += int64(len(buf)) {
		buf = buf[:min(to-at, int64(len(buf)))]
		if _, err := f.ReadAt(buf, at); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf, at); err != nil {
			return err
		}
	}
	return nil
}

// The format of raft-wal's segments, version 0. A frame's header has its type, three bytes of
// padding, and four with its length, or the checksum of a commit, which has no more. Frames are
// padded to the size of a header.
const (
	segmentHeader = 32
	frameHeader   = 8
)

// lastAppends returns where the last two appends of a segment begin and end: behind the commit
// before them, or at the start of the file, and behind the last commit. Both are 0 if there is no
// commit. The search ends at the first thing that is no frame, such as zeros; RecoverTail, which is
// called next, judges what that is.
func lastAppends(file io.Reader) (from, to int64, err error) {
	r := bufio.NewReaderSize(file, 256<<10)
	at, between, length := int64(0), int64(0), int64(segmentHeader)
	for {
		var head []byte
		if _, err = io.CopyN(io.Discard, r, length); err == nil {
			head, err = r.Peek(frameHeader)
		}
		if errors.Is(err, io.EOF) {
			return from, to, nil
		}
		if err != nil {
			return 0, 0, err
		}
		at += length
		length = frameHeader
		switch head[0] {
		case segment.FrameEntry, segment.FrameIndex:
			n := int64(binary.LittleEndian.Uint32(head[4:]))
			length += (n + frameHeader - 1) / frameHeader * frameHeader
		case segment.FrameCommit:
			from, between, to = between, to, at+frameHeader
		default:
			return from, to, nil
		}
	}
}
