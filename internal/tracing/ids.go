package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"codeq/wire"
)

// part is one of the spans of a task.
type part byte

const (
	create part = iota + 1
	deliver
	process
	settle
)

// spanID is the id of a span. Those of deliveries differ by their number.
func spanID(id wire.TaskID, p part, delivery int) (span trace.SpanID) {
	var text [len(id) + 1 + 8]byte
	copy(text[:], id[:])
	text[len(id)] = byte(p)
	binary.BigEndian.PutUint64(text[len(id)+1:], uint64(delivery))
	sum := sha256.Sum256(text[:])
	copy(span[:], sum[:])
	return span
}

type wantedKey struct{}

// wanted are the ids of the next span of a context.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

func want(ctx context.Context, w wanted) context.Context {
	return context.WithValue(ctx, wantedKey{}, w)
}

// ids gives a span the ids that its context wants. It implements sdktrace.IDGenerator.
type ids struct{}

// NewIDs are those of a span without a parent.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	w, ok := ctx.Value(wantedKey{}).(wanted)
	if !ok {
		// Nobody else uses this generator; a span without a wish gets chance.
		_, _ = rand.Read(w.trace[:]) // never fails
		_, _ = rand.Read(w.span[:])
	}
	return w.trace, w.span
}

// NewSpanID is that of a span with a parent.
func (g ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := g.NewIDs(ctx)
	return span
}
