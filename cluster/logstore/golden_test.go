package logstore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func contentOf(t *testing.T, files vfs.FS, name string) []byte {
	f, err := files.Open(name)
	require.NoError(t, err)
	stat, err := f.Stat()
	require.NoError(t, err)
	b := make([]byte, stat.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

func put(t *testing.T, files vfs.FS, name string, b []byte) {
	f, err := files.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(append([]byte(nil), b...))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestTheFileOfAVoteKeepsItsBytes(t *testing.T) {
	written, read := vfs.NewMem(), vfs.NewMem()
	v, err := openVotes(record{written, "", "votes"})
	require.NoError(t, err)
	require.NoError(t, v.SetUint64([]byte(keyTerm), 6))
	require.NoError(t, v.SetUint64([]byte(keyVoteTerm), 6))
	require.NoError(t, v.Set([]byte(keyVoteCandidate), []byte("n1.0123456789abcdef")))

	put(t, read, "votes", golden.Frozen(t, "votes-1", contentOf(t, written, "votes")))
	got, err := openVotes(record{read, "", "votes"})
	require.NoError(t, err)
	require.Equal(t, v.held, got.held)
}

func TestTheWatermarkKeepsItsBytes(t *testing.T) {
	for name, c := range map[string]struct {
		numbers int
		want    commitMark
	}{
		"watermark-1":     {2, commitMark{seq: 9, last: 1001}},
		"watermark-wal-1": {3, commitMark{seq: 9, last: 1001, term: 7}},
	} {
		written, read := vfs.NewMem(), vfs.NewMem()
		w, err := openWatermark(written, "", "watermark", c.numbers, false)
		require.NoError(t, err)
		for seq := range uint64(2) {
			require.NoError(t, w.store(commitMark{seq: 8 + seq, last: 1000 + seq, term: 7}))
		}
		require.NoError(t, w.close())

		put(t, read, "watermark", golden.Frozen(t, name, contentOf(t, written, "watermark")))
		got, err := openWatermark(read, "", "watermark", c.numbers, true)
		require.NoError(t, err)
		require.Equal(t, c.want, got.held)
		require.NoError(t, got.close())
	}
}

// The first file is one of a release without a watermark.
func TestTheListOfSegmentsKeepsItsBytes(t *testing.T) {
	at := time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)
	state := types.PersistentState{NextSegmentID: 3, Segments: []types.SegmentInfo{
		{ID: 1, BaseIndex: 1, MinIndex: 5, MaxIndex: 90, Codec: 1, IndexStart: 4000, CreateTime: at, SealTime: at, SizeLimit: 1 << 20},
		{ID: 2, BaseIndex: 91, MinIndex: 91, Codec: 1, CreateTime: at, SizeLimit: 1 << 20},
	}}
	mem := vfs.NewMem()
	l := segmentList{record{mem, "", listFile}}
	require.NoError(t, l.CommitState(state))
	written := contentOf(t, mem, listFile)
	for name, c := range map[string]struct {
		data      []byte
		watermark bool
	}{
		"segments-1":           {withoutMention(t, written), false},
		"segments-1-watermark": {written, true},
	} {
		put(t, mem, listFile, golden.Frozen(t, name, c.data))
		got, err := l.content()
		require.NoError(t, err)
		require.Equal(t, listContent{state, c.watermark}, got)
	}
}

func TestTheChecksumOfAnEntryKeepsItsBytes(t *testing.T) {
	entry := raft.Log{Index: 5, Term: 6, Type: raft.LogCommand, Data: []byte("data")}
	read := entry
	read.Extensions = golden.Frozen(t, "checksum-1", withChecksums([]*raft.Log{&entry})[0].Extensions)
	require.NoError(t, verifyChecksum(&read))
	require.Equal(t, entry, read)
}
