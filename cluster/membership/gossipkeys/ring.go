package gossipkeys

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/memberlist"
)

// ErrNotNewer is wrapped by the error for keys that a node does not adopt, because those it
// has are newer.
var ErrNotNewer = errors.New("this node has newer keys")

// Ring is the keys of this node, in its file and in use. All methods may be called from
// many goroutines at once.
type Ring struct {
	path string
	used *memberlist.Keyring
	now  atomic.Pointer[Keys]

	mu sync.Mutex // held while the keys change
}

// Open reads the file of a node.
func Open(path string) (*Ring, error) {
	k, err := Read(path)
	if err != nil {
		return nil, err
	}
	if err := removeTemporary(path); err != nil {
		return nil, fmt.Errorf("remove the unfinished copy of the gossip keys: %w", err)
	}
	r := &Ring{path: path}
	if r.used, err = memberlist.NewKeyring(secrets(k.List), k.List[0][:]); err != nil {
		return nil, err
	}
	r.now.Store(&k)
	return r, nil
}

func secrets(keys []Key) [][]byte {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return list
}

// Keys returns the keys in use.
func (r *Ring) Keys() Keys { return *r.now.Load() }

// Memberlist returns the ring as gossip uses it. It follows Adopt.
func (r *Ring) Memberlist() *memberlist.Keyring { return r.used }

// Adopt replaces the keys by newer ones, first in the file. Keys that are in use already are
// no error.
func (r *Ring) Adopt(next Keys) error {
	if err := next.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Keys()
	switch {
	case next.Equal(now):
		return nil
	case !Newer(next.Version(), now.Version()):
		return fmt.Errorf("%w: revision %d of term %d, not revision %d of term %d", ErrNotNewer, now.Revision, now.Term, next.Revision, next.Term)
	}
	next.List = slices.Clone(next.List)
	if err := replace(r.path, next); err != nil {
		return fmt.Errorf("write the gossip keys (--gossip-keys-file): %w", err)
	}
	if err := r.use(next.List); err != nil {
		return err
	}
	r.now.Store(&next)
	return nil
}

// use makes memberlist use these keys, in this order, and no others.
//
// memberlist removes a key by moving those behind it, in a list that other goroutines may
// be reading. So keys are only removed from the end.
func (r *Ring) use(next []Key) error {
	for _, k := range next {
		if err := r.used.AddKey(k[:]); err != nil { // at the end
			return err
		}
	}
	// One step is enough for the changes that a leader makes. Any other order takes more,
	// and for a moment other keys encrypt.
	for _, moved := range [][]Key{nil, next[:1], next} {
		for _, k := range slices.Backward(moved) {
			if err := r.used.UseKey(k[:]); err != nil { // to the front
				return err
			}
		}
		if r.begins(next) {
			break
		}
	}
	for range len(r.used.GetKeys()) - len(next) {
		keys := r.used.GetKeys()
		if err := r.used.RemoveKey(keys[len(keys)-1]); err != nil {
			return err
		}
	}
	return nil
}

// begins reports whether the keys that memberlist uses begin with these.
func (r *Ring) begins(with []Key) bool {
	return slices.EqualFunc(r.used.GetKeys()[:len(with)], with, func(used []byte, k Key) bool { return bytes.Equal(used, k[:]) })
}
