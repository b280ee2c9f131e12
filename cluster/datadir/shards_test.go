package datadir

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNumberOfShardsIsThatOfTheFirstStart(t *testing.T) {
	path := t.TempDir()
	open := func() *Dir {
		d, err := Open(path, "n1", "")
		require.NoError(t, err)
		t.Cleanup(func() { d.Close() })
		return d
	}
	is := func(want int, d *Dir, asked int) {
		t.Helper()
		n, err := d.Shards(asked)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	d := open()
	is(1, d, 0)
	is(4, d, 4)
	require.False(t, d.HasGroups())

	// A start that ended before it recorded the number may be followed by one with another.
	require.NoError(t, ClaimShard(d.Shard(1), d.ServerID()))
	require.NoError(t, d.Close())
	d = open()
	is(2, d, 2)

	require.NoError(t, d.RecordShards(2))
	require.NoError(t, d.Close())
	d = open()
	require.True(t, d.HasGroups())
	is(2, d, 0)
	is(2, d, 2)
	_, err := d.Shards(1)
	require.ErrorIs(t, err, ErrUnusable)
}

func TestADirectoryWithGroupZeroAloneHasOneShard(t *testing.T) {
	d, err := Open(t.TempDir(), "n1", "")
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, ClaimShard(d.Shard(0), d.ServerID()))
	n, err := d.Shards(0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = d.Shards(2)
	require.ErrorContains(t, err, "Leave the flag out")
	data, err := os.ReadFile(d.file())
	require.NoError(t, err)
	require.NotContains(t, string(data), "shards", "the bytes are those of before")
}
