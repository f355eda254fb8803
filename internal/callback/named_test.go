package callback

import (
	"fmt"
	"strings"
	"testing"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

const named = "https://named.org/hook"

// set gives acme an endpoint of a name, or replaces or removes it.
func (x *site) set(name string, e *wire.Endpoint) {
	x.t.Helper()
	what := shard.NameChange{Key: record.NamedKey{Tenant: "acme", Kind: record.KindWebhook, Name: name}, IfVersion: -1}
	if e != nil {
		what.Value = string(wire.AppendEndpoint(nil, e))
	}
	done := false
	x.engine.Name(&shardactor.Naming{What: what, Done: func(_ record.Named, refusal *wire.Error) {
		if done = true; refusal != nil {
			x.t.Errorf("%s: %v", name, refusal)
		}
	}})
	if x.settle(); !done {
		x.t.Fatalf("%s is not set", name)
	}
}

// get is the endpoint as every shard has it.
func (x *site) get(name string) wire.Endpoint {
	x.t.Helper()
	n := x.engine.Named("acme", record.KindWebhook).Get(record.NamedKey{Tenant: "acme", Kind: record.KindWebhook, Name: name})
	e, ok := n.Endpoint()
	if !ok {
		x.t.Fatalf("no endpoint %s", name)
	}
	return e
}

func secretOf(letter string) string {
	return wire.SecretPrefix + strings.Repeat(letter, 32)
}

// What is posted to an endpoint goes where the endpoint is and is signed with its secrets at that
// time; without it the callback is a dead letter.
func TestAnEndpointIsFoundWhenACallbackIsPosted(t *testing.T) {
	x := openSite(t)
	e := &wire.Endpoint{URL: named, State: wire.EndpointEnabled, Secret: secretOf("A")}
	x.set("e", e)
	x.end("acme", hook)
	one, two := x.take(hook), x.take(named)
	if len(one) != 1 || len(two) != 1 || one[0].ID != two[0].ID || len(one[0].Secrets) != 0 || two[0].Secrets[0] != e.Secret {
		t.Fatalf("%+v %+v", one, two)
	}
	x.answer(one, 200)
	x.answer(two, 500)
	e.URL = "https://moved.org/"
	e.Rotate(secretOf("B"), x.nowMs)
	x.set("e", e)
	x.advance(6000)
	moved := x.take(e.URL)
	if len(moved) != 1 || fmt.Sprint(moved[0].Secrets) != fmt.Sprint([]string{secretOf("B"), secretOf("A")}) {
		t.Fatalf("%+v", moved)
	}
	x.answer(moved, 500)
	x.set("e", nil)
	x.advance(60_000)
	if f := x.figures("acme"); f.Dead != 1 || f.Ended != 1 || len(x.sent) != 0 {
		t.Errorf("%+v, sent %v", f, x.sent)
	}
}

// A day after a rotation the old secret signs no more.
func TestAnOldSecretSignsForADay(t *testing.T) {
	e := &wire.Endpoint{}
	e.Rotate(secretOf("A"), 1)
	e.Rotate(secretOf("A"), 2)
	if n := len(e.SecretsAt(3)); n != 1 {
		t.Errorf("%d secrets before a rotation", n)
	}
	e.Rotate(secretOf("B"), 10)
	for atMs, want := range map[int64]int{10: 2, 86_400_009: 2, 86_400_010: 1} {
		if n := len(e.SecretsAt(atMs)); n != want {
			t.Errorf("%d secrets at %d, want %d", n, atMs, want)
		}
	}
}

// An endpoint that answers 410 is disabled. What it would get waits without an attempt, and
// all of it goes once it is enabled.
func TestAnEndpointThatIsGoneIsDisabled(t *testing.T) {
	x := openSite(t)
	x.set("e", &wire.Endpoint{URL: named, State: wire.EndpointEnabled, Secret: secretOf("A")})
	x.end("acme", "")
	x.answer(x.take(named), 410)
	e := x.get("e")
	if e.State != wire.EndpointDisabled || e.Reason != "it answered 410, which means that it is gone" || e.Secret != secretOf("A") ||
		fmt.Sprint(x.disabled) != "[acme e]" {
		t.Fatalf("%+v, told %v", e, x.disabled)
	}
	for range 5 {
		x.end("acme", "")
	}
	for range 10 {
		x.advance(askAgainMs)
	}
	if f := x.figures("acme"); f.Delayed != 6 || f.Dead != 0 || len(x.sent) != 0 {
		t.Errorf("%+v, sent %v", f, x.sent)
	}
	e.State, e.Reason = wire.EndpointEnabled, ""
	x.set("e", &e)
	x.advance(2 * askAgainMs)
	calls := x.take(named)
	attempts := 0
	for _, c := range calls {
		attempts += c.Attempt
	}
	if x.answer(calls, 200); len(calls) != 6 || attempts != 7 { // the 410 counts
		t.Errorf("%d calls with %d attempts", len(calls), attempts)
	}
	if f := x.figures("acme"); f.Ended != 6 {
		t.Errorf("%+v", f)
	}
}

// One that fails for a day is disabled; a success or a change begins the day anew.
func TestAnEndpointThatFailsForADayIsDisabled(t *testing.T) {
	x := openSite(t)
	x.set("e", &wire.Endpoint{URL: named, State: wire.EndpointEnabled, Secret: secretOf("A")})
	fail := func(hours int) {
		for range hours {
			x.end("acme", "")
			x.advance(3_600_000)
			x.answer(x.take(named), 503)
		}
	}
	fail(23)
	if failures, sinceMs := x.worker.Health("acme", "e"); failures < sickAfter || x.nowMs-sinceMs != 22*3_600_000 {
		t.Errorf("%d failures since %d", failures, x.nowMs-sinceMs)
	}
	x.advance(probeEveryMs)
	x.answer(x.take(named), 204)
	if failures, sinceMs := x.worker.Health("acme", "e"); failures != 0 || sinceMs != 0 {
		t.Errorf("%d failures since %d", failures, sinceMs)
	}
	x.advance(60_000)
	x.answer(x.take(named), 204)
	fail(23)
	e := x.get("e")
	e.Statuses = []string{"CANCELLED"}
	x.set("e", &e)
	fail(23)
	if e := x.get("e"); e.State != wire.EndpointEnabled {
		t.Fatalf("%+v", e)
	}
	fail(3)
	if e := x.get("e"); e.State != wire.EndpointDisabled || !strings.HasPrefix(e.Reason, "no call has succeeded since 20") {
		t.Errorf("%+v", e)
	}
	if len(x.disabled) != 1 {
		t.Errorf("told %v", x.disabled)
	}
}

// What waits for a place goes where its endpoint is when it has one, and waits on if the endpoint was
// disabled.
func TestWhatWaitsForAPlaceGoesWhereItsEndpointIsThen(t *testing.T) {
	x := openSite(t)
	e := wire.Endpoint{URL: named, State: wire.EndpointEnabled, Secret: secretOf("A")}
	x.set("e", &e)
	for range perEndpoint + 3 {
		x.end("acme", "")
	}
	calls := x.take(named)
	if len(calls) != perEndpoint {
		t.Fatalf("%d calls", len(calls))
	}
	e.URL = "https://moved.org/"
	x.set("e", &e)
	x.answer(calls[:1], 200)
	if moved := x.take(e.URL); len(moved) != 1 || len(x.sent) != 0 {
		t.Fatalf("%d calls went on, sent %+v", len(moved), x.sent)
	}
	e.State = wire.EndpointDisabled
	x.set("e", &e)
	x.answer(calls[1:2], 200)
	if f := x.figures("acme"); len(x.sent) != 0 || f.Delayed != 2 || f.Ended != 2 {
		t.Errorf("sent %+v, %+v", x.sent, f)
	}
}

// fullEngine refuses to change named records, as a full disk does.
type fullEngine struct{ *shardactor.Engine }

func (fullEngine) Name(n *shardactor.Naming) {
	n.Done(record.Named{}, wire.Refuse(wire.CodeStorageFull, "the disk is nearly full"))
}

// An endpoint that could not be disabled is disabled with its next answer.
func TestAnEndpointIsDisabledOnceTheDiskHasSpace(t *testing.T) {
	x := openSite(t)
	x.set("e", &wire.Endpoint{URL: named, State: wire.EndpointEnabled, Secret: secretOf("A")})
	x.end("acme", "")
	x.worker.engine = fullEngine{x.engine}
	x.answer(x.take(named), 410)
	if e := x.get("e"); e.State != wire.EndpointEnabled || len(x.disabled) != 0 {
		t.Fatalf("%+v, told %v", e, x.disabled)
	}
	x.worker.engine = x.engine
	x.advance(6000)
	x.answer(x.take(named), 410)
	if e := x.get("e"); e.State != wire.EndpointDisabled || len(x.disabled) != 1 {
		t.Errorf("%+v, told %v", e, x.disabled)
	}
}
