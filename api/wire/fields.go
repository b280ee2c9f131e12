package wire

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// BackoffRequest is a field that sets how long a job waits after a failed attempt: a number of
// seconds, a list of them, or an object.
type BackoffRequest struct {
	Set bool
	BackoffObject
}

type BackoffObject struct {
	Delays List[float64, BackoffsLimit] `json:"delays"`
	Base   Opt[float64]                 `json:"base"`
	Factor Opt[float64]                 `json:"factor"`
	Max    Opt[float64]                 `json:"max" help:"The longest wait, in seconds; 3600 unless given." limit:"delay"`
	Jitter Opt[float64]                 `json:"jitter"`
}

const (
	defaultBackoffFactor = 2
	defaultBackoffMax    = 3600 // seconds
)

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (b *BackoffRequest) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
		b.Set, b.Delays.Set, b.Delays.V = true, true, make([]float64, 1)
		return json.UnmarshalDecode(dec, &b.Delays.V[0])
	case '[':
		b.Set = true
		return json.UnmarshalDecode(dec, &b.Delays)
	}
	b.Set = true
	return json.UnmarshalDecode(dec, &b.BackoffObject)
}

// none reports whether the backoff is an empty list.
func (b *BackoffRequest) none() bool {
	return b.Set && b.Delays.Set && len(b.Delays.V) == 0 && !b.Base.Set && !b.Factor.Set && !b.Max.Set && !b.Jitter.Set
}

// Proto returns the backoff, which the caller must check; nil for none.
func (b *BackoffRequest) Proto() (made *jobpb.Backoff, err error) {
	if !b.Set {
		return nil, nil
	}
	made = &jobpb.Backoff{}
	for _, seconds := range b.Delays.V {
		made.DelaysMs = append(made.DelaysMs, job.MillisOf(seconds))
	}
	if made.JitterPercent, err = portion("backoff.jitter", b.Jitter.V, 100); err != nil {
		return nil, err
	}
	if b.Delays.Set && !b.Base.Set && !b.Factor.Set && !b.Max.Set {
		return made, nil
	}
	made.BaseMs = job.MillisOf(b.Base.V)
	made.MaxMs = job.MillisOf(b.Max.Or(max(defaultBackoffMax, b.Base.V)))
	made.FactorPermille, err = portion("backoff.factor", b.Factor.Or(defaultBackoffFactor), 1000)
	return made, err
}

// Body is a job's body in a request: any JSON value. A string is stored as its unescaped
// bytes, any other value as its JSON text, byte for byte. The bytes are a copy, because an
// operation may outlive its request.
type Body struct {
	Set   bool
	Kind  jobpb.BodyKind
	Bytes []byte
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (b *Body) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if rest := dec.UnreadBuffer(); len(rest) > job.HardMaxBodyBytes && longerThan(rest, job.HardMaxBodyBytes) {
		dec.PeekKind() // so that the error's pointer names this field
		return &pastLimit{job.CodeTooLarge, dec.StackPointer(), job.HardMaxBodyBytes, "bytes"}
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	b.Set = true
	if raw.Kind() != '"' {
		b.Kind, b.Bytes = jobpb.BodyKind_BODY_JSON, bytes.Clone(raw)
		return nil
	}
	b.Kind = jobpb.BodyKind_BODY_BYTES
	b.Bytes, err = jsontext.AppendUnquote(make([]byte, 0, len(raw)-2), raw)
	return err
}

// maxBodyNesting is how deep lists and objects in a body may be nested. Consumers decode
// whole replies: PHP's decoder takes 512 levels and Python's 1000, so one deeper body would
// spoil all jobs of a reply. The rest is for the reply around the body.
const maxBodyNesting = 500

// longerThan reports whether the object or list at the start of text has more than limit
// bytes. Such a value must not reach the decoder, which keeps all names of an object and
// uses sixteen times the size of their text for that.
func longerThan(text []byte, limit int) bool {
	start := bytes.IndexAny(text, `{["`)
	if start < 0 || text[start] == '"' {
		return false
	}
	_, longer := nesting(text[start:], limit)
	return longer
}

// nesting returns how deep the lists and objects of the first value in text are nested,
// and whether it has more than limit bytes. Then it was not read to its end.
func nesting(text []byte, limit int) (deepest int, longer bool) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		if i == limit {
			return deepest, true
		}
		switch c := text[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return deepest, false
			}
		}
	}
	return deepest, false
}

// PickBody returns the body from one of the two fields and checks its size and nesting. There is no
// default, so that a producer that forgets the body gets an error.
func PickBody(b Body, encoded Opt[string], limit int) (Body, error) {
	switch {
	case b.Set && encoded.Set:
		return Body{}, job.Invalid("body", "and body_base64 are both given; give one")
	case !b.Set && !encoded.Set:
		return Body{}, job.Invalid("body", "is missing; give body (any JSON value, \"\" for none) or body_base64")
	}
	field := "body"
	if encoded.Set {
		field = "body_base64"
		raw, err := base64.StdEncoding.Strict().DecodeString(encoded.V)
		if err != nil {
			return Body{}, job.Invalid(field, "is not padded standard base64")
		}
		b = Body{Set: true, Kind: jobpb.BodyKind_BODY_BYTES, Bytes: raw}
	}
	if len(b.Bytes) > limit {
		return Body{}, job.FieldErrorf(job.CodeTooLarge, field, "has %d bytes; the limit is %d", len(b.Bytes), limit)
	}
	if b.Kind == jobpb.BodyKind_BODY_JSON {
		if levels, _ := nesting(b.Bytes, limit); levels > maxBodyNesting {
			return Body{}, job.Invalid(field, "has lists and objects nested %d levels deep; the limit is %d", levels, maxBodyNesting)
		}
	}
	return b, nil
}

// Headers is an optional field with the headers of a job. null counts as missing.
type Headers struct {
	Set bool
	V   map[string]string
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (h *Headers) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return json.UnmarshalDecode(dec, &h.V) // returns the error that it is not an object
	}
	h.Set, h.V = true, map[string]string{}
	return eachIn(dec, '}', job.MaxHeaders, func() error {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		var name, value = token.String(), ""
		err = json.UnmarshalDecode(dec, &value)
		h.V[name] = value
		return err
	})
}

// OptionsOf returns the options that few jobs have; nil when there are none.
func OptionsOf(b *BackoffRequest, h Headers) (*jobpb.JobOptions, error) {
	made, err := b.Proto()
	if err != nil {
		return nil, err
	}
	e := &jobpb.JobOptions{Backoff: made}
	for _, name := range slices.Sorted(maps.Keys(h.V)) {
		e.Headers = append(e.Headers, &jobpb.Header{Name: name, Value: h.V[name]})
	}
	if e.Backoff == nil && e.Headers == nil {
		return nil, nil
	}
	return e, nil
}

// Timestamp is an optional field with a time: RFC 3339 text, or a number of milliseconds
// since 1970. null counts as missing.
type Timestamp struct {
	Set    bool
	Number bool
	Text   string // as the client sent it, without the quotes
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (i *Timestamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
		raw, err := dec.ReadValue()
		i.Set, i.Number, i.Text = true, true, string(raw)
		return err
	}
	i.Set = true
	return json.UnmarshalDecode(dec, (*timestampText)(&i.Text))
}

// timestampText is a type, so that an error of the decoder can name both forms.
type timestampText string

// LeastNumber is the smallest number of milliseconds that is accepted. As a number of
// seconds, which other systems use, it would be in the year 5138.
const LeastNumber = 100_000_000_000

// Millis returns the time in milliseconds since 1970. It rounds up, so that no job is early.
// A time in the past is allowed and means now.
func (i Timestamp) Millis(field string, now time.Time) (int64, error) {
	var ms int64
	if i.Number {
		var err error
		if ms, err = strconv.ParseInt(i.Text, 10, 64); err != nil {
			return 0, job.Invalid(field, "is %.60s; a number must be a whole one, of milliseconds since 1970", i.Text)
		}
		if ms < LeastNumber {
			return 0, job.Invalid(field, "is %d; a number is of milliseconds since 1970 and at least %d, in 1973: is this one of seconds?", ms, LeastNumber)
		}
	} else {
		t, err := time.Parse(time.RFC3339, i.Text)
		if err != nil {
			return 0, job.Invalid(field, "is %.60q; it takes an RFC 3339 timestamp with a zone, such as 2030-01-31T12:00:00.250Z, or a number of milliseconds since 1970", i.Text)
		}
		ms = t.UnixMilli()
		if t.Nanosecond()%int(time.Millisecond) != 0 {
			ms++
		}
	}
	// 0 would mean that there is no timestamp.
	return max(ms, 1), job.Newest().CheckDue(field, ms, now.UnixMilli())
}
