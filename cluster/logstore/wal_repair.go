package logstore

import (
	"errors"
	"fmt"
	"math"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// repairTail makes a log writable whose last segment, the tail, was sealed just before the
// process ended. raft-wal seals a segment with the append that fills it, or with a
// truncation, and records the seal in its list a moment later. If the process ends in
// between, raft-wal v0.4.2 opens the tail as a sealed segment and
// refuses every append ("segment is sealed"). repairTail is called for such a tail, before the
// log is opened.
//
// raft-wal's interface offers no repair: it can neither record the seal nor start the next
// segment. So repairTail uses what raft-wal exports for other implementations of its list
// and segments. It reads the tail as raft-wal would (RecoverTail), copies its entries to
// a new segment (Create), and replaces the tail by it in the list.
//
// It relies on these properties of raft-wal: the list's last segment is the tail, SealTime
// is zero until the seal is recorded, NextSegmentID is the next segment's number, and Open
// removes segments that are not in the list. It can be removed once raft-wal creates the
// next segment in Open.
func repairTail(meta types.MetaStore, list types.PersistentState, filer *segment.Filer) (err error) {
	tail := &list.Segments[len(list.Segments)-1]
	old, err := filer.RecoverTail(*tail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	id := list.NextSegmentID
	list.NextSegmentID++
	// The number is taken before the segment exists; see checkList.
	if err := meta.CommitState(list); err != nil {
		return err
	}
	tail.ID = id
	tail.BaseIndex = max(tail.BaseIndex, tail.MinIndex)
	if err := copySegment(filer, old, tail); err != nil {
		return fmt.Errorf("copy the last segment: %w", err)
	}
	return meta.CommitState(list) // Open removes the old segment, which is not listed any more
}

// copyBytes is the approximate size of one append of a copy.
const copyBytes = 4 << 20

// copySegment durably copies the entries of old, from info.BaseIndex on, to the segment
// that info describes, and sets info.SizeLimit. If there are none it creates no file.
func copySegment(filer *segment.Filer, old types.SegmentWriter, info *types.SegmentInfo) (err error) {
	last := old.LastIndex()
	if last < info.BaseIndex {
		return nil
	}
	// A full copy would be sealed again.
	size, err := maxSegmentBytes(old, info.BaseIndex, last)
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

// maxSegmentBytes returns an upper bound of the size of a segment with the given entries
// of old.
func maxSegmentBytes(old types.SegmentWriter, first, last uint64) (size int64, err error) {
	const perEntry = 64 // frame, share of a commit, place in the index
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
