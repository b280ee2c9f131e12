package api

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// headers is an optional field with the headers of a job. null counts as missing.
type headers struct {
	set bool
	v   map[string]string
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (h *headers) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return json.UnmarshalDecode(dec, &h.v) // returns the error that it is not an object
	}
	h.set, h.v = true, map[string]string{}
	return eachIn(dec, '}', job.MaxHeaders, func() error {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		var name, value = token.String(), ""
		err = json.UnmarshalDecode(dec, &value)
		h.v[name] = value
		return err
	})
}

// optionsOf returns the options that few jobs have; nil when there are none.
func optionsOf(b *backoff, h headers) (*jobpb.JobOptions, error) {
	made, err := b.proto()
	if err != nil {
		return nil, err
	}
	e := &jobpb.JobOptions{Backoff: made}
	for _, name := range slices.Sorted(maps.Keys(h.v)) {
		e.Headers = append(e.Headers, &jobpb.Header{Name: name, Value: h.v[name]})
	}
	if e.Backoff == nil && e.Headers == nil {
		return nil, nil
	}
	return e, nil
}

// headers adds a job's headers, if it has any.
func (w *writer) headers(e *jobpb.JobOptions) {
	if len(e.GetHeaders()) == 0 {
		return
	}
	w.beginNamedObject("headers")
	for _, h := range e.GetHeaders() {
		w.comma()
		w.quote(h.Name)
		w.b = append(w.b, ':')
		w.quote(h.Value)
	}
	w.b = append(w.b, '}')
}
