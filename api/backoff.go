package api

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// backoff is a field that sets how long a job waits after a failed attempt: a number of
// seconds, a list of them, or an object.
type backoff struct {
	set bool
	backoffObject
}

type backoffObject struct {
	Delays list[float64, backoffsLimit] `json:"delays"`
	Base   opt[float64]                 `json:"base"`
	Factor opt[float64]                 `json:"factor"`
	Max    opt[float64]                 `json:"max"`
	Jitter opt[float64]                 `json:"jitter"`
}

const (
	defaultBackoffFactor = 2
	defaultBackoffMax    = 3600 // seconds
)

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (b *backoff) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
		b.set, b.Delays.set, b.Delays.v = true, true, make([]float64, 1)
		return json.UnmarshalDecode(dec, &b.Delays.v[0])
	case '[':
		b.set = true
		return json.UnmarshalDecode(dec, &b.Delays)
	}
	b.set = true
	return json.UnmarshalDecode(dec, &b.backoffObject)
}

// none reports whether the backoff is an empty list.
func (b *backoff) none() bool {
	return b.set && b.Delays.set && len(b.Delays.v) == 0 && !b.Base.set && !b.Factor.set && !b.Max.set && !b.Jitter.set
}

// proto returns the backoff, which the caller must check; nil for none.
func (b *backoff) proto() (made *jobpb.Backoff, err error) {
	if !b.set {
		return nil, nil
	}
	made = &jobpb.Backoff{}
	for _, seconds := range b.Delays.v {
		made.DelaysMs = append(made.DelaysMs, job.MillisOf(seconds))
	}
	if made.JitterPercent, err = portion("backoff.jitter", b.Jitter.v, 100); err != nil {
		return nil, err
	}
	if b.Delays.set && !b.Base.set && !b.Factor.set && !b.Max.set {
		return made, nil
	}
	made.BaseMs = job.MillisOf(b.Base.v)
	made.MaxMs = job.MillisOf(b.Max.or(max(defaultBackoffMax, b.Base.v)))
	made.FactorPermille, err = portion("backoff.factor", b.Factor.or(defaultBackoffFactor), 1000)
	return made, err
}

// backoff adds a backoff to the response, if there is one, as an object.
func (w *writer) backoff(b *jobpb.Backoff) {
	if b == nil {
		return
	}
	w.beginNamedObject("backoff")
	if len(b.DelaysMs) > 0 {
		w.beginList("delays")
		for _, ms := range b.DelaysMs {
			w.comma()
			w.plainSeconds(ms)
		}
		w.endList()
	} else {
		w.seconds("base", b.BaseMs)
		w.float("factor", float64(b.FactorPermille)/1000)
		w.seconds("max", b.MaxMs)
	}
	if b.JitterPercent > 0 {
		w.float("jitter", float64(b.JitterPercent)/100)
	}
	w.b = append(w.b, '}')
}
