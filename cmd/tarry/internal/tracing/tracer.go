package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Options configures a Tracer.
type Options struct {
	// Endpoint is the URL of the collector, to which /v1/traces is added. Empty: as the
	// environment says (OTEL_EXPORTER_OTLP_ENDPOINT).
	Endpoint string
	// Sample is the share of traces that are recorded, of those that begin here; nil: as
	// the environment says (OTEL_TRACES_SAMPLER), or all. Of others their caller decides.
	Sample *float64
	// Node and Version are those of this node.
	Node, Version string
	Logger        *slog.Logger // nil: nothing is logged
}

// Wanted reports whether spans shall be made: an endpoint is given, here or by the standard
// environment, which also has two switches to turn them off.
func Wanted(endpoint string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// CheckEndpoint checks the URL of a collector.
func CheckEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("it must be a URL with http or https, such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("it must not have a user, a query or a fragment; credentials go into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// Tracer makes spans and sends them. It is a prometheus.Collector of its own metrics. Its
// methods may be called from many goroutines, and do not block.
type Tracer struct {
	provider *sdktrace.TracerProvider
	batches  *limit
	tracer   trace.Tracer
	export   *exporter
	reserved *reservations
}

// New returns a Tracer, which the caller must close. It does not wait for the collector.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var to []otlptracehttp.Option
	if o.Endpoint != "" {
		to = append(to, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/traces"))
	}
	otlp, err := otlptracehttp.New(ctx, to...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return newTracer(ctx, o, otlp)
}

func newTracer(ctx context.Context, o Options, to sdktrace.SpanExporter) (*Tracer, error) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("tarry"), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(o.Node)),
		resource.WithFromEnv()) // the last one counts
	if err != nil {
		return nil, fmt.Errorf("traces: the attributes of this node: %w", err)
	}
	t := &Tracer{export: newExporter(to, o.Logger), reserved: newReservations(maxReservations)}
	t.batches = newLimit(t.export)
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithSpanProcessor(t.batches)}
	if o.Sample != nil {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*o.Sample))))
	}
	t.provider = sdktrace.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer("tarry")
	return t, nil
}

// Close sends the spans that wait, until ctx ends, and drops the rest.
func (t *Tracer) Close(ctx context.Context) {
	// What is not sent is counted and logged. The provider is the second: when ctx has
	// ended, it ends nothing.
	_, _ = t.batches.Shutdown(ctx), t.provider.Shutdown(ctx)
	t.export.stop()
	<-t.export.closed
}

// Describe implements prometheus.Collector.
func (t *Tracer) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(t, to) }

// Collect implements prometheus.Collector.
func (t *Tracer) Collect(to chan<- prometheus.Metric) {
	t.export.exported.Collect(to)
	t.export.dropped.Collect(to)
}
