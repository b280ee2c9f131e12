package logstore

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// counted counts the reads of a log.
type counted struct {
	raft.LogStore
	reads int
}

func (c *counted) GetLog(index uint64, e *raft.Log) error {
	c.reads++
	return c.LogStore.GetLog(index, e)
}

func TestCache(t *testing.T) {
	get := func(t *testing.T, c *Cache, index uint64) *raft.Log {
		t.Helper()
		var e raft.Log
		require.NoError(t, c.GetLog(index, &e))
		require.Equal(t, index, e.Index)
		return &e
	}
	made := func() (*Cache, *counted) {
		below := &counted{LogStore: raft.NewInmemStore()}
		return NewCache(below, 1<<20, 8), below
	}

	t.Run("the newest entries are not read again", func(t *testing.T) {
		c, below := made()
		require.NoError(t, c.StoreLogs(entries(1, 20, 10)))
		for i := uint64(13); i <= 20; i++ {
			get(t, c, i)
		}
		require.Zero(t, below.reads)
		get(t, c, 12)
		require.Equal(t, 1, below.reads)
		require.ErrorIs(t, c.GetLog(21, &raft.Log{}), raft.ErrLogNotFound)
	})
	t.Run("large ones go sooner", func(t *testing.T) {
		c, below := made()
		for i := uint64(1); i <= 8; i++ {
			require.NoError(t, c.StoreLogs(entries(i, i, 400<<10)))
			require.LessOrEqual(t, c.bytes, int64(1<<20))
		}
		get(t, c, 7)
		get(t, c, 8)
		require.Zero(t, below.reads)
		get(t, c, 6)
		require.Equal(t, 1, below.reads)
		require.NoError(t, c.StoreLogs(entries(9, 9, 2<<20)))
		require.Zero(t, c.bytes, "one that is larger than the cache is not kept")
		get(t, c, 9)
	})
	t.Run("what was removed is not remembered", func(t *testing.T) {
		c, _ := made()
		require.NoError(t, c.StoreLogs(entries(1, 8, 10)))
		require.NoError(t, c.DeleteRange(5, 8))
		require.ErrorIs(t, c.GetLog(6, &raft.Log{}), raft.ErrLogNotFound)
		again := entries(5, 6, 20)
		require.NoError(t, c.StoreLogs(again))
		require.Len(t, get(t, c, 5).Data, 20)
		require.NoError(t, c.DeleteRange(1, 4))
		require.Len(t, get(t, c, 6).Data, 20)
		require.ErrorIs(t, c.GetLog(4, &raft.Log{}), raft.ErrLogNotFound)
	})
	t.Run("a log that goes on elsewhere", func(t *testing.T) {
		c, _ := made()
		require.NoError(t, c.StoreLogs(entries(1, 4, 10)))
		require.NoError(t, c.StoreLogs(entries(100, 101, 10)))
		get(t, c, 100)
		get(t, c, 2)
	})
}
