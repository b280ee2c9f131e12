package client

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is the body of a job in its JSON form. Create one with Text, Bytes or JSON. The zero
// Body is no body, which the server rejects.
type Body struct {
	// Value is any JSON value. A string is the body's unescaped bytes.
	Value json.RawMessage `json:"body,omitzero"`
	// Base64 is set instead when the bytes are not UTF-8.
	Base64 string `json:"body_base64,omitzero"`
}

// Text returns a body with the bytes of s.
func Text(s string) Body { return Bytes([]byte(s)) }

// Bytes returns a body with the bytes b.
func Bytes(b []byte) Body {
	if !utf8.Valid(b) {
		return Body{Base64: base64.StdEncoding.EncodeToString(b)}
	}
	// Valid UTF-8 always has a quoted form.
	quoted, _ := jsontext.AppendQuote(nil, b)
	return Body{Value: quoted}
}

// JSON returns a body that is the JSON value with this text. White space between its tokens
// is removed when it is sent.
func JSON(text []byte) Body { return Body{Value: text} }

// IsJSON reports whether the body is a JSON value other than a string.
func (b Body) IsJSON() bool { return len(b.Value) > 0 && b.Value[0] != '"' }

// Bytes returns the bytes of the body; for a JSON value its text.
func (b Body) Bytes() []byte {
	if b.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(b.Base64)
		if err != nil {
			return nil
		}
		return raw
	}
	if len(b.Value) == 0 || b.Value[0] != '"' {
		return b.Value
	}
	raw, err := jsontext.AppendUnquote(nil, b.Value)
	if err != nil {
		return nil
	}
	return raw
}
