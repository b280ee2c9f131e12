package archive

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/client"
)

// lineFault says what is wrong with a line that does not decode: the field and what it
// takes. The text goes behind the line's number. what is what a line has, and fields says
// which fields that takes.
func lineFault(line []byte, err error, what, fields string) string {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case bytes.HasPrefix(line, []byte("\xff\xfe")), bytes.HasPrefix(line, []byte("\xfe\xff")):
		return " is UTF-16; the file must be UTF-8"
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprintf(": %s is given twice", pointerOf(err))
	case errors.As(err, &syntax):
		return fmt.Sprintf(" is not valid JSON at byte %d: %v", syntax.ByteOffset+1, syntax.Err)
	case !errors.As(err, &semantic):
		return fmt.Sprintf(" is no %s: %v", what, err)
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf(": %s is not a field of a %s; it takes %s", pointerOf(err), what, fields)
	case semantic.JSONPointer == "":
		return fmt.Sprintf(" is not a JSON object but %s", valueAt(line, ""))
	}
	return fmt.Sprintf(": %s must be %s, not %s", pointerOf(err), takes(semantic.GoType), valueAt(line, semantic.JSONPointer))
}

// pointerOf is the field at which decoding failed, such as backoff.base.
func pointerOf(err error) string {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	var at jsontext.Pointer
	if errors.As(err, &semantic) {
		at = semantic.JSONPointer
	} else if errors.As(err, &syntax) {
		at = syntax.JSONPointer
	}
	var names []string
	for name := range at.Tokens() {
		names = append(names, fmt.Sprintf("%.100s", name))
	}
	return strings.Join(names, ".")
}

// takes is what a field of a type takes.
func takes(t reflect.Type) string {
	switch t {
	case nil:
		return "of another type"
	case reflect.TypeFor[client.Duration]():
		return "a number of seconds"
	case reflect.TypeFor[time.Time]():
		return "an RFC 3339 timestamp with a zone, such as 2030-01-31T12:00:00Z"
	case reflect.TypeFor[client.Backoff](), reflect.TypeFor[lineBackoff]():
		return "a number of seconds, a list of them or an object"
	}
	switch t.Kind() {
	case reflect.Uint32:
		return "a whole number from 0 to 4294967295"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Map:
		return "an object of strings"
	case reflect.Slice:
		return "a list of numbers of seconds"
	}
	return "an object"
}

// valueAt is the start of what a line has at a place.
func valueAt(line []byte, at jsontext.Pointer) string {
	value := jsontext.Value(bytes.TrimSpace(line))
	for name := range at.Tokens() {
		value = member(value, name)
	}
	return fmt.Sprintf("%.40s", value)
}

// member is the member of an object, or the item of a list, with a name; empty: none.
func member(of jsontext.Value, name string) jsontext.Value {
	in := jsontext.NewDecoder(bytes.NewReader(of))
	first, err := in.ReadToken()
	for i := 0; err == nil && in.PeekKind() != '}' && in.PeekKind() != ']'; i++ {
		key := strconv.Itoa(i)
		if first.Kind() == '{' {
			token, _ := in.ReadToken()
			key = token.String()
		}
		var value jsontext.Value
		if value, err = in.ReadValue(); key == name {
			return value
		}
	}
	return nil
}
