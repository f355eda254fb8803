package session

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/paced"
	"codeq/internal/socket"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

func ref(n int64) wire.Ref { return wire.Ref{Value: n, Present: true} }

func TestTaskGoesFromProducerToWorkerAndItsResultStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		worker, welcome := b.open(`{"type":"hello","workerId":"ada"}`)
		if welcome.WorkerID != "ada" || welcome.TenantID != "default" || welcome.Version != "1.2.3" ||
			welcome.Durability != "fsync" || welcome.PingSeconds != 20 || welcome.SessionID.IsZero() {
			t.Errorf("welcome is %+v", welcome)
		}
		worker.send(&wire.Subscribe{Ref: ref(1), Commands: []string{"sha256"}, LeaseSeconds: 30, Window: 1})
		next[*wire.OK](worker)

		producer, _ := b.open(`{"type":"hello"}`)
		producer.say(`[{"type":"enqueue","ref":7,"command":"sha256","payload":{"n": 1.0}},` +
			`{"type":"enqueue","ref":8,"command":"sha256","payload":"second"}]`)
		first, second := next[*wire.OK](producer), next[*wire.OK](producer)
		if first.Ref.Value+second.Ref.Value != 15 || first.TaskID.IsZero() {
			t.Errorf("answers are %+v and %+v", first, second)
		}
		payloads := map[string]bool{}
		for range 2 {
			task := next[*wire.TaskFrame](worker)
			worker.silent() // its window is 1
			payloads[string(task.Task.Payload)] = true
			worker.send(&wire.Received{Through: task.Seq})
			worker.send(&wire.Result{
				Ref: ref(2), TaskRef: wire.TaskRef{TaskID: task.Task.ID, Token: task.Token},
				ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{"sha":"x"}`)},
			})
			if ok := next[*wire.OK](worker); ok.TaskID != task.Task.ID {
				t.Errorf("ok names %v, want %v", ok.TaskID, task.Task.ID)
			}
			_, result, err := b.store.ReadResult("default", task.Task.ID)
			if err != nil || result == nil || string(result.Result) != `{"sha":"x"}` {
				t.Errorf("stored result is %+v, %v", result, err)
			}
		}
		if !payloads[`{"n": 1.0}`] || !payloads[`"second"`] {
			t.Errorf("payloads are %v", payloads)
		}
		if n := b.registry.Count(); n != 2 {
			t.Errorf("%d sessions, want 2", n)
		}
	})
}

func TestUnconfirmedTaskOfADeadSessionGoesToTheNextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		doomed := b.connect(true, false) // no pong, so nothing is confirmed
		doomed.say(`{"type":"hello"}`)
		next[*wire.Welcome](doomed)
		doomed.say(`[{"type":"subscribe","commands":["a"]},{"type":"enqueue","command":"a","payload":1}]`)
		if got := next[*wire.TaskFrame](doomed); got.Task.Deliveries != 1 {
			t.Errorf("delivery %d", got.Task.Deliveries)
		}
		waiting, _ := b.open(`{"type":"hello"}`)
		waiting.say(`{"type":"subscribe","ref":1,"commands":["a"]}`)
		next[*wire.OK](waiting)
		waiting.silent()

		start := time.Now()
		_ = doomed.conn.NetConn().Close() // how a machine dies
		if got := next[*wire.TaskFrame](waiting); got.Task.Attempts != 0 || got.Task.Deliveries != 2 {
			t.Errorf("attempts %d, deliveries %d", got.Task.Attempts, got.Task.Deliveries)
		}
		if passed := time.Since(start); passed > time.Second {
			t.Errorf("it took %v", passed)
		}
		if n := b.registry.Count(); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

func TestPongConfirmsForClientsThatDoNotSendReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		doomed, _ := b.open(`{"type":"hello"}`)
		doomed.say(`[{"type":"subscribe","commands":["a"]},{"type":"enqueue","command":"a","payload":1}]`)
		next[*wire.TaskFrame](doomed)
		synctest.Wait() // the pong is on its way
		waiting, _ := b.open(`{"type":"hello"}`)
		waiting.say(`{"type":"subscribe","commands":["a"]}`)
		start := time.Now()
		_ = doomed.conn.NetConn().Close() // how a machine dies
		if got := next[*wire.TaskFrame](waiting); got.Task.Attempts != 1 {
			t.Errorf("attempts %d, want 1: a confirmed task is a lost lease", got.Task.Attempts)
		}
		if passed := time.Since(start); passed < wire.ResumeGraceSeconds*time.Second {
			t.Errorf("it came back after %v, before the grace was over", passed)
		}
	})
}

func TestSocketWithoutHelloIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		start := time.Now()
		c := b.connect(false, false)
		if code := c.closeCode(); code != CloseIdle {
			t.Errorf("closed with %d, want %d", code, CloseIdle)
		}
		if passed := time.Since(start); passed != 5*time.Second {
			t.Errorf("closed after %v, want 5s", passed)
		}
	})
}

func TestClientThatAnswersPingsLivesAndOneThatDoesNotIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		lively, _ := b.open(`{"type":"hello"}`)
		start := time.Now()
		c := b.connect(true, false)
		c.say(`{"type":"hello"}`)
		next[*wire.Welcome](c)
		if code := c.closeCode(); code != CloseIdle {
			t.Errorf("closed with %d, want %d", code, CloseIdle)
		}
		if passed := time.Since(start); passed != 60*time.Second {
			t.Errorf("closed after %v, want 60s", passed)
		}
		time.Sleep(10 * time.Minute)
		lively.say(`{"type":"window","ref":1,"size":1}`)
		next[*wire.OK](lively)
	})
}

func TestClientPingIsEchoedWithItsPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, _ := b.open(`{"type":"hello"}`)
		for _, payload := range []string{"", "abc", strings.Repeat("x", 125)} {
			if err := c.conn.WritePing([]byte(payload)); err != nil {
				t.Fatal(err)
			}
			if got := <-c.pongs; got != payload {
				t.Errorf("pong %q, want %q", got, payload)
			}
		}
	})
}

// cutAfter is when a client is cut that takes nothing: a second in which a write is
// stuck, and a window in which nothing was taken.
const cutAfter = time.Second + paced.Window

func TestClientThatDoesNotReadIsCutAfterAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		deaf := b.connect(false, true)
		start := time.Now()
		deaf.say(`{"type":"hello"}`)
		deaf.say(`[{"type":"subscribe","commands":["a"]},{"type":"enqueue","command":"a","payload":1}]`)
		synctest.Wait()
		if n := b.registry.Count(); n != 1 {
			t.Fatalf("%d sessions, want 1", n)
		}
		other, _ := b.open(`{"type":"hello"}`)
		other.say(`{"type":"subscribe","commands":["a"]}`)
		if got := next[*wire.TaskFrame](other); got.Task.Attempts != 0 {
			t.Errorf("attempts %d, want 0: the frame never left", got.Task.Attempts)
		}
		if passed := time.Since(start); passed != cutAfter {
			t.Errorf("cut after %v, want %v", passed, cutAfter)
		}
		if n := b.registry.Count(); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

func TestClientOfTooManyUnansweredRequestsIsNotReadAndNotTakenForIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := &swallowing{taken: make(chan shard.Message, 100_000)}
		b := newBench(t, setup{engine: func(e *shardactor.Engine) Engine {
			shards.Engine = e
			return shards
		}})
		c := b.connect(true, false)
		c.say(`{"type":"hello"}`)
		next[*wire.Welcome](c)

		const extra = 100
		frame := `{"type":"abandon","taskId":"` + testTask(1).String() + `","leaseToken":"` + testToken(1).String() + `","ref":1},`
		for range 2 {
			c.say("[" + strings.TrimSuffix(strings.Repeat(frame, (wire.MaxUnansweredRequests+extra)/2), ",") + "]")
		}
		synctest.Wait()
		if n := len(shards.taken); n != wire.MaxUnansweredRequests {
			t.Fatalf("%d requests were taken, want %d", n, wire.MaxUnansweredRequests)
		}
		behind := make(chan error, 1)
		go func() { behind <- c.conn.WriteString(`{"type":"window","size":1,"ref":2}`) }()
		time.Sleep(10 * time.Minute)
		select {
		case err := <-behind:
			t.Fatalf("the message behind was read: %v", err)
		default:
		}
		if n := b.registry.Count(); n != 1 {
			t.Fatalf("%d sessions, want 1: the client was taken for idle", n)
		}

		answers := make(map[int64]int)
		for range wire.MaxUnansweredRequests + extra {
			m := (<-shards.taken).(*shard.End)
			m.Sink.Deliver([]shard.Effect{&shard.Requeued{Ref: m.Ref, TaskID: m.TaskID, Status: wire.NackRequeued}})
			answers[next[*wire.OK](c).Ref.Value]++
		}
		if err := <-behind; err != nil {
			t.Fatal(err)
		}
		answers[next[*wire.OK](c).Ref.Value]++
		if answers[1] != wire.MaxUnansweredRequests+extra || answers[2] != 1 {
			t.Errorf("answers by ref: %v", answers)
		}
	})
}

func TestEffectsFillMessagesUpToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, _ := b.open(`{"type":"hello"}`)
		big := strings.Repeat("x", wire.MaxPayloadBytes-2)
		const tasks = 40
		c.say(`{"type":"enqueue","command":"a","priority":9,"payload":"` + big + `"}`)
		for range tasks {
			c.say(`{"type":"enqueue","command":"a","payload":"` + big[:20_000] + `"}`)
		}
		c.say(`{"type":"subscribe","commands":["a"],"window":1000}`)
		for range tasks + 1 {
			next[*wire.TaskFrame](c)
		}
		c.silent()
	})
}

func TestFramesOfOneDeliveryShareAMessage(t *testing.T) {
	s := &session{}
	frame := Outgoing{Frame: &wire.OK{Ref: ref(1)}}
	large := Outgoing{
		Frame:        &wire.TaskFrame{Task: &wire.Task{Payload: make([]byte, wire.MaxServerMessageBytes)}},
		payloadBytes: wire.MaxServerMessageBytes,
	}
	odd := Outgoing{Frame: &wire.ErrorFrame{Err: wire.Refuse(wire.CodeInternal, strings.Repeat("x", wire.MaxServerMessageBytes))}}
	for _, c := range []struct {
		sending []Outgoing
		want    int
	}{
		{[]Outgoing{frame}, 1},
		{[]Outgoing{frame, frame, frame}, 3},
		{[]Outgoing{frame, large, frame}, 1},
		{[]Outgoing{large, frame}, 1},
		{[]Outgoing{frame, odd}, 1},
		{[]Outgoing{odd, odd}, 1},
	} {
		s.sending = c.sending
		if got := s.compose(); got != c.want {
			t.Errorf("%d of %d frames in a message, want %d", got, len(c.sending), c.want)
		}
		if s.buffer[0] != '[' || s.buffer[len(s.buffer)-1] != ']' {
			t.Errorf("the message is no list: %.20q … %.20q", s.buffer, s.buffer[len(s.buffer)-20:])
		}
	}
}

func TestTasksAreNotSentInFrontOfAClose(t *testing.T) {
	s := &session{talk: openConversation(&testRouter{shards: 1})}
	s.talk.Step(scriptEpochMs, &serverCloses{})
	s.closing = &Closing{Code: CloseRestart}
	task, answer := Outgoing{Frame: &wire.TaskFrame{}}, Outgoing{Frame: &wire.OK{}}
	s.sending, s.outbox = []Outgoing{task, answer}, []Outgoing{answer, task}
	if turn := s.next(); turn.closing != nil || len(s.sending) != 2 {
		t.Fatalf("close %v and %d frames, want 2 answers first", turn.closing, len(s.sending))
	}
	s.sending = nil
	if turn := s.next(); turn.closing == nil {
		t.Error("the close does not follow")
	}
}

// ending is a connection that only counts how often it was closed.
type ending struct {
	net.Conn
	closes int
}

func (e *ending) Close() error { e.closes++; return nil }

func TestFailedWriteCutsTheSocketUnlessGwsHasSaidGoodbyeOnIt(t *testing.T) {
	registry := NewRegistry(Options{NowMs: func() int64 { return scriptEpochMs }})
	for _, parting := range []bool{false, true} {
		conn := new(ending)
		s := newSession(registry, socket.New(conn), nil)
		s.socket.Parting.Store(parting)
		if s.wrote(net.ErrClosed) {
			t.Error("the writer goes on")
		}
		if cut := conn.closes > 0; cut == parting {
			t.Errorf("parting %t, cut %t", parting, cut)
		}
		if !s.talk.Over() {
			t.Error("the session lives on")
		}
	}
}

func TestShutdownLetsWorkersFinishAndClosesIdleSessionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		idle, _ := b.open(`{"type":"hello"}`)
		greeting := b.connect(false, false)
		busy, _ := b.open(`{"type":"hello"}`)
		busy.say(`[{"type":"subscribe","commands":["a"]},{"type":"enqueue","command":"a","payload":1}]`)
		task := next[*wire.TaskFrame](busy)

		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.registry.Shutdown(ctx) }()
		if got := next[*wire.Draining](idle); got.GraceSeconds != 30 {
			t.Errorf("grace is %d seconds, want 30", got.GraceSeconds)
		}
		for name, c := range map[string]*client{"idle": idle, "greeting": greeting} {
			if code := c.closeCode(); code != CloseRestart {
				t.Errorf("%s closed with %d, want %d", name, code, CloseRestart)
			}
		}
		next[*wire.Draining](busy)
		time.Sleep(10 * time.Second)
		busy.say(fmt.Sprintf(`[{"type":"enqueue","ref":1,"command":"a","payload":1},`+
			`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","result":{}}]`, task.Task.ID, task.Token))
		if got := next[*wire.ErrorFrame](busy); got.Err.Code != wire.CodeDraining {
			t.Errorf("enqueue got %v, want draining", got.Err)
		}
		next[*wire.OK](busy)
		if code := busy.closeCode(); code != CloseRestart {
			t.Errorf("closed with %d, want %d", code, CloseRestart)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if refusal := b.registry.reserve(); refusal == nil || refusal.Code != wire.CodeDraining {
			t.Errorf("a new socket gets %v, want draining", refusal)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		busy, _ := b.open(`{"type":"hello"}`)
		busy.say(`[{"type":"subscribe","commands":["a"]},{"type":"enqueue","command":"a","payload":1}]`)
		next[*wire.TaskFrame](busy)
		deaf := b.connect(false, true)
		deaf.say(`{"type":"hello"}`)
		synctest.Wait()

		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := b.registry.Shutdown(ctx)
		if err == nil || !strings.Contains(err.Error(), "1 did not take") {
			t.Errorf("shutdown says %v, want that 1 was cut", err)
		}
		if passed := time.Since(start); passed != 3*time.Second+closeGrace {
			t.Errorf("shutdown took %v", passed)
		}
		next[*wire.Draining](busy)
		if code := busy.closeCode(); code != CloseRestart {
			t.Errorf("closed with %d, want %d", code, CloseRestart)
		}
		if n := b.registry.Count(); n != 0 {
			t.Errorf("%d sessions after shutdown", n)
		}
	})
}
