package logstore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// segmentList is the log's list of its segments, in one record. raft-wal's own list is a
// bbolt file without checksums: a flipped bit in it could silently remove the end of the
// log.
type segmentList struct{ record }

var _ types.MetaStore = segmentList{}

// listContent is what the record has. A release that knows no watermark writes the list without
// the mention of it: then it may have shortened the log, and the watermark counts no more.
type listContent struct {
	types.PersistentState
	Watermark bool `json:"watermark,omitempty"`
}

func (l segmentList) Load(string) (types.PersistentState, error) {
	c, err := l.content()
	return c.PersistentState, err
}

func (l segmentList) content() (c listContent, err error) {
	data, err := l.load()
	if there, err := exists(err); !there {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w: %w", l.path(), ErrFileDamaged, err)
	}
	return c, nil
}

// CommitState implements types.MetaStore. The watermark must exist.
func (l segmentList) CommitState(s types.PersistentState) error { return l.commit(s, true) }

func (l segmentList) commit(s types.PersistentState, watermark bool) error {
	data, err := json.Marshal(listContent{s, watermark})
	if err != nil {
		return err
	}
	return l.store(data)
}

var errNotUsed = errors.New("the list of segments has no other values")

func (segmentList) GetStable([]byte) ([]byte, error) { return nil, errNotUsed }
func (segmentList) SetStable(_, _ []byte) error      { return errNotUsed }
func (segmentList) Close() error                     { return nil }

// checkList returns an error for segments that are not in the list. The number of a
// segment is written to the list before the segment is created. So a list without it
// is lost or an older copy, and raft-wal would remove the segment as a leftover.
// It also returns an error if Raft has run on the log and there is no list: the list is
// on disk before Raft starts.
func checkList(list types.PersistentState, filer *segment.Filer, used bool) error {
	if used && list.NextSegmentID == 0 {
		return fmt.Errorf("%w: the list of segments of the log is missing, but the node has taken part in elections", ErrFileDamaged)
	}
	files, err := filer.List()
	if err != nil {
		return err
	}
	for id := range files {
		if id >= list.NextSegmentID {
			return fmt.Errorf("the list of segments of the log is missing or an older copy: it ends before segment %d, and segment %d is there", list.NextSegmentID, id)
		}
	}
	return nil
}
