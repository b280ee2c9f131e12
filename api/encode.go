package api

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"tarry/job/jobpb"
)

// writer puts an answer together, member by member. Answers are few in kind and
// hold bodies that must come out byte for byte as they came in, which a general
// encoder would reformat. Names are constants that need no escaping.
type writer struct{ b []byte }

func (w *writer) open() { w.comma(); w.b = append(w.b, '{') }
func (w *writer) shut() { w.b = append(w.b, '}') }

// success begins the answer to a call that was done.
func (w *writer) success() { w.open(); w.boolean("success", true) }

func (w *writer) openObject(name string) { w.name(name); w.b = append(w.b, '{') }

func (w *writer) openList(name string) { w.name(name); w.b = append(w.b, '[') }
func (w *writer) shutList()            { w.b = append(w.b, ']') }

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

func (w *writer) quote(v string) {
	// An error speaks of invalid UTF-8, which is replaced in what was appended.
	w.b, _ = jsontext.AppendQuote(w.b, v)
}

func (w *writer) texts(name string, vs []string) {
	w.openList(name)
	for _, v := range vs {
		w.comma()
		w.quote(v)
	}
	w.shutList()
}

func (w *writer) number(name string, v uint64) {
	w.name(name)
	w.b = strconv.AppendUint(w.b, v, 10)
}

func (w *writer) boolean(name string, v bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, v)
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

// instantFormat is RFC 3339 in UTC with milliseconds.
const instantFormat = "2006-01-02T15:04:05.000Z"

// instant writes Unix milliseconds; 0, which means none, is left out.
func (w *writer) instant(name string, ms int64) {
	if ms == 0 {
		return
	}
	w.name(name)
	w.b = append(w.b, '"')
	w.b = time.UnixMilli(ms).UTC().AppendFormat(w.b, instantFormat)
	w.b = append(w.b, '"')
}

// body writes a job's body under name, as the client that added it gave it.
// Bytes that no JSON string can hold go under name with "_base64" behind it.
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
