package logstore

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// A vote record is a vote or is refused; one that is read and cast again is the
// same record.
func FuzzVote(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x05n1.ab"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, record []byte) {
		disk := raft.NewInmemStore()
		require.NoError(t, disk.Set([]byte(keyVote), record))
		v := &voteStore{StableStore: disk}
		term, err := v.GetUint64([]byte(keyVoteTerm))
		candidate, cerr := v.Get([]byte(keyVoteCandidate))
		require.Equal(t, err, cerr)
		if err != nil {
			return
		}
		require.NoError(t, v.SetUint64([]byte(keyVoteTerm), term))
		if term == 0 {
			return // Raft never votes in term 0
		}
		require.NoError(t, v.Set([]byte(keyVoteCandidate), candidate))
		again, err := disk.Get([]byte(keyVote))
		require.NoError(t, err)
		require.Equal(t, string(record), string(again))
	})
}
