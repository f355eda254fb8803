package tracing

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"codeq/internal/meter"
)

// way is that of spans to the collector: the batches of the SDK, which drop without a word what
// comes while they are full. way drops it before they have to, and counts.
type way struct {
	sdktrace.SpanProcessor
	// room is how many spans may be under way, underWay how many are.
	room     int64
	underWay atomic.Int64

	figures             meter.Set
	sent, lost, dropped *meter.Counter
}

func newWay(to sdktrace.SpanExporter) *way {
	w := &way{room: roomOf(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"))}
	spans := func(outcome string) *meter.Counter {
		return w.figures.Counter("codeq_spans_total",
			"Spans by what became of them: sent, dropped because too many were under way, or lost because the collector did not take them.",
			meter.Label{Name: "outcome", Value: outcome})
	}
	w.sent, w.dropped, w.lost = spans("sent"), spans("dropped"), spans("lost")
	w.SpanProcessor = sdktrace.NewBatchSpanProcessor(&counted{to, w}, sdktrace.WithMaxQueueSize(int(w.room)))
	return w
}

// roomOf reads a variable of the SDK for the size of its queue.
func roomOf(variable string) int64 {
	if n, err := strconv.Atoi(variable); err == nil && n > 0 {
		return int64(n)
	}
	return sdktrace.DefaultMaxQueueSize
}

// OnEnd implements sdktrace.SpanProcessor.
func (w *way) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if w.underWay.Add(1) > w.room {
		w.underWay.Add(-1)
		w.dropped.Inc()
		return
	}
	w.SpanProcessor.OnEnd(s)
}

// counted is the exporter at the end of a way.
type counted struct {
	sdktrace.SpanExporter
	way *way
}

// ExportSpans implements sdktrace.SpanExporter.
func (c *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.way.underWay.Add(-int64(len(spans)))
	if err != nil {
		c.way.lost.Add(len(spans))
		return err
	}
	c.way.sent.Add(len(spans))
	return nil
}
