// Package tracing makes OpenTelemetry spans of what happens to jobs and sends them to a
// collector, by OTLP over HTTP. It is used only if the operator has named a collector: a
// Tracer wraps the queue of a node, and without one nothing of this package runs.
//
// A job carries its trace context in its headers (job.TraceOf), so all nodes know it. The
// spans of a job are made where they happen: the add on the node that the producer called,
// the reserve on that of the consumer, a post on the leader.
//
// Start at Tracer. queue.go wraps the queue, spans.go has the spans and their attributes,
// reserved.go finds the span that a finish belongs to, export.go bounds what waits for the
// collector.
package tracing
