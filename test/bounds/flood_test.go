package bounds

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

const (
	// mayGrowBytes is what a server may grow by over clients that do not read:
	// the mailboxes and outboxes of its default budget, and what the collector has
	// not taken back.
	mayGrowBytes = 192 << 20
	// patient is how long something may take that must happen.
	patient = 3 * time.Minute
)

// scene is one server and those who use it as they should.
type scene struct {
	t      *testing.T
	server *blackbox.Server
	api    *blackbox.API
	ctx    context.Context
}

// newScene is for a test that runs beside others, each with its own server.
func newScene(t *testing.T, args ...string) *scene {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
	t.Cleanup(cancel)
	s := &scene{t: t, server: blackbox.Serve(t, args...), ctx: ctx}
	s.api = blackbox.NewAPI(s.server.Addr)
	t.Cleanup(s.api.Close)
	return s
}

func (s *scene) peer(addr string) *blackbox.Peer {
	s.t.Helper()
	p, err := blackbox.Dial(s.ctx, addr, &wire.Hello{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.Close)
	return p
}

// held gives a new worker of a command so many tasks.
func (s *scene) held(command string, n int) (*blackbox.Peer, []*wire.TaskFrame) {
	s.t.Helper()
	p := s.peer(s.server.Addr)
	if err := p.Subscribe(s.ctx, command, n, 3600); err != nil {
		s.t.Fatal(err)
	}
	s.post(command, n, 2)
	frames := make([]*wire.TaskFrame, 0, n)
	for len(frames) < n {
		frames = append(frames, s.take(p))
	}
	return p, frames
}

func (s *scene) take(p *blackbox.Peer) *wire.TaskFrame {
	s.t.Helper()
	select {
	case f := <-p.Tasks:
		return f
	case <-p.Gone():
		s.t.Fatalf("a session that does nothing wrong ended with %d", p.CloseCode())
	case <-s.ctx.Done():
		s.t.Fatal("a task does not come")
	}
	return nil
}

// post makes tasks with payloads of so many bytes.
func (s *scene) post(command string, n, bytes int) {
	s.t.Helper()
	payload := `"` + strings.Repeat("x", bytes-2) + `"`
	for range n {
		if _, err := s.api.Post(s.ctx, `{"command":"`+command+`","payload":`+payload+`}`); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ready is how many tasks of a command wait.
func (s *scene) ready(command string) int64 {
	s.t.Helper()
	answer, err := s.api.Do(s.ctx, http.MethodGet, "/admin/queues", "")
	if err != nil {
		s.t.Fatal(err)
	}
	queues, err := wire.ParseQueueList(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, q := range queues {
		if q.Command == command {
			return q.Ready
		}
	}
	return 0
}

// flood posts batches of tasks until somebody was told that the mailbox is full.
func (s *scene) flood(taken, turnedAway *atomic.Int64) {
	const atOnce = 1000
	batch := make([]wire.EnqueueRequest, atOnce)
	for i := range batch {
		batch[i] = wire.EnqueueRequest{Command: "flood", Payload: []byte("1"), MaxAttempts: wire.DefaultMaxAttempts}
	}
	body := string(wire.AppendBatchRequest(nil, batch))
	for turnedAway.Load() == 0 && s.ctx.Err() == nil {
		_, err := s.api.Do(s.ctx, http.MethodPost, "/tasks/batch", body)
		var refusal *wire.Error
		switch {
		case err == nil: // with one shard it is taken as a whole or not at all
			taken.Add(atOnce)
		case errors.As(err, &refusal) && refusal.Code == wire.CodeOverloaded && refusal.RetryAfterSeconds > 0:
			turnedAway.Add(atOnce)
		default:
			s.t.Errorf("a batch in a flood: %v", err)
		}
	}
}

// A full mailbox is an answer. Who posts into it is told to come back, and what
// was taken is there, exactly; what keeps or ends work that is under way is never
// turned away.
func TestFullMailboxTurnsAwayNewWorkOnly(t *testing.T) {
	const tasks, producers = 100, 12
	s := newScene(t, "--shards", "1")
	worker, frames := s.held("kept", tasks)
	var taken, turnedAway atomic.Int64
	var flooding sync.WaitGroup
	for range producers {
		flooding.Go(func() { s.flood(&taken, &turnedAway) })
	}
	flooded := make(chan struct{})
	go func() {
		flooding.Wait()
		close(flooded)
	}()
	for n, over := 0, false; n < len(frames) || !over; n++ {
		select {
		case <-flooded:
			over = true
		default:
		}
		if _, err := worker.Ask(s.ctx, func(ref wire.Ref) wire.ClientFrame { return &wire.Heartbeat{Ref: ref} }); err != nil {
			t.Fatalf("a heartbeat in a flood: %v", err)
		}
		if n < len(frames) {
			if err := worker.Complete(s.ctx, blackbox.RefOf(frames[n]), `{}`); err != nil {
				t.Fatalf("a result in a flood: %v", err)
			}
		}
	}
	t.Logf("%d tasks were taken, %d turned away", taken.Load(), turnedAway.Load())
	if turnedAway.Load() == 0 {
		t.Error("no mailbox was ever full")
	}
	if ready := s.ready("flood"); ready != taken.Load() {
		t.Errorf("%d tasks wait, %d were taken", ready, taken.Load())
	}
}

// Many workers that do not read share one budget of what waits for them. They
// are cut, everything goes to one that reads, and nobody else loses a session.
func TestWorkersThatDoNotReadFillNoMemory(t *testing.T) {
	const stuck, tasks, bytes = 24, 400, 64 << 10
	// What fits into the buffers of the system is missed by the pings only.
	s := newScene(t, "--ping-seconds", "5")
	proxy := blackbox.NewProxy(t, s.server.Addr)
	bystander, frames := s.held("kept", 1)
	var deaf []*blackbox.Peer
	for range stuck {
		p := s.peer(proxy.Addr)
		if err := p.Subscribe(s.ctx, "big", wire.MaxWindow, 3600); err != nil {
			t.Fatal(err)
		}
		deaf = append(deaf, p)
	}
	proxy.Hold(blackbox.Down)
	before := s.server.ResidentBytes()
	s.post("big", tasks, bytes)
	if grown := s.server.ResidentBytes() - before; grown > mayGrowBytes {
		t.Errorf("the server grew by %d MiB over %d workers that do not read", grown>>20, stuck)
	}
	reader := s.peer(s.server.Addr)
	if err := reader.Subscribe(s.ctx, "big", 50, 3600); err != nil {
		t.Fatal(err)
	}
	for range tasks {
		if err := reader.Complete(s.ctx, blackbox.RefOf(s.take(reader)), `{}`); err != nil {
			t.Fatal(err)
		}
	}
	// Their sockets end at the server; what the proxy holds is all they still get.
	proxy.Cut()
	for _, p := range deaf {
		<-p.Gone()
	}
	if err := bystander.Complete(s.ctx, blackbox.RefOf(frames[0]), `{}`); err != nil {
		t.Errorf("a session that had nothing to do with it: %v", err)
	}
}

// A client that asks without end and reads no answers is not read any more and
// then cut. It costs a bounded amount of memory, and others are served.
func TestClientThatFloodsAndDoesNotReadIsCut(t *testing.T) {
	s := newScene(t)
	proxy := blackbox.NewProxy(t, s.server.Addr)
	bystander, frames := s.held("kept", 1)
	p := s.peer(proxy.Addr)
	if p.Welcome.MaxUnanswered != wire.MaxUnansweredRequests {
		t.Errorf("the welcome states %d", p.Welcome.MaxUnanswered)
	}
	proxy.Hold(blackbox.Down)
	before := s.server.ResidentBytes()
	message := make([]wire.ClientFrame, 500)
	for i := range message {
		// A refusal names what was asked, so that answers fill the way back.
		message[i] = &wire.Cancel{Ref: wire.Ref{Value: int64(i), Present: true}, TaskID: wire.TaskID{byte(i)}}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for p.Say(message...) == nil {
			continue
		}
	}()
	// While it goes on, others get and end their tasks.
	for n := 0; ; n++ {
		s.post("kept", 1, 2)
		if n == 0 {
			if err := bystander.Complete(s.ctx, blackbox.RefOf(frames[0]), `{}`); err != nil {
				t.Fatal(err)
			}
		}
		if err := bystander.Complete(s.ctx, blackbox.RefOf(s.take(bystander)), `{}`); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-s.ctx.Done():
			t.Fatal("a client that floods and does not read is not cut")
		default:
			continue
		}
		break
	}
	if grown := s.server.ResidentBytes() - before; grown > mayGrowBytes {
		t.Errorf("the server grew by %d MiB over a client that does not read", grown>>20)
	}
	t.Logf("it sent %d KiB", proxy.CarriedBytes(blackbox.Up)>>10)
}
