package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// answers collects what posts ended with.
type answers map[string]string

// shop is a producer session under test.
type shop struct {
	*stage
	session *Session
	answers answers
}

func newShop(t *testing.T, o SessionOptions) (*shop, *peer) {
	t.Helper()
	s := &shop{stage: newStage(t), answers: answers{}}
	dialled := make(chan error, 1)
	go func() {
		var err error
		s.session, err = s.client.Dial(context.Background(), o)
		dialled <- err
	}()
	p := s.arrives()
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() { // else the session would go on for ever
			s.session.Close()
		}
	})
	return s, p
}

func request(payload, key string) *wire.EnqueueRequest {
	return &wire.EnqueueRequest{Command: "hash", Payload: []byte(payload), IdempotencyKey: key}
}

// post posts a task whose payload is its name.
func (s *shop) post(name, key string) {
	s.t.Helper()
	err := s.session.EnqueueAsync(context.Background(), request(name, key), func(e *Enqueued, err error) {
		switch {
		case s.answers[name] != "":
			s.t.Errorf("%s was answered twice", name)
		case err != nil:
			s.answers[name] = err.Error()
		default:
			s.answers[name] = fmt.Sprintf("task %d replayed %t", e.TaskID[15], e.Replayed)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// want waits until nothing moves and compares the answers.
func (s *shop) want(want answers) {
	s.t.Helper()
	synctest.Wait()
	for name, text := range want {
		if !strings.Contains(s.answers[name], text) || s.answers[name] == "" {
			s.t.Errorf("%s ended with %q, want %q", name, s.answers[name], text)
		}
	}
	if len(s.answers) != len(want) {
		s.t.Errorf("%d answers %v, want %d", len(s.answers), s.answers, len(want))
	}
}

func (p *peer) enqueue(payload string) *wire.Enqueue {
	p.t.Helper()
	f := next[*wire.Enqueue](p)
	if string(f.Payload) != payload {
		p.t.Fatalf("got payload %s, want %s", f.Payload, payload)
	}
	return f
}

func TestSessionHasManyInFlightAndMatchesAnswersByRef(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.post("1", "")
		s.post("2", "")
		s.post("3", "")
		one, two, three := p.enqueue("1"), p.enqueue("2"), p.enqueue("3")
		p.send(&wire.OK{Ref: three.Ref, TaskID: taskID(3)}, &wire.OK{Ref: one.Ref, TaskID: taskID(1), Replayed: true})
		p.refuse(two.Ref, wire.CodeInvalidCommand)
		s.want(answers{"1": "task 1 replayed true", "2": "invalid_command: because", "3": "task 3 replayed false"})
		s.session.Close()
		p.closed()
	})
}

func TestSessionHasNoMoreInFlightThanTheServerAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		taken := 0
		for s.session.EnqueueAsync(ctx, request(`1`, ""), func(*Enqueued, error) {}) == nil {
			taken++
		}
		if taken != maxPosts {
			t.Errorf("%d posts taken without an answer, want %d", taken, maxPosts)
		}
		p.ok(p.enqueue("1").Ref)
		if err := s.session.EnqueueAsync(context.Background(), request(`1`, ""), func(*Enqueued, error) {}); err != nil {
			t.Errorf("no room after an answer: %v", err)
		}
		s.session.Close()
		p.closed()
	})
}

func TestSessionBoundsTheBytesInFlightAndTakesOneTaskOfAnySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.holdWrites()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		large := `"` + strings.Repeat("x", wire.MaxPayloadBytes-2) + `"`
		taken := 0
		for s.session.EnqueueAsync(ctx, request(large, ""), func(*Enqueued, error) {}) == nil {
			taken++
		}
		if want := maxPostBytes / wire.MaxPayloadBytes; taken != want {
			t.Errorf("%d large posts taken without an answer, want %d", taken, want)
		}
		s.session.Close()
		p.closed()
	})
}

// A connection that breaks before it has answered as many as were sent is offered
// half of them the next time, down to one, and more with each answer.
func TestF03SessionOffersLessAfterEachBreakThatConfirmedLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		for i := range 8 {
			s.post(fmt.Sprint(i), fmt.Sprint("k", i))
		}
		for _, offered := range []int{8, 4, 2, 1, 1} {
			for i := range offered {
				p.enqueue(fmt.Sprint(i))
			}
			synctest.Wait()
			p.silent()
			p.cut()
			p = s.arrives()
		}
		first := p.enqueue("0")
		synctest.Wait()
		p.silent()
		p.ok(first.Ref)
		second, third := p.enqueue("1"), p.enqueue("2")
		synctest.Wait()
		p.silent()
		p.send(&wire.OK{Ref: second.Ref, Replayed: true}, &wire.OK{Ref: third.Ref, Replayed: true})
		for i := range 4 {
			p.enqueue(fmt.Sprint(3 + i))
		}
		synctest.Wait()
		p.silent()
		s.session.Close()
		p.closed()
	})
}

func TestF02SessionSaysThatItSentARequestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		var got []Enqueued
		post := func(key string) {
			if err := s.session.EnqueueAsync(t.Context(), request("1", key), func(e *Enqueued, _ error) { got = append(got, *e) }); err != nil {
				t.Fatal(err)
			}
		}
		post("k1")
		p.enqueue("1")
		p.cut()
		p = s.arrives()
		p.send(&wire.OK{Ref: p.enqueue("1").Ref, Replayed: true})
		post("k2")
		p.send(&wire.OK{Ref: p.enqueue("1").Ref, Replayed: true})
		synctest.Wait()
		if len(got) != 2 || !got[0].Repeated || got[1].Repeated || !got[1].Replayed {
			t.Errorf("got %+v, want the first one repeated", got)
		}
		s.session.Close()
		p.closed()
	})
}

func TestSessionRepeatsOnlyWhatHasAKeyAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.post("1", "k1")
		s.post("2", "")
		s.post("3", "k3")
		p.enqueue("1")
		p.enqueue("2")
		p.enqueue("3")
		p.cut()
		p = s.arrives()
		s.want(answers{"2": ErrOutcomeUnknown.Error()})
		s.post("4", "")
		for i := range byte(3) {
			f := next[*wire.Enqueue](p)
			if want := []string{"1", "3", "4"}[i]; string(f.Payload) != want {
				t.Errorf("got %s as number %d, want %s", f.Payload, i, want)
			}
			p.send(&wire.OK{Ref: f.Ref, TaskID: taskID(i)})
		}
		s.want(answers{"1": "task 0", "2": "may or may not", "3": "task 1", "4": "task 2"})
		s.session.Close()
		p.closed()
	})
}

func TestSessionSendsWhatWasNeverSentAlsoWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		p.cut()
		synctest.Wait()
		s.post("1", "")
		p = s.arrives()
		p.ok(p.enqueue("1").Ref)
		s.want(answers{"1": "task 0"})
		s.session.Close()
		p.closed()
	})
}

func TestSessionRepeatsWhatWasRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.post("1", "")
		s.post("2", "key")
		s.post("3", "")
		one, two, three := p.enqueue("1"), p.enqueue("2"), p.enqueue("3")
		p.refuse(two.Ref, wire.CodeStorageFull)
		p.refuse(one.Ref, wire.CodeOverloaded)
		// An internal error leaves open what happened.
		p.refuse(three.Ref, wire.CodeInternal)
		p.ok(p.enqueue("1").Ref)
		p.ok(p.enqueue("2").Ref)
		s.want(answers{"1": "task", "2": "task", "3": "internal: because"})
		s.session.Close()
		p.closed()
	})
}

func TestSessionThatDoesNotWaitForSpaceGivesTheRefusalBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{NoWaitForSpace: true})
		s.post("1", "")
		s.post("2", "key")
		one, two := p.enqueue("1"), p.enqueue("2")
		p.refuse(two.Ref, wire.CodeStorageFull)
		p.refuse(one.Ref, wire.CodeOverloaded)
		p.ok(p.enqueue("1").Ref) // every other refusal for now is waited for
		s.want(answers{"1": "task", "2": "storage_full: because"})
		s.session.Close()
		p.closed()
	})
}

func TestSessionCountsRefusalsOfOneBurstOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		began := time.Now()
		var refusals []wire.ServerFrame
		for range 50 {
			if err := s.session.EnqueueAsync(context.Background(), request("1", ""), func(*Enqueued, error) {}); err != nil {
				t.Fatal(err)
			}
			refusals = append(refusals, &wire.ErrorFrame{Ref: p.enqueue("1").Ref, Err: wire.Refuse(wire.CodeOverloaded, "full")})
		}
		p.send(refusals...)
		for range 50 {
			p.ok(p.enqueue("1").Ref)
		}
		if waited := time.Since(began); waited > 2*firstBackoff {
			t.Errorf("it came back after %s", waited)
		}
		s.session.Close()
		p.closed()
	})
}

// Each time the server is overloaded the session offers half as much at once, and then one more
// with each round of answers: of a server that takes 300 at once it is refused three times,
// and then not for a long while.
func TestSessionOffersWhatAnOverloadedServerTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		const tasks = 40_000
		left, answered := tasks, 0
		go func() {
			for range tasks {
				_ = s.session.EnqueueAsync(context.Background(), request("1", ""), func(*Enqueued, error) { answered++ })
			}
		}()
		var refused []int
		for round := 0; left > 0; round++ {
			synctest.Wait()
			time.Sleep(2 * firstBackoff) // the pause of the session; the clock is simulated
			synctest.Wait()
			var frames []wire.ServerFrame
			for len(p.frames) > 0 {
				ref := next[*wire.Enqueue](p).Ref
				if len(frames) < 300 {
					frames = append(frames, &wire.OK{Ref: ref})
					left--
					continue
				}
				frames = append(frames, &wire.ErrorFrame{Ref: ref, Err: wire.Refuse(wire.CodeOverloaded, "full")})
			}
			if len(frames) > 300 {
				refused = append(refused, round)
			}
			p.send(frames...)
		}
		synctest.Wait()
		if len(refused) != 4 || refused[2] > 3 || refused[3] < 40 || answered != tasks {
			t.Errorf("it was refused in rounds %d, %d were answered", refused, answered)
		}
		s.session.Close()
		p.closed()
	})
}

func TestSessionFollowsTheAdviceWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.post("1", "")
		began := time.Now()
		p.send(&wire.ErrorFrame{Ref: p.enqueue("1").Ref,
			Err: &wire.Error{Code: wire.CodeRateLimited, Sentence: "slower", RetryAfterSeconds: 7}})
		p.ok(p.enqueue("1").Ref)
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("it came back after %s, want 7 s", waited)
		}
		s.session.Close()
		p.closed()
	})
}

func TestSessionEndsPostsWithWhatIsKnownWhenItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		s.post("1", "key")
		s.post("2", "")
		p.enqueue("1")
		p.refuse(p.enqueue("2").Ref, wire.CodeOverloaded)
		synctest.Wait()
		release := s.holdWrites()
		s.post("3", "")
		go func() { release() }()
		s.session.Close()
		s.session.Close()
		if err := s.session.EnqueueAsync(context.Background(), request("4", ""), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a post after the end: %v, want ErrClosed", err)
		}
		s.want(answers{"1": "may or may not", "2": "overloaded", "3": ErrClosed.Error()})
		p.closed()
	})
}

func TestSessionGivesUpAfterTheTimeItWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{GiveUpAfter: time.Minute})
		s.post("1", "key")
		p.enqueue("1")
		s.unreachable.Store(true)
		p.cut()
		began := time.Now()
		s.post("2", "")
		<-s.session.ended
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*maxBackoff {
			t.Errorf("it gave up after %s, want a minute", took)
		}
		s.want(answers{"1": "may or may not", "2": "no codeq server answers"})
	})
}

func TestSessionEndsWhenItIsRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		p.cut()
		s.post("1", "")
		p = s.upgraded()
		next[*wire.Hello](p)
		p.refuse(wire.Ref{}, wire.CodeUnauthenticated)
		<-s.session.ended
		s.want(answers{"1": "unauthenticated"})
		p.closed()
	})
}

func TestEnqueueEndsWithItsContextAndIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		ctx, cancel := context.WithCancelCause(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := s.session.Enqueue(ctx, "hash", 1, Key("key"))
			failed <- err
		}()
		p.enqueue("1")
		cancel(errTest)
		if err := <-failed; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errTest) {
			t.Errorf("error %v, want ErrOutcomeUnknown and the cause", err)
		}
		p.cut()
		p = s.arrives()
		synctest.Wait()
		p.silent()
		got := make(chan error, 1)
		go func() {
			_, err := s.session.Enqueue(context.Background(), "hash", 2)
			got <- err
		}()
		p.ok(p.enqueue("2").Ref)
		if err := <-got; err != nil {
			t.Error(err)
		}
		s.session.Close()
		p.closed()
	})
}

// cancelling cancels a task in the background.
func (s *shop) cancelling(ctx context.Context, id wire.TaskID) chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.session.Cancel(ctx, id) }()
	return ended
}

func TestSessionCancelsAndIsToldWhatEndedTheTaskBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		good, late := s.cancelling(context.Background(), taskID(1)), s.cancelling(context.Background(), taskID(2))
		for range 2 {
			f := next[*wire.Cancel](p)
			if f.TaskID == taskID(1) {
				p.ok(f.Ref)
				continue
			}
			p.send(&wire.ErrorFrame{Ref: f.Ref, Err: &wire.Error{
				Code: wire.CodeAlreadyTerminal, Sentence: "it has ended", Status: wire.StatusCompleted}})
		}
		if err := <-good; err != nil {
			t.Errorf("a cancel ended with %v", err)
		}
		var refusal *wire.Error
		if err := <-late; !errors.As(err, &refusal) || refusal.Status != wire.StatusCompleted {
			t.Errorf("a cancel that came too late ended with %v", err)
		}
		s.session.Close()
		p.closed()
	})
}

// A cancel may be said twice, so it is, like a post with a key.
func TestSessionRepeatsACancelUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		ended := s.cancelling(context.Background(), taskID(1))
		p.refuse(next[*wire.Cancel](p).Ref, wire.CodeInternal)
		next[*wire.Cancel](p)
		p.cut()
		p = s.arrives()
		f := next[*wire.Cancel](p)
		if f.TaskID != taskID(1) {
			t.Errorf("the cancel that is repeated is of %v", f.TaskID)
		}
		p.ok(f.Ref)
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		s.session.Close()
		p.closed()
	})
}

func TestCancelEndsWithItsContextAndWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		ctx, cancel := context.WithCancelCause(context.Background())
		left := s.cancelling(ctx, taskID(1))
		next[*wire.Cancel](p)
		cancel(errTest)
		if err := <-left; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errTest) {
			t.Errorf("a cancel that nobody waits for ended with %v", err)
		}
		open := s.cancelling(context.Background(), taskID(2))
		next[*wire.Cancel](p)
		s.session.Close()
		if err := <-open; !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("a cancel without an answer ended with %v", err)
		}
		if err := s.session.Cancel(context.Background(), taskID(3)); !errors.Is(err, ErrClosed) {
			t.Errorf("a cancel over a closed session ended with %v", err)
		}
		p.closed()
	})
}

// A refusal that says "later" makes good no doubt about an earlier sending: the task
// may be there, whatever was said to the second one.
func TestSessionKeepsADoubtOverALaterRefusal(t *testing.T) {
	for name, doubt := range map[string]func(s *shop, p *peer) *peer{
		"internal": func(s *shop, p *peer) *peer {
			p.refuse(p.enqueue("1").Ref, wire.CodeInternal)
			return p
		},
		"a lost link": func(s *shop, p *peer) *peer {
			p.enqueue("1")
			p.cut()
			return s.arrives()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newShop(t, SessionOptions{})
				s.post("1", "key")
				p = doubt(s, p)
				p.refuse(p.enqueue("1").Ref, wire.CodeOverloaded)
				synctest.Wait() // it rests
				s.session.Close()
				s.want(answers{"1": ErrOutcomeUnknown.Error()})
				p.closed()
			})
		})
	}
}
