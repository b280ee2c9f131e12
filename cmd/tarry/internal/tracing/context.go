package tracing

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"tarry/job"
	"tarry/job/jobpb"
)

// contextOf returns the trace context of a job; an invalid one: it has none.
func contextOf(o *jobpb.JobOptions) trace.SpanContext {
	parent, state := job.TraceOf(o)
	if parent == "" {
		return trace.SpanContext{}
	}
	// Both were checked. A state that is no list of this standard is not passed on.
	traceID, _ := trace.TraceIDFromHex(parent[3:35])
	spanID, _ := trace.SpanIDFromHex(parent[36:52])
	made, _ := trace.ParseTraceState(state)
	sampled := strings.IndexByte("13579bdf", parent[54]) >= 0
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceState: made, TraceFlags: trace.TraceFlags(0).WithSampled(sampled), Remote: true,
	})
}

// traceParent returns the text of a span's context.
func traceParent(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// setContext makes c the trace context of a job that is added. It reports false if there is
// no room among the job's headers. Those that came with the job are not changed in place.
func setContext(add *jobpb.Add, c trace.SpanContext) bool {
	kept := make([]*jobpb.Header, 0, len(add.Options.GetHeaders())+2)
	size := 0
	for _, h := range add.Options.GetHeaders() {
		if !job.IsTraceHeader(h.Name) {
			kept = append(kept, h)
		}
	}
	kept = append(kept, &jobpb.Header{Name: job.HeaderTraceParent, Value: traceParent(c)})
	if state := c.TraceState().String(); job.ValidTraceState(state) {
		kept = append(kept, &jobpb.Header{Name: job.HeaderTraceState, Value: state})
	}
	for _, h := range kept {
		size += len(h.Name) + len(h.Value)
	}
	if len(kept) > job.MaxHeaders || size > job.MaxHeaderBytes {
		return false
	}
	slices.SortFunc(kept, func(a, b *jobpb.Header) int { return strings.Compare(a.Name, b.Name) })
	if add.Options == nil {
		add.Options = &jobpb.JobOptions{}
	}
	add.Options.Headers = kept
	return true
}
