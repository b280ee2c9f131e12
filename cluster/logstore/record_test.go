package logstore

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestADamagedRecordIsRefused(t *testing.T) {
	write := func(r record, data []byte) {
		f, err := r.fs.Create(r.path(), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(slices.Clone(data))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	r := record{vfs.NewMem(), "", "votes"}
	require.NoError(t, r.store([]byte("payload")))
	held, err := r.load()
	require.NoError(t, err)
	require.Equal(t, "payload", string(held))

	good := append([]byte{recordVersion}, "payload"...)
	good = append(good, byte(r.sum(good)>>24), byte(r.sum(good)>>16), byte(r.sum(good)>>8), byte(r.sum(good)))
	write(r, good)
	_, err = r.load()
	require.NoError(t, err, "the bytes on disk")
	for bit := range len(good) * 8 {
		bad := slices.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		write(r, bad)
		_, err := r.load()
		require.ErrorIs(t, err, ErrFileDamaged, "bit %d", bit)
	}
	for _, bad := range [][]byte{nil, good[:1], good[:len(good)-1], append(slices.Clone(good), 0)} {
		write(r, bad)
		_, err := r.load()
		require.ErrorIs(t, err, ErrFileDamaged)
		require.ErrorContains(t, err, "votes")
	}
	write(record{r.fs, "", "segments"}, good)
	_, err = record{r.fs, "", "segments"}.load()
	require.ErrorIs(t, err, ErrFileDamaged, "another file in its place")

	newer := []byte{recordVersion + 1, 'x'}
	sum := r.sum(newer)
	write(r, append(newer, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)))
	_, err = r.load()
	require.ErrorContains(t, err, "has format 2, and this release knows only 1")
}
