package record

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
)

func TestLookupsFindWhatASnapshotFinds(t *testing.T) {
	db := openStore(t)
	for seq := range uint64(300) {
		require.NoError(t, db.Set(AppendSeqKey(nil, SpaceSpec, seq+1), []byte{byte(seq)}, pebble.NoSync))
		if seq%7 == 0 {
			require.NoError(t, db.Set(AppendSeqKey(nil, SpaceStatus, seq+1), nil, pebble.NoSync))
		}
	}
	require.NoError(t, db.Set(AppendSeqKey(nil, SpaceNumber, 7), []byte("t"), pebble.NoSync))
	s := db.NewSnapshot()
	defer func() { require.NoError(t, s.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	found := 0
	l, err := NewLookups(s, SpaceSpec, SpaceStatus)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for range 3000 {
		key := AppendSeqKey(nil, []byte{SpaceSpec, SpaceStatus, SpaceNumber}[rng.IntN(3)], rng.Uint64N(320))
		want, wantEnd, wantErr := s.Get(key)
		got, gotEnd, gotErr := l.Get(key)
		require.Equal(t, wantErr, gotErr)
		if errors.Is(wantErr, pebble.ErrNotFound) {
			continue
		}
		require.NoError(t, wantErr)
		require.Equal(t, want, got)
		require.NoError(t, errors.Join(wantEnd.Close(), gotEnd.Close()))
		found++
	}
	require.Greater(t, found, 500)
}
