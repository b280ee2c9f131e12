// Package wire describes each call of the HTTP API once: a row (calls.go) with its method and path,
// who may make it, and the types of its query, its request and its reply. The tags of their fields say
// what they mean and may have (describe.go). From this come the router, OpenAPI, the reference page
// and the errors about fields that a call does not take. Requests are decoded here, and what can be
// checked of one by itself is checked.
//
// The replies of the busiest calls, and those with rows of job.Fields and job.Settings, are written
// by hand in package api; tests hold them against their types.
package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
)

// Opt is an optional field. null counts as missing.
type Opt[T any] struct {
	Set bool
	V   T
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	o.Set = true
	return json.UnmarshalDecode(dec, &o.V)
}

// Or returns the value, or the given default for a missing one.
func (o Opt[T]) Or(missing T) T {
	if o.Set {
		return o.V
	}
	return missing
}

// strict is why this is not encoding/json, which accepts duplicate fields, names in the
// wrong case and text after the value, and does not report where an error is. This
// package is stricter and, for an add of 200 bytes, a third faster with a third of the
// allocations (BenchmarkDecode).
var strict = json.RejectUnknownMembers(true)

func Decode(data []byte, v any, options ...json.Options) error {
	switch firstByte(data) {
	case '{':
	case 0:
		return job.Errorf(job.CodeBadJSON, "the request is empty; it takes a JSON object")
	case '[', '"', 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return job.Errorf(job.CodeBadJSON, "the request is not a JSON object, which must start with {")
	default:
		return job.Errorf(job.CodeBadJSON, "the request is not JSON; it takes a JSON object")
	}
	if err := json.Unmarshal(data, v, append(options, strict)...); err != nil {
		return decodeError(err)
	}
	return nil
}

// Uint32Of narrows a number to what an operation can hold.
func Uint32Of(field string, v int64) (uint32, error) {
	return uint32(v), job.Within(field, v, 0, math.MaxUint32)
}

// Within is uint32Of for a number between 1 and a limit.
func Within(field string, v, limit int64) (uint32, error) {
	return uint32(v), job.Within(field, v, 1, limit)
}

// portion reads a number of which an operation holds so many parts.
func portion(field string, v, parts float64) (uint32, error) {
	n := math.Round(v * parts)
	if !(n >= 0 && n <= math.MaxUint32) {
		return 0, job.Invalid(field, "is %v; it must be between 0 and %.0f", v, math.Floor(math.MaxUint32/parts))
	}
	return uint32(n), nil
}

func firstByte(data []byte) byte {
	for _, c := range data {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// decodeError turns an error of the decoder into one for clients.
func decodeError(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var long *pastLimit
	switch {
	case errors.As(err, &long):
		return job.FieldErrorf(long.code, fieldName(long.in), "%w", long)
	case errors.As(err, &syntax):
		return syntaxError(syntax)
	case errors.As(err, &semantic):
		return semanticError(semantic)
	default:
		return job.Errorf(job.CodeBadJSON, "the request is not the JSON of this call")
	}
}

func syntaxError(err *jsontext.SyntacticError) error {
	field := fieldName(err.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badField(field, "is given twice")
	case strings.Count(string(err.JSONPointer), "/") >= maxDepth-1:
		return badField(field, "is nested deeper than %d levels, which is the limit", maxDepth)
	case field == "":
		return job.Errorf(job.CodeBadJSON, "the request is not valid JSON at byte %d: %v", err.ByteOffset, err.Err)
	}
	return job.Errorf(job.CodeBadJSON, "the request is not valid JSON at byte %d in %s: %v", err.ByteOffset, field, err.Err).In(field)
}

// maxDepth is how deep lists and objects may be nested: the decoder's limit.
const maxDepth = 10_000

func semanticError(err *json.SemanticError) error {
	field := fieldName(err.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badField(field, "is given twice")
	case field == "":
		return badField(field, "must be %s, not %s", wanted(err.GoType), given(err))
	case errors.Is(err, json.ErrUnknownName):
		return job.Invalid(field, "is not a field of this call")
	case err.JSONKind == '0' && err.GoType != nil && err.GoType.Kind() == reflect.Float64:
		return job.Invalid(field, "is %.40s, which is out of range", err.JSONValue)
	}
	return job.Invalid(field, "must be %s, not %s", wanted(err.GoType), given(err))
}

// badField is the error of text that is not the JSON of any call, in a field, or in the
// whole request when field is empty.
func badField(field, format string, args ...any) error {
	if field == "" {
		return job.Errorf(job.CodeBadJSON, "the request "+format, args...)
	}
	return job.FieldErrorf(job.CodeBadJSON, field, format, args...)
}

// fieldName turns a JSON pointer into what a client wrote: jobs[3].delay; it is empty for
// the whole request. It cuts off deep paths.
func fieldName(p jsontext.Pointer) string {
	const most = 200
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len() > most {
			b.WriteString("...")
			break
		}
		switch _, err := strconv.Atoi(token); {
		case err == nil && b.Len() > 0:
			fmt.Fprintf(&b, "[%s]", token)
		case b.Len() > 0:
			fmt.Fprintf(&b, ".%.100s", token)
		default:
			fmt.Fprintf(&b, "%.100s", token)
		}
	}
	return b.String()
}

func wanted(t reflect.Type) string {
	switch t {
	case nil:
		return "of another type"
	case reflect.TypeFor[timestampText]():
		return "an RFC 3339 timestamp or a number of milliseconds since 1970"
	case reflect.TypeFor[BackoffObject]():
		return "a number of seconds, a list of them or an object"
	}
	switch t.Kind() {
	case reflect.Float64:
		return "a number"
	case reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

func given(e *json.SemanticError) string {
	switch e.JSONKind {
	case 'n':
		return "null"
	case 'f', 't':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		if len(e.JSONValue) > 0 {
			return fmt.Sprintf("%.40s", e.JSONValue)
		}
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "what was sent"
	}
}

// ItemLimit is the most items that a list may have. It is a part of the list's type, so
// that none can be decoded without one.
type ItemLimit interface{ most() int }

type (
	BatchLimit    struct{}
	TopicsLimit   struct{}
	AddressLimit  struct{}
	StatesLimit   struct{}
	BackoffsLimit struct{}
	IndexLimit    struct{}
)

func (BatchLimit) most() int { return job.MaxBatch }

func (TopicsLimit) most() int { return job.MaxReserveTopics }

func (AddressLimit) most() int { return MaxJoinAddresses }

func (StatesLimit) most() int { return len(StatesByName) }

func (BackoffsLimit) most() int { return job.MaxBackoffDelays }

func (IndexLimit) most() int { return job.MaxIndexHeaders }

// List is an optional list field. null counts as missing. Decoding stops at the item past
// the limit: three bytes of JSON can become an item of hundreds.
type List[T any, L ItemLimit] struct {
	Set bool
	V   []T
}

func (l List[T, L]) AtMost() int {
	var limit L
	return limit.most()
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *List[T, L]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return json.UnmarshalDecode(dec, &l.V) // which says that it is no list
	}
	l.Set = true
	return eachIn(dec, ']', l.AtMost(), func() error {
		l.V = append(l.V, *new(T))
		return json.UnmarshalDecode(dec, &l.V[len(l.V)-1])
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
