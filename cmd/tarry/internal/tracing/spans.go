package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"tarry/job"
	"tarry/job/jobpb"
)

// Names of the attributes that OpenTelemetry has no name for.
const (
	attrSeq      = attribute.Key("tarry.job.seq")
	attrState    = attribute.Key("tarry.job.state") // after the operation
	attrAttempts = attribute.Key("tarry.job.attempts")
	attrDue      = attribute.Key("tarry.job.due_at")
	attrLateness = attribute.Key("tarry.job.lateness_seconds")
	attrExisting = attribute.Key("tarry.job.existing")
	attrConsumer = attribute.Key("tarry.consumer")
)

// system is what all spans have.
var system = semconv.MessagingSystemKey.String("tarry")

// kindOf are the types of operations, by their names. A due time and a post are none of the
// standard's.
var kindOf = map[string]attribute.KeyValue{
	"add":     semconv.MessagingOperationTypeSend,
	"reserve": semconv.MessagingOperationTypeReceive,
	"finish":  semconv.MessagingOperationTypeSettle,
	"release": semconv.MessagingOperationTypeSettle,
	"bury":    semconv.MessagingOperationTypeSettle,
	"delete":  semconv.MessagingOperationTypeSettle,
}

// start starts the span of an operation on a job. Without a parent it begins a trace.
func (t *Tracer) start(parent trace.SpanContext, operation, topic string, options ...trace.SpanStartOption) trace.Span {
	ctx := trace.ContextWithSpanContext(context.Background(), parent)
	_, span := t.tracer.Start(ctx, operation+" "+topic, options...)
	if span.IsRecording() {
		span.SetAttributes(system, semconv.MessagingOperationName(operation), semconv.MessagingDestinationName(topic))
		if kind, found := kindOf[operation]; found {
			span.SetAttributes(kind)
		}
	}
	return span
}

var (
	server   = trace.WithSpanKind(trace.SpanKindServer)
	client   = trace.WithSpanKind(trace.SpanKindClient)
	internal = trace.WithSpanKind(trace.SpanKindInternal)
)

// add starts the span of an add. Its context becomes that of the job, so the later spans of
// the job are its children. A trace that is not recorded and began here is not kept.
func (t *Tracer) add(add *jobpb.Add) trace.Span {
	parent := contextOf(add.Options)
	span := t.start(parent, "add", add.Topic, server)
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageBodySize(len(add.Body)))
		setContext(add, span.SpanContext())
	}
	return span
}

// settle starts the span of the end of a reservation, or of a job; nil: the job has no trace.
func (t *Tracer) settle(operation string, of origin) trace.Span {
	if !of.parent.IsValid() {
		return nil
	}
	span := t.start(of.parent, operation, of.topic, server)
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageID(of.id))
	}
	return span
}

// deliver makes the spans of a job that a call has reserved, which began at the time given,
// and remembers the reservation.
func (t *Tracer) deliver(j *jobpb.Reserved, consumer string, began, now time.Time) {
	known := reservation{seq: j.Seq, generation: j.Generation, origin: origin{id: j.Id, topic: j.Topic, delivered: now}}
	defer func() { t.reserved.put(known) }()
	parent := contextOf(j.Options)
	if !parent.IsValid() {
		return
	}
	due, handedOut := time.UnixMilli(j.DueMs), time.UnixMilli(j.ReservedUntilMs-j.TtrMs)
	// The due time of a later attempt may be that of the one before.
	if j.Attempts == 1 {
		span := t.start(parent, "due", j.Topic, internal, trace.WithTimestamp(due))
		if span.IsRecording() {
			span.SetAttributes(semconv.MessagingMessageID(j.Id), attrLateness.Float64(handedOut.Sub(due).Seconds()))
		}
		span.End(trace.WithTimestamp(handedOut))
	}
	if began.Before(due) {
		began = due // it waited for the job until then
	}
	if began.After(now) {
		began = now // the clock of the queue is ahead
	}
	span := t.start(parent, "reserve", j.Topic, server, trace.WithTimestamp(began))
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageID(j.Id), semconv.MessagingMessageBodySize(len(j.Body)),
			attrSeq.Int64(int64(j.Seq)), attrAttempts.Int64(int64(j.Attempts)), attrDue.String(job.FormatInstant(j.DueMs, 0)))
		if consumer != "" {
			span.SetAttributes(attrConsumer.String(consumer))
		}
	}
	span.End(trace.WithTimestamp(now))
	known.parent = span.SpanContext()
}

// Expired makes the spans of reservations that expired, of those that this node remembers: from
// the delivery until then. They stay remembered, because a finish may still come.
func (t *Tracer) Expired(timeouts []job.Timeout) {
	for _, at := range timeouts {
		of, found := t.reserved.get(at.Seq, at.Generation)
		if !found || !of.parent.IsValid() {
			continue
		}
		end := time.UnixMilli(at.AtMS)
		span := t.start(of.parent, "expire", of.topic, internal, trace.WithTimestamp(earlier(of.delivered, end)))
		if span.IsRecording() {
			span.SetAttributes(semconv.MessagingMessageID(of.id), attrSeq.Int64(int64(at.Seq)), attrState.String(job.StateName(at.State)))
			span.SetStatus(codes.Error, "the reservation expired")
		}
		span.End(trace.WithTimestamp(end))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// stateAfter is the state of a job after an operation, as the API names it.
func stateAfter(r *jobpb.Result) string {
	if r.State == jobpb.State_STATE_NONE {
		return "gone"
	}
	return job.StateName(r.State)
}

// end ends the span of an operation by its result, or by the error of the call.
func end(span trace.Span, r *jobpb.Result, err error) {
	if span.IsRecording() && (r != nil || err != nil) {
		if err == nil {
			err = job.ResultError(r)
		}
		if err != nil {
			span.SetStatus(codes.Error, brief(err))
			span.SetAttributes(semconv.ErrorTypeKey.String(string(job.CodeOf(err))))
		} else {
			span.SetAttributes(semconv.MessagingMessageID(r.Id), attrSeq.Int64(int64(r.Seq)), attrState.String(stateAfter(r)))
			if r.DueMs != 0 {
				span.SetAttributes(attrDue.String(job.FormatInstant(r.DueMs, 0)))
			}
			if r.Existing {
				span.SetAttributes(attrExisting.Bool(true))
			}
		}
	}
	span.End()
}
