package logstore

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// repairTail makes a log writable whose last segment was sealed just before the
// process ended. raft-wal seals a segment with the append that fills it, or with
// a truncation, and records that in its list a moment later. When it is opened in
// between (v0.4.2) it takes the segment up again, but as a sealed one, and refuses
// every append ("segment is sealed"); the same happens when the seal itself was torn.
// It is called before the log is opened, and does nothing in other cases but check
// the list.
//
// raft-wal's own interface has no way out: it can neither say that the tail is sealed
// nor go on behind it. So this works one level lower, on what raft-wal exports for
// other stores of its list and segments: it reads the tail as raft-wal would (RecoverTail),
// copies its entries to a fresh segment (Create), and puts that one into the list in
// the tail's place. To write into the list that the tail is sealed would be shorter, but
// a torn seal has no index on disk, and cannot be read as a sealed segment. It relies on
// this of raft-wal: the list's last segment is the tail, SealTime is zero until the seal
// is recorded, numbers are given from NextSegmentID, and Open removes segments that are
// not in the list. It can go when raft-wal makes the next segment in Open.
func repairTail(meta types.MetaStore, filer *segment.Filer, used bool) (err error) {
	list, err := meta.Load("")
	if err == nil {
		err = checkList(list, filer, used)
	}
	if err != nil || len(list.Segments) == 0 {
		return err
	}
	tail := &list.Segments[len(list.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	old, err := filer.RecoverTail(*tail)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is made when the log is opened
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if sealed, _, err := old.Sealed(); err != nil || !sealed {
		return err
	}
	id := list.NextSegmentID
	list.NextSegmentID++
	if err := meta.CommitState(list); err != nil { // before there is a segment of that number
		return err
	}
	tail.ID = id
	tail.BaseIndex = max(tail.BaseIndex, tail.MinIndex)
	if err := copySegment(filer, old, tail); err != nil {
		return fmt.Errorf("copy the last segment: %w", err)
	}
	return meta.CommitState(list) // the log removes what is not listed
}

// copyBytes is about what one append of a copy holds.
const copyBytes = 4 << 20

// copySegment writes the entries of old, from the first index of info on, to the
// segment that info describes, durably, and corrects info's size. Without any it
// makes no file.
func copySegment(filer *segment.Filer, old types.SegmentWriter, info *types.SegmentInfo) (err error) {
	last := old.LastIndex()
	if last < info.BaseIndex {
		return nil
	}
	// The copy must not be full at once, or it would be sealed again.
	size, err := segmentBytes(old, info.BaseIndex, last)
	if err != nil {
		return err
	}
	info.SizeLimit = uint32(min(int64(info.SizeLimit)+size, math.MaxInt32))
	to, err := filer.Create(*info)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	var batch []types.LogEntry
	bytes := 0
	for i := info.BaseIndex; i <= last; i++ {
		data, err := readEntry(old, i)
		if err != nil {
			return err
		}
		batch = append(batch, types.LogEntry{Index: i, Data: data})
		if bytes += len(data); bytes < copyBytes && i < last {
			continue
		}
		if err := to.Append(batch); err != nil {
			return err
		}
		batch, bytes = nil, 0
	}
	return nil
}

// segmentBytes bounds the size of a segment with the given entries of old.
func segmentBytes(old types.SegmentWriter, first, last uint64) (size int64, err error) {
	const perEntry = 64 // its frame, its share of a commit, its place in the index
	for i := first; i <= last; i++ {
		data, err := readEntry(old, i)
		if err != nil {
			return 0, err
		}
		size += int64(len(data)) + perEntry
	}
	return size, nil
}

func readEntry(from types.SegmentReader, index uint64) ([]byte, error) {
	b, err := from.GetLog(index)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", index, err)
	}
	data := append([]byte(nil), b.Bs...)
	return data, b.Close()
}
