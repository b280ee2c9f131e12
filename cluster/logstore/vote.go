package logstore

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// The keys under which Raft asks for its last vote, and the key under which both
// halves are kept together. The last one is on disk.
const (
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
	keyVote          = "Vote"
)

// voteStore keeps a vote as one record: 8 bytes of term, then the candidate.
// Raft sets the term first and counts on neither half before both calls have
// returned, so the term may wait in memory until the candidate comes.
type voteStore struct {
	raft.StableStore

	mu   sync.Mutex
	term uint64 // staged by SetUint64, written by Set
}

func (v *voteStore) SetUint64(key []byte, value uint64) error {
	if string(key) != keyVoteTerm {
		return v.StableStore.SetUint64(key, value)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.term = value
	return nil
}

func (v *voteStore) Set(key, value []byte) error {
	if string(key) != keyVoteCandidate {
		return v.StableStore.Set(key, value)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.term == 0 {
		return fmt.Errorf("stable store: %s was set without %s before it", keyVoteCandidate, keyVoteTerm)
	}
	record := binary.BigEndian.AppendUint64(nil, v.term)
	v.term = 0
	return v.StableStore.Set([]byte(keyVote), append(record, value...))
}

func (v *voteStore) GetUint64(key []byte) (uint64, error) {
	if string(key) != keyVoteTerm {
		return v.StableStore.GetUint64(key)
	}
	term, _, err := v.vote()
	return term, err
}

func (v *voteStore) Get(key []byte) ([]byte, error) {
	if string(key) != keyVoteCandidate {
		return v.StableStore.Get(key)
	}
	_, candidate, err := v.vote()
	return candidate, err
}

// vote reads the last vote that is on disk.
func (v *voteStore) vote() (term uint64, candidate []byte, err error) {
	record, err := v.StableStore.Get([]byte(keyVote))
	if err != nil {
		return 0, nil, err
	}
	if len(record) < 8 {
		return 0, nil, fmt.Errorf("stable store: the vote record has %d bytes, want 8 or more", len(record))
	}
	return binary.BigEndian.Uint64(record), record[8:], nil
}
