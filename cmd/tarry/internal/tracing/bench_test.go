package tracing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
)

// instant is a queue that does nothing, so that what the API and the spans cost is seen.
type instant struct {
	job.Reads
	results []*jobpb.Result
}

func (q *instant) Do(context.Context, []*jobpb.Op) ([]*jobpb.Result, error) { return q.results, nil }
func (q *instant) Reserve(context.Context, *jobpb.Reserve, time.Duration) ([]*jobpb.Reserved, error) {
	return nil, nil
}
func (q *instant) FinishAndReserve(context.Context, []*jobpb.Finish, *jobpb.Reserve, bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	return nil, nil, nil
}
func (q *instant) DeleteAndReserve(context.Context, *jobpb.Delete, *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	return nil, nil, nil
}
func (q *instant) Rates(string) rates.Series { return rates.Series{} }
func (q *instant) TotalRates() rates.Series  { return rates.Series{} }
func (q *instant) Watch() job.Watch          { return nil }
func (q *instant) SettingsVersion() uint64   { return 0 }

// discard is a response that is not kept.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkAdd is an add over HTTP without the network and the queue: go test -run=^$ -bench=Add -benchmem ./cmd/tarry/internal/tracing
func BenchmarkAdd(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { _, _ = io.Copy(io.Discard, q.Body) }))
	defer collector.Close()
	none := 0.0
	for _, c := range []struct {
		name   string
		on     bool
		sample *float64
		trace  string
	}{
		{"off", false, nil, ""},
		{"off, with a traceparent", false, nil, parent},
		{"on, not sampled", true, &none, ""},
		{"on", true, nil, ""},
		{"on, with a traceparent", true, nil, parent},
	} {
		b.Run(c.name, func(b *testing.B) {
			var q Queue = &instant{results: []*jobpb.Result{{Seq: 1, Id: "order-5", State: jobpb.State_STATE_DELAYED, DueMs: 1_800_000_000_000}}}
			if c.on {
				t, err := New(b.Context(), Options{Endpoint: collector.URL, Sample: c.sample})
				require.NoError(b, err)
				defer t.Close(b.Context())
				q = t.Queue(q)
			}
			h := api.New(api.Options{Queue: q, Operator: &apitest.Operator{}, Hosts: []string{"*"}})
			body := strings.NewReader(`{"topic":"unpaid","id":"order-5","delay":1800,"body":{"order":5,"text":"` + strings.Repeat("x", 150) + `"}}`)
			request := httptest.NewRequest(http.MethodPost, "/v1/jobs", body)
			if c.trace != "" {
				request.Header.Set("traceparent", c.trace)
			}
			response := &discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Seek(0, io.SeekStart)
				h.ServeHTTP(response, request)
			}
		})
	}
}
