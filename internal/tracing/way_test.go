package tracing

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// gate is a collector that takes spans while it is open.
type gate struct {
	mu   sync.Mutex
	took int
	err  error
}

func (g *gate) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.took += len(spans)
	}
	return g.err
}

func (g *gate) Shutdown(context.Context) error { return nil }

// Every span is sent, dropped or lost, and each is counted once, also when the collector stands.
func TestSpansThatDoNotArriveAreCounted(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	synctest.Test(t, func(t *testing.T) {
		to := &gate{}
		w := newWay(to)
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w)).Tracer("t")
		spans := func(n int) {
			for range n {
				_, span := tracer.Start(t.Context(), "s")
				span.End()
			}
			time.Sleep(time.Minute) // in the time of the bubble: the batch leaves
			synctest.Wait()
		}
		wants := func(sent, dropped, lost uint64) {
			t.Helper()
			if w.sent.Get() != sent || w.dropped.Get() != dropped || w.lost.Get() != lost || w.underWay.Load() != 0 {
				t.Errorf("%d were sent, %d dropped, %d lost, %d are under way; want %d, %d, %d",
					w.sent.Get(), w.dropped.Get(), w.lost.Get(), w.underWay.Load(), sent, dropped, lost)
			}
		}
		spans(3)
		wants(3, 0, 0)
		to.err = errors.New("away")
		spans(4)
		wants(3, 0, 4)
		to.err = nil
		to.mu.Lock() // it takes nothing for now
		for range 25 {
			_, span := tracer.Start(t.Context(), "s")
			span.End()
		}
		to.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		wants(13, 15, 4)
		if to.took != 13 {
			t.Errorf("the collector has %d", to.took)
		}
		if err := w.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
