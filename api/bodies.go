package api

import (
	"bytes"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// body is a job's body in a request: any JSON value. A string is stored as its unescaped
// bytes, any other value as its JSON text, byte for byte. The bytes are a copy, because an
// operation may outlive its request.
type body struct {
	set  bool
	kind jobpb.BodyKind
	b    []byte
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (b *body) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if rest := dec.UnreadBuffer(); len(rest) > job.HardMaxBodyBytes && longerThan(rest, job.HardMaxBodyBytes) {
		dec.PeekKind() // so that the error's pointer names this field
		return &pastLimit{job.CodeTooLarge, dec.StackPointer(), job.HardMaxBodyBytes, "bytes"}
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	b.set = true
	if raw.Kind() != '"' {
		b.kind, b.b = jobpb.BodyKind_BODY_JSON, bytes.Clone(raw)
		return nil
	}
	b.kind = jobpb.BodyKind_BODY_BYTES
	b.b, err = jsontext.AppendUnquote(make([]byte, 0, len(raw)-2), raw)
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

// pickBody returns the body from one of the two fields and checks its size and nesting. There is no
// default, so that a producer that forgets the body gets an error.
func pickBody(b body, encoded opt[string], limit int) (body, error) {
	switch {
	case b.set && encoded.set:
		return body{}, job.Invalid("body", "and body_base64 are both given; give one")
	case !b.set && !encoded.set:
		return body{}, job.Invalid("body", "is missing; give body (any JSON value, \"\" for none) or body_base64")
	}
	field := "body"
	if encoded.set {
		field = "body_base64"
		raw, err := base64.StdEncoding.Strict().DecodeString(encoded.v)
		if err != nil {
			return body{}, job.Invalid(field, "is not padded standard base64")
		}
		b = body{set: true, kind: jobpb.BodyKind_BODY_BYTES, b: raw}
	}
	if len(b.b) > limit {
		return body{}, job.FieldErrorf(job.CodeTooLarge, field, "has %d bytes; the limit is %d", len(b.b), limit)
	}
	if b.kind == jobpb.BodyKind_BODY_JSON {
		if levels, _ := nesting(b.b, limit); levels > maxBodyNesting {
			return body{}, job.Invalid(field, "has lists and objects nested %d levels deep; the limit is %d", levels, maxBodyNesting)
		}
	}
	return b, nil
}
