package record

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// lookups is a reader for many single keys of a few keyspaces: it moves an iterator for each of
// them, instead of making one for each key as Get of a snapshot does. Keys that grow cost least,
// because the iterator then seeks from where it is. It is for one goroutine. A value is valid
// until the next Get from its keyspace.
type lookups struct {
	pebble.Reader
	at map[byte]*pebble.Iterator // by keyspace
}

// NewLookups returns a reader that looks up the keys of these keyspaces by iterators, and reads
// everything else as r does. It must be closed before r is.
func NewLookups(r pebble.Reader, spaces ...byte) (*lookups, error) {
	l := &lookups{r, make(map[byte]*pebble.Iterator, len(spaces))}
	for _, s := range spaces {
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{s}, UpperBound: []byte{s + 1}})
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.at[s] = it
	}
	return l, nil
}

// Get implements pebble.Reader.
func (l *lookups) Get(key []byte) ([]byte, io.Closer, error) {
	it := l.at[key[0]]
	if it == nil {
		return l.Reader.Get(key)
	}
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return nil, nil, err
		}
		return nil, nil, pebble.ErrNotFound
	}
	value, err := it.ValueAndErr()
	return value, io.NopCloser(nil), err
}

func (l *lookups) Close() (err error) {
	for _, it := range l.at {
		err = errors.Join(err, it.Close())
	}
	return err
}
