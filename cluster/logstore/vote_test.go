package logstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a vote file holds is a ballot or is refused; one that is read and written
// again is the same.
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
