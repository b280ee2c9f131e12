package api

import (
	"errors"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// streamOptions are the parameters of a stream.
type streamOptions struct {
	topics    []string
	credit    int64
	max       int64 // jobs until the stream ends
	ttrMS     int64 // 0: each job's own
	consumer  string
	heartbeat time.Duration
	release   bool // held jobs when the connection ends
	format    streamFormat
}

const (
	defaultHeartbeat = 15
)

func streamOptionsOf(x *call) (streamOptions, error) {
	var q wire.StreamRequest
	var err error
	if x.r.Method == http.MethodPost {
		err = x.decode(maxSmallRequest, &q)
		if err == nil && x.r.URL.RawQuery != "" {
			err = job.Errorf(job.CodeInvalid, "a stream is asked for in the query string of a GET or in the JSON of a POST, not in both")
		}
	} else {
		err = x.streamQuery(&q)
	}
	if err != nil {
		return streamOptions{}, err
	}
	o, err := checkStream(&q)
	o.format = formatOf(x.r.Header.Values("Accept"))
	return o, err
}

// streamQuery parses the query string of a GET. Unlike other GETs it changes the queue, so a
// page of another origin must not be able to make a browser send it.
func (x *call) streamQuery(q *wire.StreamRequest) error {
	if x.r.Method != http.MethodGet {
		return job.Errorf(codeMethod, "a stream is a GET or a POST, not a %s", x.r.Method)
	}
	if x.foreignGet() {
		return x.s.crossOrigin(x)
	}
	values := x.r.URL.Query()
	if values.Has("topics") {
		q.Topics = wire.List[string, wire.TopicsLimit]{Set: true, V: strings.SplitN(values.Get("topics"), ",", job.MaxReserveTopics+1)}
	}
	q.Consumer, q.OnClose = wire.TextIn(values, "consumer"), wire.TextIn(values, "on_close")
	return errors.Join(
		wire.NumberIn(values, "credit", &q.Credit), wire.NumberIn(values, "max", &q.Max),
		wire.SecondsIn(values, "ttr", &q.TTR), wire.SecondsIn(values, "heartbeat", &q.Heartbeat))
}

func checkStream(q *wire.StreamRequest) (o streamOptions, err error) {
	credit, err := wire.Within("credit", q.Credit.Or(1), job.MaxReserve)
	if err != nil {
		return o, err
	}
	o.topics, o.consumer = q.Topics.V, q.Consumer.V
	if err := wire.CheckReserve(&jobpb.Reserve{Topics: o.topics, Max: credit, Consumer: o.consumer}); err != nil {
		return o, err
	}
	o.credit, o.max = int64(credit), q.Max.Or(math.MaxInt64)
	if o.max < 1 {
		return o, job.Invalid("max", "is %d; it must be at least 1", o.max)
	}
	if q.TTR.Set {
		if o.ttrMS, err = job.TTRMillis("ttr", q.TTR.V); err != nil {
			return o, err
		}
	}
	beat, err := job.Millis("heartbeat", q.Heartbeat.Or(defaultHeartbeat), wire.MaxHeartbeat)
	if err != nil {
		return o, err
	}
	o.heartbeat = time.Duration(beat) * time.Millisecond
	if o.heartbeat < wire.MinHeartbeat {
		return o, job.Invalid("heartbeat", "is %v s; it must be at least %v s", q.Heartbeat.V, wire.MinHeartbeat.Seconds())
	}
	switch q.OnClose.Or("keep") {
	case "keep":
	case "release":
		o.release = true
	default:
		return o, job.Invalid("on_close", "is %.40q; it takes keep or release", q.OnClose.V)
	}
	return o, nil
}

// streamFormat is how the events of a stream are framed.
type streamFormat int

const (
	lines        streamFormat = iota // one JSON object a line
	serverEvents                     // text/event-stream, for browsers
)

func (f streamFormat) contentType() string {
	if f == serverEvents {
		return "text/event-stream"
	}
	return "application/x-ndjson"
}

// formatOf returns server-sent events if the Accept header names them.
func formatOf(accept []string) streamFormat {
	for _, list := range accept {
		for kind := range strings.SplitSeq(list, ",") {
			if name, _, err := mime.ParseMediaType(kind); err == nil && name == "text/event-stream" {
				return serverEvents
			}
		}
	}
	return lines
}

// line adds an event to the output. A JSON body keeps its bytes, except that line ends become
// spaces; they are only between tokens.
func (t *stream) line(name string, members func(*writer)) {
	w := &t.json
	w.b = w.b[:0]
	w.beginObject()
	w.text("event", name)
	members(w)
	w.endObject()
	for i, c := range w.b {
		if c == '\n' || c == '\r' {
			w.b[i] = ' '
		}
	}
	b := t.buffer
	if t.format == serverEvents {
		b = append(b, "event: "...)
		b = append(b, name...)
		b = append(b, "\ndata: "...)
	}
	b = append(b, w.b...)
	b = append(b, '\n')
	if t.format == serverEvents {
		b = append(b, '\n')
	}
	t.buffer = b
}

// event writes and flushes one event.
func (t *stream) event(name string, members func(*writer)) error {
	t.line(name, members)
	return t.flush()
}

// beat sends a heartbeat, which shows both sides whether the connection is alive.
func (t *stream) beat() error {
	if t.format == serverEvents {
		t.buffer = append(t.buffer, ": heartbeat\n\n"...)
		return t.flush()
	}
	return t.event("heartbeat", func(*writer) {})
}

// flush sends the output. If the client does not read it in time, flush returns an error.
func (t *stream) flush() error {
	httpx.AllowWrite(t.w, t.s.Timeout)
	_, err := t.w.Write(t.buffer)
	if err == nil {
		err = httpx.Flush(t.w)
	}
	t.buffer = t.buffer[:0]
	if cap(t.buffer) > httpx.MaxPooledBytes {
		t.buffer = nil
	}
	if cap(t.json.b) > httpx.MaxPooledBytes {
		t.json.b = nil
	}
	t.last, t.broken = time.Now(), err != nil
	return err
}
