package faults

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"codeq/test/blackbox"
	"codeq/wire"
)

// gatherer is a collector of OpenTelemetry, and the receiver of webhooks.
type gatherer struct {
	t      *testing.T
	server *httptest.Server

	mu    sync.Mutex
	spans []*spans.Span
	// called are the traceparents with which webhooks came.
	called []string
}

func newGatherer(t *testing.T) *gatherer {
	g := &gatherer{t: t}
	g.server = httptest.NewServer(g)
	t.Cleanup(g.server.Close)
	return g
}

// ServeHTTP implements http.Handler.
func (g *gatherer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path != "/v1/traces" {
		g.called = append(g.called, r.Header.Get("traceparent"))
		return
	}
	var export collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	if err != nil {
		g.t.Errorf("spans came as %v", err)
	}
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			g.spans = append(g.spans, scope.GetSpans()...)
		}
	}
}

// of are the spans of a trace, by their ids.
func (g *gatherer) of(trace string) map[string]*spans.Span {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := map[string]*spans.Span{}
	for _, s := range g.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			found[hex.EncodeToString(s.GetSpanId())] = s
		}
	}
	return found
}

func (g *gatherer) calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.called)
}

// attribute is the text of an attribute of a span.
func attribute(s *spans.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// named is the only span of that name whose attribute has that text.
func named(t *testing.T, all map[string]*spans.Span, name, key, text string) *spans.Span {
	t.Helper()
	var found []*spans.Span
	for _, s := range all {
		if s.GetName() == name && attribute(s, key) == text {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q have %s %q", len(found), name, key, text)
	}
	return found[0]
}

// numbered is the only span of that name of a delivery.
func numbered(t *testing.T, all map[string]*spans.Span, name string, delivery int64) *spans.Span {
	t.Helper()
	for _, s := range all {
		for _, a := range s.GetAttributes() {
			if s.GetName() == name && a.GetKey() == "codeq.delivery" && a.GetValue().GetIntValue() == delivery {
				return s
			}
		}
	}
	t.Fatalf("no span %q of delivery %d", name, delivery)
	return nil
}

// attempt claims a task, answers for it, and returns the traceparent that the worker got.
func (x *site) attempt(id wire.TaskID, verb, body string) (traceParent string) {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", `{"commands":["c"],"waitSeconds":10}`)
	if err != nil {
		x.t.Fatal(err)
	}
	task, err := wire.ParseTask(answer.Body)
	if err != nil || task.ID != id {
		x.t.Fatalf("claimed %s: %v", answer.Body, err)
	}
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/"+verb, body); err != nil {
		x.t.Fatal(err)
	}
	return task.TraceParent
}

const (
	tracedBy   = "4bf92f3577b34da6a3ce929d0e0e4736"
	producedBy = "00f067aa0ba902b7"
)

// Producer, both attempts of the worker and the receiver of the webhook are one connected tree.
func TestATraceFromProducerToCallbackIsOneTree(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	x := tracedSite(t, g)
	posted, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":"c","payload":1,"webhook":%q,"traceParent":"00-%s-%s-01","traceState":"a=b"}`, g.server.URL+"/hook", tracedBy, producedBy))
	if err != nil {
		t.Fatal(err)
	}
	workers := []string{x.attempt(posted.ID, "nack", `{"delaySeconds":0}`), x.attempt(posted.ID, "result", `{"result":{}}`)}
	x.eventually(patience, "the webhook is called", func() bool { return len(g.calls()) == 1 })
	var all map[string]*spans.Span
	x.eventually(patience, "all spans arrive", func() bool { all = g.of(tracedBy); return len(all) == 11 })

	parents := map[string]string{}
	for id, s := range all {
		parents[id] = hex.EncodeToString(s.GetParentSpanId())
		if s.GetTraceState() != "a=b" || s.GetStartTimeUnixNano() > s.GetEndTimeUnixNano() {
			t.Errorf("%s has the tracestate %q, and lasts from %d to %d", s.GetName(), s.GetTraceState(), s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano())
		}
	}
	for i, text := range append(workers, g.calls()...) {
		outside, ok := wire.ParseTrace(text)
		if !ok || hex.EncodeToString(outside.TraceID[:]) != tracedBy || outside.Flags != wire.TraceSampled {
			t.Fatalf("%q was handed on", text)
		}
		parents[fmt.Sprint("outside ", i)] = hex.EncodeToString(outside.SpanID[:])
	}
	for id := range parents {
		for steps, at := 0, id; at != producedBy; steps, at = steps+1, parents[at] {
			if parents[at] == "" || steps > len(parents) {
				t.Fatalf("%s %q does not lead to the producer: it ends at %q", id, all[id].GetName(), at)
			}
		}
	}
	first, second := numbered(t, all, "deliver c", 1), numbered(t, all, "deliver c", 2)
	if links := second.GetLinks(); len(links) != 1 || string(links[0].GetSpanId()) != string(first.GetSpanId()) || len(first.GetLinks()) != 0 {
		t.Errorf("the second delivery links to %v, the first has %v", links, first.GetLinks())
	}
	failed := named(t, all, "process c", "codeq.cause", "nack")
	if attribute(failed, "error.type") != "nack" || failed.GetStatus().GetCode() != spans.Status_STATUS_CODE_ERROR {
		t.Errorf("the failed attempt is %v", failed)
	}
	for key, want := range map[string]string{
		"messaging.system": "codeq", "messaging.operation.type": "process", "messaging.destination.name": "c", "messaging.message.id": posted.ID.String(),
	} {
		if got := attribute(failed, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	named(t, all, "create codeq.webhook", "messaging.operation.type", "create")
	named(t, all, "settle codeq.webhook", "messaging.operation.name", "result")
}

// A task without a trace begins one, whose id is that of the task; one that is not sampled makes no
// span, and hands its context on.
func TestATraceBeginsWithItsTaskAndHeedsTheSampler(t *testing.T) {
	t.Parallel()
	g := newGatherer(t)
	x := tracedSite(t, g)
	own, err := x.api.Post(x.ctx, `{"command":"c","payload":1}`)
	if err != nil {
		t.Fatal(err)
	}
	got := x.attempt(own.ID, "result", `{"result":{}}`)
	trace := strings.ReplaceAll(own.ID.String(), "-", "")
	var all map[string]*spans.Span
	x.eventually(patience, "its spans arrive", func() bool { all = g.of(trace); return len(all) == 4 })
	if process := named(t, all, "process c", "codeq.cause", "result"); got != fmt.Sprintf("00-%s-%x-01", trace, process.GetSpanId()) {
		t.Errorf("the worker got %q, and its delivery is %x", got, process.GetSpanId())
	}
	quiet, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":"c","payload":1,"traceParent":"00-%s-%s-00"}`, tracedBy, producedBy))
	if err != nil {
		t.Fatal(err)
	}
	if got := x.attempt(quiet.ID, "result", `{"result":{}}`); !strings.HasPrefix(got, "00-"+tracedBy+"-") || !strings.HasSuffix(got, "-00") {
		t.Errorf("the worker got %q", got)
	}
	last, err := x.api.Post(x.ctx, `{"command":"c","payload":1}`)
	if err != nil {
		t.Fatal(err)
	}
	x.eventually(patience, "a later span arrives", func() bool { return len(g.of(strings.ReplaceAll(last.ID.String(), "-", ""))) == 1 })
	if all := g.of(tracedBy); len(all) != 0 {
		t.Errorf("a trace that is not sampled has %d spans", len(all))
	}
}

// A collector that is away costs nobody anything, and the server stops in time.
func TestACollectorThatIsAwayStopsNobody(t *testing.T) {
	x := newSite(t, "--otlp-endpoint", "http://127.0.0.1:1")
	for _, id := range x.post("c", 100, 10) {
		x.attempt(id, "result", `{"result":{}}`)
	}
}

func tracedSite(t *testing.T, g *gatherer) *site {
	t.Helper()
	x := &site{t: t, ctx: context.WithoutCancel(t.Context())}
	x.server = blackbox.ServeUnder(t, "export OTEL_BSP_SCHEDULE_DELAY=20", "--otlp-endpoint", g.server.URL, "--webhook-allow", "127.0.0.0/8")
	x.api = blackbox.NewAPI(x.server.Addr)
	t.Cleanup(x.api.Close)
	return x
}
