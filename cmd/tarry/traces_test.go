package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

// collectorOf returns the URL of a collector that passes spans to take.
func collectorOf(t *testing.T, take func(*otlp.Span)) string {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		request := new(collector.ExportTraceServiceRequest)
		if err != nil || proto.Unmarshal(body, request) != nil {
			t.Errorf("a request of %d bytes is no export of traces (%v)", len(body), err)
		}
		for _, from := range request.ResourceSpans {
			for _, scope := range from.ScopeSpans {
				for _, s := range scope.Spans {
					take(s)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// startServer runs a node until stop is called, and returns its address.
func startServer(t *testing.T, args ...string) (addr string, log *clitest.LogBuffer, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	addr, log = clitest.FreeAddr(t), new(clitest.LogBuffer)
	args = append([]string{"server", "--data-dir", t.TempDir(), "--http-addr", addr, "--cluster-addr", clitest.FreeAddr(t), "--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", "off", "--disk-low-water", "0"}, args...)
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, nil, io.Discard, log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.Equal(t, cli.ExitOK, <-ended, log.String())
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=leading") }, 30*time.Second, 10*time.Millisecond)
	return addr, log, stop
}

// called makes a call and returns the reply, which must be a success.
func called(t *testing.T, addr, path, body, trace string) string {
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	require.NoError(t, err)
	if trace != "" {
		q.Header.Set("traceparent", trace)
	}
	reply, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.Less(t, reply.StatusCode, 300, string(text))
	return string(text)
}

func metricsOf(t *testing.T, addr string) string {
	reply, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return string(text)
}

const someTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A real node and a collector: from the add to the finish.
func TestANodeSendsTheSpansOfAJob(t *testing.T) {
	var mu sync.Mutex
	parents := map[string]string{}
	ids := map[string]string{"00f067aa0ba902b7": "caller"}
	url := collectorOf(t, func(s *otlp.Span) {
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", hex.EncodeToString(s.TraceId))
		ids[hex.EncodeToString(s.SpanId)] = s.Name
		parents[s.Name] = hex.EncodeToString(s.ParentSpanId)
	})
	addr, log, stop := startServer(t, "--otlp-endpoint", url)
	require.Contains(t, metricsOf(t, addr), "tarry_trace_spans_dropped_total 0")
	called(t, addr, "/v1/jobs", `{"topic":"mail","id":"a","delay":0.1,"body":1}`, someTrace)
	var reply struct {
		Jobs []struct {
			Token   string            `json:"token"`
			Headers map[string]string `json:"headers"`
		} `json:"jobs"`
	}
	require.NoError(t, json.Unmarshal([]byte(called(t, addr, "/v1/reserve", `{"topics":["mail"],"wait":20}`, "")), &reply))
	require.Len(t, reply.Jobs, 1)
	require.Contains(t, reply.Jobs[0].Headers["traceparent"], "4bf92f3577b34da6a3ce929d0e0e4736")
	called(t, addr, "/v1/jobs/a/finish", `{"token":"`+reply.Jobs[0].Token+`"}`, "")
	stop() // it sends what waits
	mu.Lock()
	defer mu.Unlock()
	for name, parent := range parents {
		parents[name] = ids[parent]
	}
	require.Equal(t, map[string]string{"add mail": "caller", "due mail": "add mail", "reserve mail": "add mail", "finish mail": "reserve mail"}, parents)
	require.NotContains(t, log.String(), "level=WARN")
}

func TestWithoutACollectorATraceGoesWithItsJobAllTheSame(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	addr, _, stop := startServer(t)
	called(t, addr, "/v1/jobs", `{"topic":"mail","body":1}`, someTrace)
	require.Contains(t, called(t, addr, "/v1/reserve", `{"topics":["mail"],"wait":20}`, ""), `"traceparent":"`+someTrace+`"`)
	require.NotContains(t, metricsOf(t, addr), "tarry_trace")
	stop()
}

func TestFlagsOfTraces(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--otlp-endpoint", "127.0.0.1:4318", "http"},
		{"--otlp-endpoint", "http://me:secret@collector", "OTEL_EXPORTER_OTLP_HEADERS"},
		{"--trace-sample", "2", "from 0 to 1"},
		{"--trace-sample", "NaN", "from 0 to 1"},
	} {
		var log, out clitest.LogBuffer
		require.Equal(t, cli.ExitUsage, run(t.Context(), []string{"server", c.flag, c.value}, nil, &out, &log))
		require.Contains(t, log.String(), c.says)
		require.Contains(t, log.String(), c.flag[2:])
	}
}
