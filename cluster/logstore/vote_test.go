package logstore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// The content of a vote file is a valid ballot or is refused. A ballot that is decoded and
// encoded has the same bytes.
func FuzzVote(f *testing.F) {
	f.Add(ballot{term: 6, voteTerm: 5, candidate: []byte("n1.ab")}.encode())
	f.Add(ballot{term: 1}.encode())
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBallot(data)
		if err != nil {
			require.Zero(t, b)
			return
		}
		require.Equal(t, data, b.encode())
	})
}

func TestATermNeverGoesBack(t *testing.T) {
	v, err := openVotes(record{vfs.NewMem(), "", "votes"})
	require.NoError(t, err)
	require.NoError(t, v.SetUint64([]byte(keyTerm), 5))
	require.ErrorContains(t, v.SetUint64([]byte(keyTerm), 4), "term 4 comes after term 5")
	term, err := v.GetUint64([]byte(keyTerm))
	require.NoError(t, err)
	require.EqualValues(t, 5, term)
}
