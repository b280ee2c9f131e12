package api

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
)

// itemLimit is the most items that a list may have. It is a part of the list's type, so
// that none can be decoded without one.
type itemLimit interface{ most() int }

type (
	batchLimit    struct{}
	topicsLimit   struct{}
	addressLimit  struct{}
	statesLimit   struct{}
	backoffsLimit struct{}
	indexLimit    struct{}
)

func (batchLimit) most() int    { return job.MaxBatch }
func (topicsLimit) most() int   { return job.MaxReserveTopics }
func (addressLimit) most() int  { return maxJoinAddresses }
func (statesLimit) most() int   { return len(statesByName) }
func (backoffsLimit) most() int { return job.MaxBackoffDelays }
func (indexLimit) most() int    { return job.MaxIndexHeaders }

// list is an optional list field. null counts as missing. Decoding stops at the item past
// the limit: three bytes of JSON can become an item of hundreds.
type list[T any, L itemLimit] struct {
	set bool
	v   []T
}

func (l list[T, L]) atMost() int {
	var limit L
	return limit.most()
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *list[T, L]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return json.UnmarshalDecode(dec, &l.v) // which says that it is no list
	}
	l.set = true
	return eachIn(dec, ']', l.atMost(), func() error {
		l.v = append(l.v, *new(T))
		return json.UnmarshalDecode(dec, &l.v[len(l.v)-1])
	})
}

// eachIn reads a list or an object to its end and calls read at each item. There may be
// at most limit items.
func eachIn(dec *jsontext.Decoder, end jsontext.Kind, limit int, read func() error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	in := dec.StackPointer()
	for n := 0; dec.PeekKind() != end; n++ {
		if n == limit {
			return &pastLimit{job.CodeInvalid, in, limit, "items"}
		}
		if err := read(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// pastLimit ends the decoding of a field that has too many items.
type pastLimit struct {
	code  job.Code
	in    jsontext.Pointer
	limit int
	unit  string
}

func (e *pastLimit) Error() string {
	return fmt.Sprintf("has more than %d %s, which is the limit", e.limit, e.unit)
}
