package tracing

import (
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"tarry/job/jobpb"
)

// Post starts the span of a post of push. It returns the traceparent to send with it, and the
// function that ends the span with the status of the response, 0 for none, and why the post
// failed, empty if it did not. For a job without a trace the traceparent is empty.
func (t *Tracer) Post(j *jobpb.Reserved, target string) (parent string, end func(status int, failure string)) {
	of, found := t.reserved.get(j.Seq, j.Generation)
	if !found {
		of.parent = contextOf(j.Options)
	}
	if !of.parent.IsValid() {
		return "", func(int, string) {}
	}
	span := t.start(of.parent, "push", j.Topic, client)
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageID(j.Id), attrAttempts.Int64(int64(j.Attempts)), semconv.HTTPRequestMethodPost)
		// Not all of the URL, which may have secrets.
		if u, err := url.Parse(target); err == nil {
			span.SetAttributes(semconv.ServerAddress(u.Hostname()))
			if port, err := strconv.Atoi(u.Port()); err == nil {
				span.SetAttributes(semconv.ServerPort(port))
			}
		}
	}
	return traceParent(span.SpanContext()), func(status int, failure string) {
		if status != 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		}
		if failure != "" {
			span.SetStatus(codes.Error, failure)
		}
		span.End()
	}
}
