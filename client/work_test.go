package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// named is the payload of the tasks that a peer pushes.
type named struct{ Name string }

// sum is a result.
type sum struct {
	Sum string `json:"sum"`
}

// office is a Work under test.
type office struct {
	*stage
	said  chan string
	leave context.CancelFunc
	ended chan error
	peer  *peer
}

// colorKey finds what the context of Work carries into its handlers.
type colorKey struct{}

// opened starts Work with that handler and subscribes it.
func opened[R any](t *testing.T, handler func(context.Context, named) (R, error), options ...WorkOption) *office {
	t.Helper()
	o := &office{said: make(chan string, 100), ended: make(chan error, 1)}
	o.stage = newStage(t, WithNotices(func(sentence string) { o.said <- sentence }))
	var ctx context.Context
	ctx, o.leave = context.WithCancel(context.WithValue(context.Background(), colorKey{}, "red"))
	go func() { o.ended <- Work(ctx, o.client, "hash", handler, options...) }()
	o.peer = o.arrives()
	o.peer.subscribed()
	return o
}

// give pushes a task and waits until the handler has it.
func (o *office) give(name byte) {
	o.t.Helper()
	o.peer.push(name)
	next[*wire.Received](o.peer)
	synctest.Wait()
}

// drained ends Work and answers its last words.
func (o *office) drained() {
	o.t.Helper()
	o.leave()
	o.peer.ok(next[*wire.Window](o.peer).Ref)
}

func (o *office) closes() {
	o.t.Helper()
	o.drained()
	if err := <-o.ended; err != nil {
		o.t.Errorf("Work returned %v, want nil", err)
	}
	o.peer.closed()
}

func TestWorkDecodesThePayloadAndEncodesTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var info TaskInfo
		var color any
		o := opened(t, func(ctx context.Context, in named) (sum, error) {
			info, color = TaskFrom(ctx), ctx.Value(colorKey{})
			return sum{"<" + in.Name + ">"}, nil
		})
		o.give('a')
		o.peer.ok(wantResult(t, o.peer, 'a', `{"sum":"<a>"}`).Ref)
		if want := (TaskInfo{ID: taskID('a'), Command: "hash", MaxAttempts: 5, Delivery: 1}); info != want {
			t.Errorf("the handler saw %+v, want %+v", info, want)
		}
		if color != "red" {
			t.Errorf("the value in the context was %v, want red", color)
		}
		if got := TaskFrom(context.Background()); got != (TaskInfo{}) {
			t.Errorf("outside a handler there is %+v", got)
		}
		o.closes()
	})
}

func TestWorkSubscribesAsItsOptionsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		ctx, leave := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- Work(ctx, s.client, "hash", func(context.Context, any) (any, error) { return nil, nil },
				Window(7), Lease(time.Minute), WorkerID("ada"))
		}()
		p := s.upgraded()
		hello := next[*wire.Hello](p)
		p.send(&wire.Welcome{SessionID: wire.SessionID{1}, PingSeconds: 20, MaxUnanswered: 8192, MaxMessageBytes: 2 << 20})
		f := p.subscribed()
		if hello.WorkerID != "ada" || f.Window != 7 || f.LeaseSeconds != 60 || fmt.Sprint(f.Commands) != "[hash]" {
			t.Errorf("hello %+v, subscribed as %+v", hello, f)
		}
		leave()
		p.ok(next[*wire.Window](p).Ref)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAHandlerReturnsDecidesWhatBecomesOfItsTask(t *testing.T) {
	live, stopped := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrStopping)
		return ctx
	}()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		result any
		err    error
		want   string
	}{
		{"a result", live, sum{"1"}, nil, `completed {"sum":"1"}`},
		{"nothing", live, nil, nil, `completed {}`},
		{"a nil map", live, map[string]int(nil), nil, `completed {}`},
		{"raw", live, json.RawMessage(`{ "a":1 }`), nil, `completed { "a":1 }`},
		{"raw and broken", live, json.RawMessage(`{`), nil, `nacked -1`},
		{"no object", live, []int{1}, nil, `nacked -1`},
		{"not a number", live, map[string]float64{"a": math.NaN()}, nil, `nacked -1`},
		{"an error", live, sum{}, errTest, `nacked -1`},
		{"for good", live, sum{}, Permanent(errTest), `failed`},
		{"for good, wrapped", live, sum{}, fmt.Errorf("x: %w", Permanent(errTest)), `failed`},
		{"no error for good", live, sum{"1"}, Permanent(nil), `completed {"sum":"1"}`},
		{"later", live, sum{}, RetryIn(1500*time.Millisecond, errTest), `nacked 2`},
		{"later, wrapped", live, sum{}, fmt.Errorf("x: %w", RetryIn(time.Minute, errTest)), `nacked 60`},
		{"later without an error", live, sum{}, RetryIn(time.Minute, nil), `nacked 60`},
		{"an error while stopping", stopped, sum{}, errTest, `released`},
		{"a result while stopping", stopped, sum{"1"}, nil, `completed {"sum":"1"}`},
		{"for good while stopping", stopped, sum{}, Permanent(errTest), `failed`},
	} {
		o := outcomeOf(c.ctx, c.result, c.err)
		got := o.Kind.String()
		switch o.Kind {
		case Completed:
			got += " " + string(o.Result)
		case Nacked:
			got += fmt.Sprintf(" %d", o.delaySeconds)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if c.err != nil && o.Kind != Released && (o.Reason != c.err.Error() || !errors.Is(c.err, errTest) && c.name != "later without an error") {
			t.Errorf("%s: the reason is %q for %v", c.name, o.Reason, c.err)
		}
	}
}

func TestWorkRefusesResultsThatCanBeNoObjects(t *testing.T) {
	for result, good := range map[reflect.Type]bool{
		reflect.TypeFor[sum]():             true,
		reflect.TypeFor[*sum]():            true,
		reflect.TypeFor[any]():             true,
		reflect.TypeFor[map[string]int]():  true,
		reflect.TypeFor[json.RawMessage](): true,
		reflect.TypeFor[int]():             false,
		reflect.TypeFor[*string]():         false,
		reflect.TypeFor[[]byte]():          false,
	} {
		if err := checkResultType(result); (err == nil) != good {
			t.Errorf("%s: %v, want good %v", result, err, good)
		}
	}
	c, err := New("queue.test")
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"result":  Work(context.Background(), c, "hash", func(context.Context, any) (int, error) { return 1, nil }),
		"command": Work(context.Background(), c, "", func(context.Context, any) (any, error) { return nil, nil }),
		"grace":   Work(context.Background(), c, "hash", func(context.Context, any) (any, error) { return nil, nil }, Grace(-1)),
		"lease":   Work(context.Background(), c, "hash", func(context.Context, any) (any, error) { return nil, nil }, Lease(1)),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: error %v", name, err)
		}
	}
}

func TestAPayloadThatDoesNotFitIsNacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		ctx, leave := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- Work(ctx, s.client, "hash", func(context.Context, int) (any, error) { return nil, nil })
		}()
		o := &office{stage: s, leave: leave, ended: ended, peer: s.arrives()}
		o.peer.subscribed()
		o.give('a')
		f := next[*wire.Nack](o.peer)
		if !strings.Contains(f.Reason, "does not fit") || f.DelaySeconds >= 0 {
			t.Errorf("nacked with %+v", f)
		}
		o.peer.ok(f.Ref)
		o.closes()
	})
}

func TestAHandlerThatPanicsNacksAndWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := opened(t, func(_ context.Context, in named) (any, error) {
			if in.Name == "a" {
				panic("out of cheese")
			}
			return nil, nil
		})
		o.give('a')
		f := next[*wire.Nack](o.peer)
		if f.Reason != "handler panicked: out of cheese" {
			t.Errorf("nacked with %q", f.Reason)
		}
		o.peer.ok(f.Ref)
		if said := <-o.said; !strings.Contains(said, "out of cheese") || !strings.Contains(said, "work_test.go") {
			t.Errorf("the notice is %q, want the panic and its stack", said)
		}
		o.give('b')
		o.peer.ok(wantResult(t, o.peer, 'b', `{}`).Ref)
		o.closes()
	})
}

func TestAHandlerLearnsThatItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		o := opened(t, func(ctx context.Context, _ named) (any, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		})
		o.give('a')
		o.peer.send(&wire.Revoked{TaskRef: ref('a'), Reason: wire.RevokedExpired})
		if err := <-causes; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the cause is %v, want ErrLeaseLost", err)
		}
		o.peer.refuse(next[*wire.Nack](o.peer).Ref, wire.CodeLeaseLost)
		o.closes()
	})
}

// slow is a handler that takes that long, or until its context ends if it
// heeds it.
func slow(span time.Duration, heeds bool) func(context.Context, named) (any, error) {
	return func(ctx context.Context, _ named) (any, error) {
		if !heeds {
			ctx = context.Background()
		}
		return nil, sleep(ctx, span)
	}
}

func TestWorkEndsWhenWhatRunsHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := opened(t, slow(19*time.Second, true))
		o.give('a')
		o.drained()
		next[*wire.Heartbeat](o.peer)
		o.peer.ok(wantResult(t, o.peer, 'a', `{}`).Ref)
		if err := <-o.ended; err != nil {
			t.Errorf("Work returned %v, want nil", err)
		}
	})
}

func TestWorkHandsBackWhatRunsAfterTheGrace(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := opened(t, slow(time.Minute, heeds), Grace(3*time.Second))
			o.give('a')
			began := time.Now()
			o.drained()
			o.peer.ok(next[*wire.Release](o.peer).Ref)
			if err := <-o.ended; !errors.Is(err, ErrGraceOver) {
				t.Errorf("Work returned %v, want ErrGraceOver", err)
			}
			want := 3 * time.Second
			if !heeds {
				want += lastMoment
			}
			if took := time.Since(began); took != want {
				t.Errorf("handler heeds %v: it took %s, want %s", heeds, took, want)
			}
			time.Sleep(time.Minute) // until the handler that was left alone has ended
		})
	}
}

func TestWorkDoesNotWaitForAHandlerWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := opened(t, slow(time.Hour, false), Grace(0))
		o.give('a')
		o.peer.send(&wire.Revoked{TaskRef: ref('a'), Reason: wire.RevokedExpired})
		synctest.Wait()
		o.drained()
		o.peer.refuse(next[*wire.Release](o.peer).Ref, wire.CodeLeaseLost)
		if err := <-o.ended; !errors.Is(err, ErrGraceOver) {
			t.Errorf("Work returned %v, want ErrGraceOver", err)
		}
		time.Sleep(time.Hour) // until the handler has ended
	})
}

func TestWorkThatCannotBeginSaysSoOrEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		idle := func(context.Context, any) (any, error) { return nil, nil }
		s.answers(coded(403, wire.CodeForbidden))
		var refusal *wire.Error
		if err := Work(context.Background(), s.client, "hash", idle); !errors.As(err, &refusal) {
			t.Errorf("Work returned %v, want the refusal", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		body := `{"error":"starting","code":"draining","retryable":true}`
		s.answers(fmt.Sprintf("HTTP/1.1 503 X\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if err := Work(ctx, s.client, "hash", idle); err != nil {
			t.Errorf("Work returned %v, want nil", err)
		}
	})
}

func TestWorkTakesWhatRunsAlongToANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := opened(t, slow(5*time.Second, true))
		o.give('a')
		o.peer.cut()
		o.peer = o.arrives()
		beat := next[*wire.Heartbeat](o.peer)
		if len(beat.Tasks) != 1 || beat.Tasks[0] != ref('a') {
			t.Errorf("the first heartbeat names %v", beat.Tasks)
		}
		o.peer.ok(beat.Ref)
		o.peer.subscribed()
		o.peer.ok(wantResult(t, o.peer, 'a', `{}`).Ref)
		o.peer.ok(next[*wire.Window](o.peer).Ref) // the whole window again
		o.closes()
	})
}
