package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"codeq/internal/meter"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// stopFor bounds how long the last spans may take to leave.
const stopFor = 2 * time.Second

// Options configure a Tracer. All are required.
type Options struct {
	// Endpoint is the URL of the collector, to which /v1/traces is added unless it ends so.
	Endpoint string
	Version  string
	// Next gets every event that the tracer gets.
	Next shardactor.Observer
	// NowMs is the engine's clock in Unix milliseconds.
	NowMs func() int64
	// Log gets what the exporter complains of.
	Log zerolog.Logger
}

// Tracer makes spans of events. Its methods may be called from any goroutine, and none but Stop
// blocks: spans that do not leave fast enough are dropped.
type Tracer struct {
	o        Options
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	way      *way
}

// New makes a tracer; Stop ends it. The environment variables OTEL_… of the SDK and of the
// exporter set what Options do not.
func New(o Options) (*Tracer, error) {
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(tracesURL(o.Endpoint)))
	if err != nil {
		return nil, fmt.Errorf("export of spans to %s: %w", o.Endpoint, err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(serviceAttributes(o.Version)...), resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Log.Warn().Err(err).Msg("spans: they do not reach the collector")
	}))
	w := newWay(exporter)
	t := &Tracer{o: o, way: w, provider: sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(w), sdktrace.WithIDGenerator(ids{}), sdktrace.WithResource(about))}
	t.tracer = t.provider.Tracer("codeq", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(schemaURL))
	return t, nil
}

// Stop sends the last spans. No event may come any more.
func (t *Tracer) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.o.Log.Warn().Err(err).Msg("spans: the last ones were not sent")
	}
}

// WriteMetrics adds what became of spans to a page.
func (t *Tracer) WriteMetrics(p *meter.Page) { p.Add(&t.way.figures) }

// Load implements shardactor.Observer.
func (t *Tracer) Load(shardNo int, number uint64, queues []store.QueueState) {
	t.o.Next.Load(shardNo, number, queues)
}

// Observe implements shardactor.Observer.
func (t *Tracer) Observe(shardNo int, events []shard.Event) {
	t.o.Next.Observe(shardNo, events)
	nowMs := t.o.NowMs()
	for i := range events {
		if e := &events[i]; e.Trace != nil {
			t.event(e, nowMs)
		}
	}
}

// TraceParent is the traceparent for the worker of a delivery, and for what the end of that
// delivery makes; of a task without deliveries that for what follows its enqueue. It gives the
// same one each time.
func (t *Tracer) TraceParent(id wire.TaskID, parent string, delivery int) string {
	_, root := t.root(id, &shard.Trace{Parent: parent}, 0)
	of := root.SpanContext()
	span := of.SpanID()
	if delivery > 0 {
		span = spanID(id, process, delivery)
	}
	return wire.Trace{TraceID: of.TraceID(), SpanID: span, Flags: byte(of.TraceFlags())}.String()
}

// root is the create span of a task, and a context in which it is the parent. Whether the task
// is recorded the sampler decides here, each time in the same way. Only a span that is ended is
// exported.
func (t *Tracer) root(id wire.TaskID, of *shard.Trace, atMs int64) (context.Context, trace.Span) {
	ctx := context.Background()
	if parent, ok := wire.ParseTrace(of.Parent); ok {
		c := trace.SpanContextConfig{TraceID: parent.TraceID, SpanID: parent.SpanID, TraceFlags: trace.TraceFlags(parent.Flags), Remote: true}
		c.TraceState, _ = trace.ParseTraceState(of.State) // one of an earlier build may not be valid: none then
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(c))
	}
	ctx = want(ctx, wanted{trace: trace.TraceID(id), span: spanID(id, create, 0)})
	return t.tracer.Start(ctx, "create", trace.WithSpanKind(trace.SpanKindProducer), at(atMs))
}

// tracesURL is where a collector takes spans.
func tracesURL(endpoint string) string {
	const path = "/v1/traces"
	endpoint = strings.TrimSuffix(endpoint, "/")
	if strings.HasSuffix(endpoint, path) {
		return endpoint
	}
	return endpoint + path
}

func at(unixMs int64) trace.SpanEventOption { return trace.WithTimestamp(time.UnixMilli(unixMs)) }
