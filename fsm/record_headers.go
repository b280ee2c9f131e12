package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// The two parts of the keyspace of headers.
const (
	headerEntries = 'j' // h j name value seq -> nothing
	headerNames   = 'n' // h n name -> how many topics have settings that name it
)

const (
	// headerValueMax bounds a value in a key, in bytes; of a longer one the key has a hash.
	// So a search must compare the value with that of the job.
	headerValueMax  = 64
	headerValueHash = headerValueMax + 1 // instead of a length
	headerHashLen   = 16
)

// appendHeaderPrefix begins the keys of the jobs that have a header with a value.
func appendHeaderPrefix(b []byte, name, value string) []byte {
	b = append(b, spaceHeader, headerEntries, byte(len(name))) // job.MaxNameBytes is less
	b = append(b, name...)
	if len(value) <= headerValueMax {
		b = append(b, byte(len(value)))
		return append(b, value...)
	}
	hash := sha256.Sum256([]byte(value))
	b = append(b, headerValueHash)
	return append(b, hash[:headerHashLen]...)
}

func appendHeaderKey(b []byte, name, value string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHeaderPrefix(b, name, value), seq)
}

// seqOfHeaderKey reads the seq of an entry.
func seqOfHeaderKey(key []byte) (uint64, error) {
	if len(key) < 3+8 || key[0] != spaceHeader || key[1] != headerEntries {
		return 0, fmt.Errorf("header key %x is malformed", key)
	}
	return binary.BigEndian.Uint64(key[len(key)-8:]), nil
}

func appendHeaderNameKey(b []byte, name string) []byte {
	return append(append(b, spaceHeader, headerNames), name...)
}

// countOfHeader returns how many topics have settings that name a header.
func countOfHeader(r pebble.Reader, name string) (n uint32, err error) {
	err = readKey(r, appendHeaderNameKey(nil, name), func(value []byte) (err error) {
		n, err = decodeHeaderCount(value)
		return err
	})
	return n, err
}

func decodeHeaderCount(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, fmt.Errorf("count of a header's topics has %d bytes, want 4", len(value))
	}
	return binary.BigEndian.Uint32(value), nil
}

// headers returns the headers of a job.
func (spec *jobSpec) headers() ([]*jobpb.Header, error) {
	options, err := spec.decodeOptions()
	return options.GetHeaders(), err
}
