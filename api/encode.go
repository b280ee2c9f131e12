package api

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/api/wire"
	"tarry/job/jobpb"
)

// writer builds a response, field by field. There are few kinds of responses, and they
// contain bodies that must be returned byte for byte, which a general encoder would
// reformat. Names are constants that need no escaping.
type writer struct {
	b []byte
	// lastTime is the timestamp of lastMS: jobs that were added together have the same ones.
	lastMS   int64
	lastTime []byte
}

func (w *writer) beginObject() { w.comma(); w.b = append(w.b, '{') }
func (w *writer) endObject()   { w.b = append(w.b, '}') }

// success begins the response of a successful call.
func (w *writer) success() { w.beginObject(); w.boolean("success", true) }

// reply writes the reply of a successful call.
func (x *call) reply(v any) error {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	x.json.success()
	if len(b) > len("{}") {
		x.json.b = append(append(x.json.b, ','), b[1:]...)
	} else {
		x.json.endObject()
	}
	return nil
}

// each returns what f makes of each item of a list.
func each[From, To any](list []From, f func(From) To) []To {
	made := make([]To, len(list))
	for i, one := range list {
		made[i] = f(one)
	}
	return made
}

// answer is the handler of a call of which f returns the reply.
func answer[Reply any](f func(*server, *call) (Reply, error)) func(*server, *call) error {
	return func(s *server, x *call) error {
		r, err := f(s, x)
		if err != nil {
			return err
		}
		return x.reply(r)
	}
}

// take is answer for a call with a request, which must be a JSON object.
func take[Request, Reply any](f func(*server, *call, *Request) (Reply, error)) func(*server, *call) error {
	return answer(func(s *server, x *call) (r Reply, err error) {
		q := new(Request)
		if err = x.decode(maxSmallRequest, q); err != nil {
			return r, err
		}
		return f(s, x, q)
	})
}

// mayTake is take for a request that may be left out.
func mayTake[Request, Reply any](f func(*server, *call, *Request) (Reply, error)) func(*server, *call) error {
	return answer(func(s *server, x *call) (r Reply, err error) {
		q := new(Request)
		if err = x.decodeOptional(maxSmallRequest, q); err != nil {
			return r, err
		}
		return f(s, x, q)
	})
}

func (w *writer) beginNamedObject(name string) { w.name(name); w.b = append(w.b, '{') }

func (w *writer) beginList(name string) { w.name(name); w.b = append(w.b, '[') }
func (w *writer) endList()              { w.b = append(w.b, ']') }

// objects adds a list of objects, whose members write adds.
func objects[T any](w *writer, name string, list []T, write func(T)) {
	w.beginList(name)
	for _, one := range list {
		w.beginObject()
		write(one)
		w.endObject()
	}
	w.endList()
}

// comma separates a value from the one before it, if there is one.
func (w *writer) comma() {
	if n := len(w.b); n > 0 {
		switch w.b[n-1] {
		case '{', '[', ':':
		default:
			w.b = append(w.b, ',')
		}
	}
}

func (w *writer) name(name string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) text(name, v string) {
	w.name(name)
	w.quote(v)
}

// quoted writes a field whose name may need escaping.
func (w *writer) quoted(name, v string) {
	w.comma()
	w.quote(name)
	w.b = append(w.b, ':')
	w.quote(v)
}

func (w *writer) quote(v string) {
	// The only error is invalid UTF-8, which was replaced.
	w.b, _ = jsontext.AppendQuote(w.b, v)
}

func (w *writer) texts(name string, vs []string) {
	w.beginList(name)
	for _, v := range vs {
		w.comma()
		w.quote(v)
	}
	w.endList()
}

func (w *writer) number(name string, v uint64) {
	w.name(name)
	w.b = strconv.AppendUint(w.b, v, 10)
}

func (w *writer) boolean(name string, v bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) textUnlessEmpty(name, v string) {
	if v != "" {
		w.text(name, v)
	}
}

func (w *writer) numberUnlessZero(name string, v uint64) {
	if v != 0 {
		w.number(name, v)
	}
}

func (w *writer) booleanIfTrue(name string, v bool) {
	if v {
		w.boolean(name, true)
	}
}

func (w *writer) null(name string) {
	w.name(name)
	w.b = append(w.b, "null"...)
}

// seconds writes milliseconds as seconds.
func (w *writer) seconds(name string, ms int64) {
	w.name(name)
	w.plainSeconds(ms)
}

func (w *writer) plainSeconds(ms int64) {
	w.b = strconv.AppendFloat(w.b, float64(ms)/1000, 'f', -1, 64)
}

func (w *writer) float(name string, v float64) {
	w.name(name)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

// timestamp writes Unix milliseconds as a timestamp. It omits 0, which means none.
func (w *writer) timestamp(name string, ms int64) {
	if ms == 0 {
		return
	}
	w.name(name)
	if ms != w.lastMS {
		w.lastMS = ms
		w.lastTime = time.UnixMilli(ms).UTC().AppendFormat(w.lastTime[:0], wire.TimeFormat)
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, w.lastTime...)
	w.b = append(w.b, '"')
}

// body writes a job's body under name, as the client sent it. Bytes that are not UTF-8 go
// under name with the suffix "_base64".
func (w *writer) body(name string, kind jobpb.BodyKind, body []byte) {
	switch {
	case kind == jobpb.BodyKind_BODY_JSON:
		w.name(name)
		w.b = append(w.b, body...)
	case utf8.Valid(body):
		w.name(name)
		w.b, _ = jsontext.AppendQuote(w.b, body)
	default:
		w.name(name + "_base64")
		w.b = append(w.b, '"')
		w.b = base64.StdEncoding.AppendEncode(w.b, body)
		w.b = append(w.b, '"')
	}
}

var stateNames = map[jobpb.State]string{
	jobpb.State_STATE_NONE:     "gone",
	jobpb.State_STATE_DELAYED:  "delayed",
	jobpb.State_STATE_READY:    "ready",
	jobpb.State_STATE_RESERVED: "reserved",
	jobpb.State_STATE_DEAD:     "dead",
	jobpb.State_STATE_FINISHED: "finished",
	jobpb.State_STATE_DELETED:  "deleted",
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
