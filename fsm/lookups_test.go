package fsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestLookupsFindWhatASnapshotFinds(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 300 {
		r.one(opAdd(&jobpb.Add{Topic: "t", Id: fmt.Sprint(i), DelayMs: int64(i%7) * 1000}))
	}
	v := r.m.View()
	defer func() { require.NoError(t, v.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	found := 0
	require.NoError(t, v.read(func(s pebble.Reader) error {
		l, err := newLookups(s, spaceSpec, spaceStatus)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.close()) }()
		for range 3000 {
			key := appendSeqKey(nil, []byte{spaceSpec, spaceStatus, spaceNumber}[rng.IntN(3)], rng.Uint64N(320))
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
		return nil
	}))
	require.Greater(t, found, 500)
}
