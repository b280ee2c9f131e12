package tracing

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxPending bounds the spans that wait for the collector or are being sent. Beyond it
	// spans are dropped, so a collector that is slow or down costs nothing but spans.
	maxPending = 4096

	// errorBytes bounds what is logged of the collector's words.
	errorBytes = 300
)

// exporter passes spans on to the collector, and counts and logs those that it does not take.
// The batch processor calls it from one goroutine.
type exporter struct {
	to      sdktrace.SpanExporter
	log     *slog.Logger
	pending atomic.Int64 // spans that were passed to the batch processor and did not come here yet
	failing bool         // the last batch failed

	ctx    context.Context // ends an export when the time to close is over
	stop   context.CancelFunc
	closed chan struct{} // closed after the last export

	exported, dropped prometheus.Counter
}

func newExporter(to sdktrace.SpanExporter, log *slog.Logger) *exporter {
	ctx, stop := context.WithCancel(context.Background())
	return &exporter{
		to: to, log: log, ctx: ctx, stop: stop, closed: make(chan struct{}),
		exported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_trace_spans_exported_total", Help: "Spans that the collector has taken.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tarry_trace_spans_dropped_total", Help: "Spans that were dropped because the collector was too slow or did not take them.",
		}),
	}
}

// ExportSpans implements sdktrace.SpanExporter. It handles its errors itself.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := e.to.ExportSpans(ctx, spans)
	e.pending.Add(-int64(len(spans)))
	if err == nil {
		e.exported.Add(float64(len(spans)))
	} else {
		e.dropped.Add(float64(len(spans)))
	}
	switch {
	case err != nil && !e.failing:
		e.log.Warn("spans cannot be sent to the collector; they are dropped and counted until it takes them", "spans", len(spans), "error", brief(err))
	case err == nil && e.failing:
		e.log.Info("the collector takes spans again")
	}
	e.failing = err != nil
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer close(e.closed)
	return e.to.Shutdown(ctx)
}

func brief(err error) string {
	text := err.Error()
	if len(text) > errorBytes {
		return strings.ToValidUTF8(text[:errorBytes], "") + "..."
	}
	return text
}

// limit drops the spans beyond maxPending before the batch processor does it, which would
// not count them where anybody sees it.
type limit struct {
	sdktrace.SpanProcessor
	export *exporter
}

func newLimit(e *exporter) *limit {
	return &limit{sdktrace.NewBatchSpanProcessor(e, sdktrace.WithMaxQueueSize(maxPending)), e}
}

// OnEnd implements sdktrace.SpanProcessor.
func (l *limit) OnEnd(s sdktrace.ReadOnlySpan) {
	switch {
	case !s.SpanContext().IsSampled():
	case l.export.pending.Add(1) > maxPending:
		l.export.pending.Add(-1)
		l.export.dropped.Inc()
	default:
		l.SpanProcessor.OnEnd(s)
	}
}
