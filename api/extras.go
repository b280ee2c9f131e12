package api

import (
	"maps"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// backoff is a member that says how long a job waits after an attempt that
// failed: a number of seconds, a list of them, or an object.
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

// none says that the backoff is an empty list.
func (b *backoff) none() bool {
	return b.set && b.Delays.set && len(b.Delays.v) == 0 && !b.Base.set && !b.Factor.set && !b.Max.set && !b.Jitter.set
}

// proto checks the backoff; nil is none.
func (b *backoff) proto() (*jobpb.Backoff, error) {
	if !b.set {
		return nil, nil
	}
	made := &jobpb.Backoff{}
	for _, seconds := range b.Delays.v {
		ms, err := job.Millis("backoff.delays", seconds, job.MaxDelay)
		if err != nil {
			return nil, err
		}
		made.DelaysMs = append(made.DelaysMs, ms)
	}
	if !(b.Jitter.v >= 0 && b.Jitter.v <= 1) {
		return nil, job.Invalid("backoff.jitter", "is %v; it must be between 0 and 1", b.Jitter.v)
	}
	made.JitterPercent = uint32(math.Round(b.Jitter.v * 100))
	if !b.Delays.set || b.Base.set || b.Factor.set || b.Max.set {
		if err := b.growing(made); err != nil {
			return nil, err
		}
	}
	return made, job.CheckBackoff(made)
}

// growing fills in the waits that grow by a factor.
func (b *backoff) growing(made *jobpb.Backoff) (err error) {
	if made.BaseMs, err = job.Millis("backoff.base", b.Base.v, job.MaxDelay); err != nil {
		return err
	}
	factor := b.Factor.or(defaultBackoffFactor)
	if !(factor >= 1 && factor <= job.MaxBackoffFactor/1000) {
		return job.Invalid("backoff.factor", "is %v; it must be between 1 and %d", factor, job.MaxBackoffFactor/1000)
	}
	made.FactorPermille = uint32(math.Round(factor * 1000))
	made.MaxMs, err = job.Millis("backoff.max", b.Max.or(max(defaultBackoffMax, b.Base.v)), job.MaxDelay)
	return err
}

// extrasOf checks what few jobs have; nil when there is nothing.
func extrasOf(b *backoff, h headers) (*jobpb.Extras, error) {
	made, err := b.proto()
	if err != nil {
		return nil, err
	}
	e := &jobpb.Extras{Backoff: made}
	for _, name := range slices.Sorted(maps.Keys(h.v)) {
		e.Headers = append(e.Headers, &jobpb.Header{Name: name, Value: h.v[name]})
	}
	if e.Backoff == nil && e.Headers == nil {
		return nil, nil
	}
	return e, job.CheckExtras(e)
}

// headers adds a job's headers, if it has any.
func (w *writer) headers(e *jobpb.Extras) {
	if len(e.GetHeaders()) == 0 {
		return
	}
	w.openObject("headers")
	for _, h := range e.GetHeaders() {
		w.comma()
		w.quote(h.Name)
		w.b = append(w.b, ':')
		w.quote(h.Value)
	}
	w.b = append(w.b, '}')
}

// backoff adds a backoff, if there is one, as an object.
func (w *writer) backoff(b *jobpb.Backoff) {
	if b == nil {
		return
	}
	w.openObject("backoff")
	if len(b.DelaysMs) > 0 {
		w.openList("delays")
		for _, ms := range b.DelaysMs {
			w.comma()
			w.plainSeconds(ms)
		}
		w.shutList()
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
