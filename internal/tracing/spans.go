package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// schemaURL is that of the semantic conventions whose names the spans use.
const schemaURL = semconv.SchemaURL

// Names of codeq itself. What happened is the cause of the event.
const (
	tenantKey   = attribute.Key("codeq.tenant")
	deliveryKey = attribute.Key("codeq.delivery")
	attemptsKey = attribute.Key("codeq.attempts")
	causeKey    = attribute.Key("codeq.cause")
	statusKey   = attribute.Key("codeq.status")
)

func serviceAttributes(version string) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.ServiceName("codeq"), semconv.ServiceVersion(version)}
}

// kinds are the words of the conventions for each part. The conventions have no deliver: what
// hands a message to a consumer is of the type receive.
var kinds = map[part]struct {
	name string
	typ  attribute.KeyValue
	kind trace.SpanKind
}{
	create:  {"create", semconv.MessagingOperationTypeCreate, trace.SpanKindProducer},
	deliver: {"deliver", semconv.MessagingOperationTypeReceive, trace.SpanKindClient},
	process: {"process", semconv.MessagingOperationTypeProcess, trace.SpanKindConsumer},
	settle:  {"settle", semconv.MessagingOperationTypeSettle, trace.SpanKindClient},
}

// settles are the causes that are answers of a worker.
var settles = map[record.Cause]bool{record.CauseResult: true, record.CauseNack: true, record.CauseAbandon: true, record.CauseRelease: true}

// event makes the spans that an event ends. nowMs is when it was durable.
func (t *Tracer) event(e *shard.Event, nowMs int64) {
	ctx, root := t.root(e.TaskID, e.Trace, e.AtMs)
	if !root.IsRecording() {
		return
	}
	switch {
	case e.From == "":
		describe(root, e, create)
		root.End(at(nowMs))
	case e.To == wire.LocationInProgress:
		var links []trace.Link
		if e.Delivery > 1 {
			before := root.SpanContext().WithSpanID(spanID(e.TaskID, deliver, e.Delivery-1))
			links = []trace.Link{{SpanContext: before}}
		}
		_, span := t.start(ctx, e, deliver, e.AtMs, trace.WithLinks(links...))
		span.End(at(nowMs))
	case e.From == wire.LocationInProgress && e.Cause != record.CauseUndelivered:
		t.ended(ctx, e, nowMs)
	}
}

// ended makes the spans of a delivery that has ended.
func (t *Tracer) ended(ctx context.Context, e *shard.Event, nowMs int64) {
	delivered := trace.SpanContextFromContext(ctx).WithSpanID(spanID(e.TaskID, deliver, e.Delivery))
	ctx, span := t.start(trace.ContextWithSpanContext(ctx, delivered), e, process, e.AtMs-e.SpentMs)
	if failed := e.Status != wire.StatusCompleted && e.Cause != record.CauseRelease; failed {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorTypeKey.String(e.Cause.String()))
	}
	span.End(at(e.AtMs))
	if settles[e.Cause] {
		_, span = t.start(ctx, e, settle, e.AtMs)
		span.SetAttributes(semconv.MessagingOperationName(e.Cause.String()))
		span.End(at(nowMs))
	}
}

// start begins a span of a task other than its first one.
func (t *Tracer) start(ctx context.Context, e *shard.Event, p part, atMs int64, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx = want(ctx, wanted{span: spanID(e.TaskID, p, e.Delivery)})
	ctx, span := t.tracer.Start(ctx, "", append(options, trace.WithSpanKind(kinds[p].kind), at(atMs))...)
	describe(span, e, p)
	return ctx, span
}

// describe gives a span its name and attributes.
func describe(span trace.Span, e *shard.Event, p part) {
	k := kinds[p]
	span.SetName(k.name + " " + e.Command)
	span.SetAttributes(
		semconv.MessagingSystemKey.String("codeq"), k.typ, semconv.MessagingOperationName(k.name),
		semconv.MessagingDestinationName(e.Command), semconv.MessagingMessageID(e.TaskID.String()),
		tenantKey.String(e.Tenant), causeKey.String(e.Cause.String()), statusKey.String(string(e.Status)), attemptsKey.Int(e.Attempts))
	if p != create {
		span.SetAttributes(deliveryKey.Int(e.Delivery))
	}
	if e.Worker != "" {
		span.SetAttributes(semconv.MessagingClientID(e.Worker))
	}
}
