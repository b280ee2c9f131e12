package secretkeys

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"tarry/internal/keyfile"
)

// ErrNoKey is returned for a secret that is sealed with a key that the ring does not have.
var ErrNoKey = errors.New("this node does not have that key (--secrets-key-file)")

// ErrDamaged is returned for a secret that its key does not open.
var ErrDamaged = errors.New("it is damaged, or was sealed for another topic")

// Ring is the keys of a node. Its methods may be called from many goroutines. A nil Ring has no
// keys: it opens nothing.
type Ring struct {
	path string
	keys atomic.Pointer[loaded]
}

type loaded struct {
	data    []byte // of the file
	sealers []*sealer
}

// Open reads the keys of a file.
func Open(path string) (*Ring, error) {
	r := &Ring{path: path}
	if _, err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// Reload reads the file again. If it has no good keys, those before remain. It is called from one
// goroutine at a time.
func (r *Ring) Reload() (changed bool, err error) {
	data, err := keyfile.Read(r.path, maxFile)
	if err != nil {
		return false, err
	}
	if now := r.keys.Load(); now != nil && bytes.Equal(now.data, data) {
		return false, nil
	}
	keys, err := Parse(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", r.path, err)
	}
	l := &loaded{data: data}
	for _, k := range keys {
		l.sealers = append(l.sealers, newSealer(k))
	}
	r.keys.Store(l)
	return true, nil
}

func (r *Ring) sealers() []*sealer {
	if r == nil {
		return nil
	}
	return r.keys.Load().sealers
}

// IDs lists the keys, the one that seals first.
func (r *Ring) IDs() (ids []string) {
	for _, s := range r.sealers() {
		ids = append(ids, hex.EncodeToString(s.id[:]))
	}
	return ids
}

// Seal seals the secret of a topic with the first key. The ring must not be nil.
func (r *Ring) Seal(topic, secret string) []byte { return r.sealers()[0].seal(topic, secret) }

// KeyOf returns the id of the key with which something is sealed; empty: it is not sealed.
func KeyOf(sealed []byte) string {
	if len(sealed) < Overhead {
		return ""
	}
	return hex.EncodeToString(sealed[:idBytes])
}

// Open returns the secret that was sealed for a topic. Its error names the key.
func (r *Ring) Open(topic string, sealed []byte) (string, error) {
	id := KeyOf(sealed)
	if id == "" {
		return "", ErrDamaged
	}
	all := r.sealers()
	at := slices.IndexFunc(all, func(s *sealer) bool { return bytes.Equal(s.id[:], sealed[:idBytes]) })
	if at < 0 {
		return "", fmt.Errorf("it is sealed with key %s: %w", id, ErrNoKey)
	}
	secret, err := all[at].open(topic, sealed)
	if err != nil {
		return "", fmt.Errorf("it is sealed with key %s: %w", id, ErrDamaged)
	}
	return secret, nil
}
