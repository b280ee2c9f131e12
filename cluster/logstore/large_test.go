package logstore

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// raft-wal writes an entry of any size, but cannot read one above its limit.
func TestAnEntryThatCouldNotBeReadAgainIsNotWritten(t *testing.T) {
	tooLarge := &raft.Log{Index: 3, Term: 3, Data: make([]byte, MaxEntryBytes+1)}
	largest := &raft.Log{Index: 3, Term: 3, Data: make([]byte, MaxEntryBytes)}

	t.Run("raft-wal takes it and cannot start again", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		require.NoError(t, s.Log.StoreLogs(entries(1, 2, 10)))
		require.NoError(t, s.Log.(*logStore).store.StoreLogs(withChecksums([]*raft.Log{{Index: 3, Data: make([]byte, MaxEntryBytes+entrySlack)}})))
		require.NoError(t, s.Close())
		_, err := Open(dir, Options{Fatal: func(error) {}})
		require.Error(t, err)
	})
	t.Run("so it is refused, and the log goes on", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		require.NoError(t, s.Log.StoreLogs(entries(1, 2, 10)))
		require.ErrorContains(t, s.Log.StoreLogs([]*raft.Log{tooLarge}), "entry 3 has")
		require.NoError(t, s.Err(), "the stores still work")
		require.NoError(t, s.Log.StoreLogs([]*raft.Log{largest}))
		require.NoError(t, s.Close())

		s = open(t, dir)
		var e raft.Log
		require.NoError(t, s.Log.GetLog(3, &e))
		require.Len(t, e.Data, MaxEntryBytes)
		require.NoError(t, s.Close())
	})
}
