package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// The keys under which Raft asks for its term and for the two halves of its last
// vote.
const (
	keyTerm          = "CurrentTerm"
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
)

// errNotFound is the error that Raft expects for an absent value: it compares the text.
var errNotFound = errors.New("not found")

// votes keeps term and vote as one record: 8 bytes of term, 8 bytes of the term of the
// last vote, then its candidate. Raft sets the vote's term first and relies on neither
// half before both calls have returned. So that term may stay in memory until the
// candidate is set. Raft uses no other keys.
type votes struct {
	file record

	mu     sync.Mutex
	held   ballot // what is on disk
	staged uint64 // the term of a vote whose candidate is not set yet
}

type ballot struct {
	term, voteTerm uint64
	candidate      []byte // nil before the first vote
}

var _ raft.StableStore = (*votes)(nil)

func openVotes(file record) (*votes, error) {
	v := &votes{file: file}
	var err error
	if v.held, err = loadBallot(file); err != nil || v.held.term == 0 && v.held.voteTerm == 0 {
		return v, err
	}
	return v, file.store(v.held.encode()) // see record.store
}

// loadBallot returns what a file of votes holds; the zero ballot: there is no file.
func loadBallot(file record) (b ballot, err error) {
	data, err := file.load()
	if there, err := exists(err); !there {
		return b, err
	}
	if b, err = decodeBallot(data); err != nil {
		return b, fmt.Errorf("%s: %w: %w", file.path(), ErrFileDamaged, err)
	}
	return b, nil
}

func (b ballot) encode() []byte {
	data := binary.BigEndian.AppendUint64(nil, b.term)
	return append(binary.BigEndian.AppendUint64(data, b.voteTerm), b.candidate...)
}

func decodeBallot(data []byte) (b ballot, err error) {
	if len(data) < 16 {
		return b, fmt.Errorf("it holds %d bytes, want 16 or more", len(data))
	}
	b = ballot{term: binary.BigEndian.Uint64(data), voteTerm: binary.BigEndian.Uint64(data[8:])}
	if len(data) > 16 {
		b.candidate = data[16:]
	}
	if (b.voteTerm == 0) != (b.candidate == nil) {
		return ballot{}, fmt.Errorf("it holds a vote in term %d for %q", b.voteTerm, b.candidate)
	}
	return b, nil
}

// write makes b durable. It is called with mu held.
func (v *votes) write(b ballot) error {
	if err := v.file.store(b.encode()); err != nil {
		return err
	}
	v.held = b
	return nil
}

func (v *votes) SetUint64(key []byte, value uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch string(key) {
	case keyVoteTerm:
		v.staged = value
		return nil
	case keyTerm:
		if value < v.held.term {
			return fmt.Errorf("term %d comes after term %d, in which this node may have voted; restart the node", value, v.held.term)
		}
		b := v.held
		b.term = value
		return v.write(b)
	}
	return fmt.Errorf("unknown number %q", key)
}

func (v *votes) Set(key, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case string(key) != keyVoteCandidate:
		return fmt.Errorf("unknown value %q", key)
	case v.staged == 0:
		return fmt.Errorf("%s was set without %s before it", keyVoteCandidate, keyVoteTerm)
	case len(value) == 0:
		return fmt.Errorf("%s is empty", keyVoteCandidate)
	}
	b := ballot{term: v.held.term, voteTerm: v.staged, candidate: append([]byte(nil), value...)}
	v.staged = 0
	return v.write(b)
}

func (v *votes) GetUint64(key []byte) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	value := uint64(0)
	switch string(key) {
	case keyTerm:
		value = v.held.term
	case keyVoteTerm:
		value = v.held.voteTerm
	}
	if value == 0 {
		return 0, errNotFound
	}
	return value, nil
}

func (v *votes) Get(key []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if string(key) != keyVoteCandidate || v.held.candidate == nil {
		return nil, errNotFound
	}
	return append([]byte(nil), v.held.candidate...), nil
}
