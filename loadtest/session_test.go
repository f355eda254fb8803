package loadtest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// deaf is a socket that only gathers.
func deaf() *socket { return &socket{wake: make(chan struct{}, 1)} }

// sent takes what a socket would send.
func sent(t *testing.T, s *socket) (frames []wire.ClientFrame) {
	t.Helper()
	for _, m := range s.take(nil) {
		part, violation := wire.ParseClientMessage(append(m, ']'))
		if violation != nil {
			t.Fatalf("%s: %v", m, violation)
		}
		frames = append(frames, part...)
	}
	return frames
}

// newRun is a run that nothing drives, with one task posted per producer.
func newRun(t *testing.T) *run {
	r := &run{Options: Options{Workload: Canonical()}, began: time.Now()}
	r.cancel = func(err error) { t.Errorf("the run failed: %v", err) }
	for i := range r.Producers {
		r.producers = append(r.producers, &producer{run: r, index: uint32(i), wake: make(chan struct{}, 1)})
		r.ledger.open(1, uint32(i), 0)
	}
	return r
}

// newSilent is a session whose socket only gathers.
func newSilent(r *run) *session {
	s := newSession(&r.Workload, r.newTally())
	s.socket = deaf()
	return s
}

func TestWorkerCompletesAndCounts(t *testing.T) {
	r := newRun(t)
	w := newSilent(r)
	if err := w.receive(message(
		&wire.OK{Ref: wire.Ref{Value: subscribeRef, Present: true}},
		sampleTask(4, string(r.Payload(4))), sampleTask(9, string(r.Payload(9))),
	)); err != nil {
		t.Fatal(err)
	}
	<-w.subscribed
	results := sent(t, w.socket)
	if len(results) != 2 {
		t.Fatalf("%d frames, want two results", len(results))
	}
	for i, n := range []uint64{4, 9} {
		got, ok := results[i].(*wire.Result)
		if !ok || got.TaskID != idOf(n) || got.Token != (wire.Token{1, byte(n)}) || string(got.ResultRequest.Result) != "{}" {
			t.Errorf("frame %d is %#v, want the result of task %d", i, results[i], n)
		}
		if err := w.receive(message(&wire.OK{Ref: got.Ref, TaskID: got.TaskID})); err != nil {
			t.Fatal(err)
		}
	}
	if v := r.ledger.verdict(); v.Completed != 2 || r.completed.Load() != 2 {
		t.Errorf("verdict %+v", v)
	}
	if len(w.free) != 2 {
		t.Errorf("%d places are free again, want 2", len(w.free))
	}
}

func TestWorkerSaysAgainWhatWasRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		w := newSilent(r)
		if err := w.receive(message(sampleTask(4, string(r.Payload(4))))); err != nil {
			t.Fatal(err)
		}
		first := sent(t, w.socket)[0].(*wire.Result)
		full := wire.Refuse(wire.CodeOverloaded, "full")
		if err := w.receive(message(&wire.ErrorFrame{Ref: first.Ref, TaskID: first.TaskID, Err: full})); err != nil {
			t.Fatal(err)
		}
		if again := sent(t, w.socket); again != nil {
			t.Fatalf("%d frames at once, want a pause", len(again))
		}
		time.Sleep(2 * repeatAfter) // in a bubble, where no time passes
		synctest.Wait()
		again := sent(t, w.socket)
		if len(again) != 1 || again[0].(*wire.Result).TaskRef != first.TaskRef || again[0].(*wire.Result).Ref != first.Ref {
			t.Fatalf("said again: %#v", again)
		}
		lost := wire.Refuse(wire.CodeLeaseLost, "not yours")
		if err := w.receive(message(&wire.ErrorFrame{Ref: first.Ref, TaskID: first.TaskID, Err: lost})); err == nil {
			t.Error("a result that is refused for good is no error")
		}
	})
}

func TestWorkerEndsTheRunOnWhatMustNotBe(t *testing.T) {
	for name, frame := range map[string]wire.ServerFrame{
		"revoked":          &wire.Revoked{TaskRef: wire.TaskRef{TaskID: idOf(1), Token: wire.Token{1}}, Reason: wire.RevokedExpired},
		"draining":         &wire.Draining{Reason: "shutdown"},
		"answer to nobody": &wire.OK{Ref: wire.Ref{Value: 10, Present: true}},
	} {
		if err := newSilent(newRun(t)).receive(message(frame)); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestProducerSessionSendsAndHears(t *testing.T) {
	r := newRun(t)
	p := newSilent(r)
	if err := p.Post(3, 2); err != nil {
		t.Fatal(err)
	}
	frames := sent(t, p.socket)
	if len(frames) != 2 {
		t.Fatalf("%d frames, want 2", len(frames))
	}
	for i, f := range frames {
		n := uint64(3 + i)
		e, ok := f.(*wire.Enqueue)
		if !ok || e.Ref.Value != int64(2*n+1) || e.Command != r.CommandOf(n) || string(e.Payload) != string(r.Payload(n)) {
			t.Errorf("frame %d is %#v", i, f)
		}
	}
	full := wire.Refuse(wire.CodeOverloaded, "full")
	if err := p.receive(message(
		&wire.OK{Ref: wire.Ref{Value: 7, Present: true}, TaskID: idOf(3)},
		&wire.ErrorFrame{Ref: wire.Ref{Value: 9, Present: true}, Err: full},
	)); err != nil {
		t.Fatal(err)
	}
	if r.acked.Load() != 1 || r.refused.Load() != 1 {
		t.Errorf("%d acknowledged, %d refused, want one each", r.acked.Load(), r.refused.Load())
	}
	for i, want := range []int32{3: 1, 4: 1} {
		if got := r.producers[i].credit.Load(); got != want {
			t.Errorf("producer %d has %d back, want %d", i, got, want)
		}
	}
	if r.producers[4].refusals.Load() != 1 || r.producers[3].refusals.Load() != 0 {
		t.Error("the refusal is not with the producer it concerns")
	}
}

func TestLargeMessagesAreCut(t *testing.T) {
	r := newRun(t)
	r.PayloadBytes = 100_000
	p := newSilent(r)
	if err := p.Post(0, 30); err != nil {
		t.Fatal(err)
	}
	messages := p.socket.take(nil)
	total := 0
	for _, m := range messages {
		if len(m) > wire.MaxClientMessageBytes {
			t.Errorf("a message of %d bytes", len(m))
		}
		frames, violation := wire.ParseClientMessage(append(m, ']'))
		if violation != nil {
			t.Fatal(violation)
		}
		total += len(frames)
	}
	if total != 30 || len(messages) < 2 {
		t.Errorf("%d frames in %d messages, want 30 in several", total, len(messages))
	}
}

func TestFirstMessageMustBeAWelcome(t *testing.T) {
	for text, want := range map[string]error{
		string(message(&wire.Welcome{Durability: "fsync"})): nil,
		`[]`: errors.New("empty"), `{"type":"ok"}`: errors.New("other"), `nonsense`: errors.New("no JSON"),
		string(message(&wire.ErrorFrame{Err: wire.Refuse(wire.CodeUnauthenticated, "who?")})): errors.New("refused"),
	} {
		s := &socket{welcome: make(chan *wire.Welcome, 1)}
		err := s.readWelcome([]byte(text))
		if (err == nil) != (want == nil) || s.welcomed != (want == nil) {
			t.Errorf("%s: error %v, want %v", text, err, want)
		}
	}
}
