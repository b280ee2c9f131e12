package tracing

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tarry/api"
	"tarry/api/apitest"
)

// receiver is a collector: it takes spans by OTLP over HTTP.
type receiver struct {
	*httptest.Server
	t      *testing.T
	status func() int // of the next reply; it may block

	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, status: func() int { return http.StatusOK }}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return // the exporter has given it up
	}
	request := new(collector.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	if err != nil || q.URL.Path != "/v1/traces" {
		r.t.Errorf("%s %s: %v", q.Method, q.URL, err)
	}
	if status := r.status(); status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range request.ResourceSpans {
		r.resource = map[string]string{}
		for _, a := range from.Resource.Attributes {
			r.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range from.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
}

// span is a span that arrived, in the form of a test's expectation.
type span struct {
	name, id, kind, parent, trace, status string
	attributes                            map[string]string
	start, end                            time.Time
}

// received returns the spans by their names, with "add mail #2" for the second of a name. The
// parent of each is a name too, or the id of a span that did not arrive here.
func (r *receiver) received() map[string]span {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.spans)
	slices.SortStableFunc(list, func(a, b *otlp.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	names, counts := map[string]string{}, map[string]int{}
	for _, s := range list {
		name := s.Name
		if counts[s.Name]++; counts[s.Name] > 1 {
			name = fmt.Sprintf("%s #%d", s.Name, counts[s.Name])
		}
		names[hex.EncodeToString(s.SpanId)] = name
	}
	made := map[string]span{}
	for _, s := range list {
		parent := hex.EncodeToString(s.ParentSpanId)
		if name := names[parent]; name != "" {
			parent = name
		}
		one := span{
			name: s.Name, id: hex.EncodeToString(s.SpanId), kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")), parent: parent, trace: hex.EncodeToString(s.TraceId),
			status: s.Status.GetMessage(), attributes: map[string]string{},
			start: time.Unix(0, int64(s.StartTimeUnixNano)), end: time.Unix(0, int64(s.EndTimeUnixNano)),
		}
		for _, a := range s.Attributes {
			switch v := a.Value.GetValue(); {
			case a.Value.GetStringValue() != "":
				one.attributes[a.Key] = a.Value.GetStringValue()
			default:
				_, text, _ := strings.Cut(fmt.Sprint(v), "{")
				one.attributes[a.Key] = strings.TrimSuffix(text, "}")
			}
		}
		made[names[hex.EncodeToString(s.SpanId)]] = one
	}
	return made
}

// rig is a queue and an API in one process, with spans.
type rig struct {
	t        *testing.T
	queue    *apitest.Queue
	traced   Queue
	tracer   *Tracer
	receiver *receiver
	handler  http.Handler
	log      *logBuffer
}

// logBuffer is written by the exporter and read by the test.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	r := &rig{t: t, queue: apitest.New(t), receiver: newReceiver(t), log: new(logBuffer)}
	o := Options{Endpoint: r.receiver.URL, Node: "n1", Version: "v1", Logger: slog.New(slog.NewTextHandler(r.log, nil))}
	for _, f := range change {
		f(&o)
	}
	var err error
	r.tracer, err = New(t.Context(), o)
	require.NoError(t, err)
	r.traced = r.tracer.Queue(r.queue)
	r.handler = api.New(api.Options{Queue: r.traced, Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	return r
}

// post makes a call, with a trace if it is not empty, and returns the reply.
func (r *rig) post(path, body, trace string) string {
	q := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if trace != "" {
		q.Header.Set("traceparent", trace)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w.Body.String()
}

func (r *rig) get(path string) string {
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Body.String()
}

func (r *rig) ok(path, body, trace string) string {
	r.t.Helper()
	reply := r.post(path, body, trace)
	require.Contains(r.t, reply, `{"success":true`, path)
	return reply
}

// close ends the tracer and returns the spans that arrived.
func (r *rig) close() map[string]span {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.tracer.Close(ctx)
	spans := r.receiver.received()
	require.EqualValues(r.t, len(spans), testutil.ToFloat64(r.tracer.export.exported))
	return spans
}
