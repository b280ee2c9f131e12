package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// The header index. The settings of a topic may name headers (index_headers). Each of its
// jobs, retained ones included, then has an entry (name, value, seq) for each of these
// headers for which it has a value. So the jobs of one value are found in all topics, in
// the order of their adds. Entries have no topic, so a move between topics that index the
// same headers changes none.
//
// When the setting of a topic with jobs changes, a walk (fsm/headers.go) adds and
// removes the entries of existing jobs, a bounded number with each Advance.
//
// Invariant: a job with a value for a header has the entry if and only if its topic indexes
// the header. During a walk this does not hold for the jobs that it has yet to process and
// the headers that it changes (HeaderWalk.unsure).
//
// Entries are removed by SingleDelete if they are known to exist, else by Delete.

// Indexes reports whether the settings of a topic, which may be nil, name a header.
func Indexes(s *jobpb.TopicSettings, name string) bool {
	return slices.Contains(s.GetIndexHeaders(), name)
}

// SameIndex reports whether settings name the same headers.
func SameIndex(a, b *jobpb.TopicSettings) bool {
	x, y := a.GetIndexHeaders(), b.GetIndexHeaders()
	return len(x) == len(y) && !slices.ContainsFunc(x, func(name string) bool { return !slices.Contains(y, name) })
}

// The two parts of the keyspace of headers.
const (
	HeaderEntries = 'j' // h j name value seq -> nothing
	HeaderNames   = 'n' // h n name -> how many topics have settings that name it
)

const (
	// HeaderValueMax bounds a value in a key, in bytes; of a longer one the key has a hash.
	// So a search must compare the value with that of the job.
	HeaderValueMax  = 64
	headerValueHash = HeaderValueMax + 1 // instead of a length
	HeaderHashLen   = 16
)

// AppendHeaderPrefix begins the keys of the jobs that have a header with a value.
func AppendHeaderPrefix(b []byte, name, value string) []byte {
	b = append(b, SpaceHeader, HeaderEntries, byte(len(name))) // job.MaxNameBytes is less
	b = append(b, name...)
	if len(value) <= HeaderValueMax {
		b = append(b, byte(len(value)))
		return append(b, value...)
	}
	hash := sha256.Sum256([]byte(value))
	b = append(b, headerValueHash)
	return append(b, hash[:HeaderHashLen]...)
}

func AppendHeaderKey(b []byte, name, value string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendHeaderPrefix(b, name, value), seq)
}

// SeqOfHeaderKey reads the seq of an entry.
func SeqOfHeaderKey(key []byte) (uint64, error) {
	if len(key) < 3+8 || key[0] != SpaceHeader || key[1] != HeaderEntries {
		return 0, fmt.Errorf("header key %x is malformed", key)
	}
	return binary.BigEndian.Uint64(key[len(key)-8:]), nil
}

func AppendHeaderNameKey(b []byte, name string) []byte {
	return append(append(b, SpaceHeader, HeaderNames), name...)
}

// CountOfHeader returns how many topics have settings that name a header.
func CountOfHeader(r pebble.Reader, name string) (n uint32, err error) {
	err = ReadKey(r, AppendHeaderNameKey(nil, name), func(value []byte) (err error) {
		n, err = DecodeHeaderCount(value)
		return err
	})
	return n, err
}

func DecodeHeaderCount(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, fmt.Errorf("count of a header's topics has %d bytes, want 4", len(value))
	}
	return binary.BigEndian.Uint32(value), nil
}

// Headers returns the headers of a job.
func (spec *Spec) Headers() ([]*jobpb.Header, error) {
	options, err := spec.DecodeOptions()
	return options.GetHeaders(), err
}
