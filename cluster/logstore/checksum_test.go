package logstore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestChecksumsDetectDamage(t *testing.T) {
	for name, damage := range map[string]func(e *raft.Log){
		"data":       func(e *raft.Log) { e.Data[3] ^= 1 },
		"index":      func(e *raft.Log) { e.Index++ },
		"term":       func(e *raft.Log) { e.Term ^= 1 << 40 },
		"type":       func(e *raft.Log) { e.Type++ },
		"checksum":   func(e *raft.Log) { e.Extensions[2] ^= 8 },
		"extensions": func(e *raft.Log) { e.Extensions = e.Extensions[:3] },
	} {
		t.Run(name, func(t *testing.T) {
			given := &raft.Log{Index: 7, Term: 3, Data: []byte("content")}
			e := withChecksums([]*raft.Log{given})[0]
			require.Nil(t, given.Extensions, "the caller's entry must not change")
			read := *e
			require.NoError(t, verifyChecksum(&read))
			require.Equal(t, given, &read)
			e.Data = bytes.Clone(e.Data)
			damage(e)
			require.ErrorIs(t, verifyChecksum(e), ErrDamaged)
		})
	}
	require.NoError(t, verifyChecksum(&raft.Log{Index: 1, Data: []byte("of an older release")}))
}

// A bit of a segment that flips while the process runs ends it when the entry is read. It does not
// reach a follower.
func TestFlippedBitInASegmentIsNotServed(t *testing.T) {
	dir := t.TempDir()
	var reported []error
	s, err := Open(dir, Options{Fatal: func(err error) { reported = append(reported, err) }})
	require.NoError(t, err)
	defer s.Close()
	for i := uint64(1); i <= 40; i++ {
		require.NoError(t, s.Log.StoreLog(&raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 200)}))
	}
	files, err := filepath.Glob(filepath.Join(dir, logDir, "*.wal"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	at := bytes.Index(data, bytes.Repeat([]byte{20}, 200))
	require.Positive(t, at)
	data[at+100] ^= 4
	require.NoError(t, os.WriteFile(files[0], data, 0o640))

	var e raft.Log
	require.NoError(t, s.Log.GetLog(19, &e))
	require.ErrorIs(t, s.Log.GetLog(20, &e), ErrDamaged)
	require.Len(t, reported, 1)
}
