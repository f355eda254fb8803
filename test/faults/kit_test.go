package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

var heavyFlag = flag.Bool("faults.heavy", false, "as long and as much as the reports speak of")

func TestMain(m *testing.M) {
	flag.Parse()
	blackbox.HearSignals()
	// The tests wait much more than they work, but for the heavy forms.
	if err := flag.Set("test.parallel", strconv.Itoa(scale(4, 1)*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit))
}

// patience is how long something may take that must happen and has no bound of
// its own.
var patience time.Duration

func init() {
	flag.DurationVar(&patience, "faults.patience", 3*time.Minute, "how long something may take that must happen")
}

const (
	// command is the queue of every test that needs one.
	command = "c"
	// pingFor is the time between pings where a test waits for a server to notice
	// that somebody is gone, and noticeWithin how long that takes at most: the
	// ping after the silence began and two without an answer, and a loaded machine.
	pingFor      = 2 * time.Second
	noticeWithin = 3*pingFor + slack
	// resumeGrace is how long the tasks of a lost session wait for it.
	resumeGrace = wire.ResumeGraceSeconds * time.Second
	// slack is what a loaded machine may add to any bound. It lies far below the
	// leases of the tasks for which something must happen in time.
	slack = 30 * time.Second
	// aWhile is long enough for a word that is on its way.
	aWhile = 3 * time.Second
	// lookAgain is the pause between two looks at what cannot tell by itself.
	lookAgain = 20 * time.Millisecond
)

// scale chooses between the form of the suite and that of make faults.
func scale[N any](light, heavy N) N {
	if *heavyFlag {
		return heavy
	}
	return light
}

// site is one server and who speaks to it.
type site struct {
	t      *testing.T
	server *blackbox.Server
	api    *blackbox.API
	ctx    context.Context
}

// newWatchfulSite is a site whose server soon notices who is gone. A client
// that is starved for as long is gone too, so it is only for tests of that.
func newWatchfulSite(t *testing.T) *site {
	t.Helper()
	return newSite(t, "--ping-seconds", fmt.Sprint(int(pingFor/time.Second)))
}

// newSite starts a server for a test that runs beside others.
func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	t.Parallel()
	x := &site{t: t, ctx: t.Context()}
	x.server = blackbox.Serve(t, args...)
	x.api = blackbox.NewAPI(x.server.Addr)
	t.Cleanup(x.api.Close)
	return x
}

// post makes tasks of one command; the payload of each is its number, followed
// by so many further bytes.
func (x *site) post(command string, n, bytes int) []wire.TaskID {
	x.t.Helper()
	ids := make([]wire.TaskID, 0, n)
	fill := strings.Repeat("x", bytes)
	const each = 50
	for len(ids) < n {
		var batch []wire.EnqueueRequest
		for i := len(ids); i < min(n, len(ids)+each); i++ {
			payload := fmt.Appendf(nil, `{"n":%d,"fill":"%s"}`, i, fill)
			batch = append(batch, wire.EnqueueRequest{Command: command, Payload: payload, MaxAttempts: wire.DefaultMaxAttempts})
		}
		answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, batch)))
		if err != nil {
			x.t.Fatalf("post %d tasks: %v", len(batch), err)
		}
		ids = append(ids, idsIn(x.t, answer.Body)...)
	}
	return ids
}

func (x *site) read(id wire.TaskID) *wire.Task {
	x.t.Helper()
	task, err := x.api.Read(x.ctx, id)
	if err != nil {
		x.t.Fatalf("read %v: %v", id, err)
	}
	return task
}

// peer opens a session at an address, the server's or a proxy's.
func (x *site) peer(addr, worker string) *blackbox.Peer {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	p, err := blackbox.Dial(ctx, addr, &wire.Hello{WorkerID: worker})
	if err != nil {
		x.t.Fatalf("open the session of %s: %v", worker, err)
	}
	x.t.Cleanup(p.Close)
	return p
}

// worker is a peer that takes tasks of the command.
func (x *site) worker(addr, name string, window, leaseSeconds int) *blackbox.Peer {
	x.t.Helper()
	p := x.peer(addr, name)
	if err := p.Subscribe(x.ctx, command, window, leaseSeconds); err != nil {
		x.t.Fatalf("subscribe %s: %v", name, err)
	}
	return p
}

// take waits for the next delivery.
func (x *site) take(p *blackbox.Peer, within time.Duration) *wire.TaskFrame {
	x.t.Helper()
	select {
	case f := <-p.Tasks:
		return f
	case <-time.After(within):
		x.t.Fatalf("no task within %v", within)
	case <-p.Gone():
		x.t.Fatalf("the session ended with %d before a task came", p.CloseCode())
	}
	return nil
}

// takeAll waits for n deliveries.
func (x *site) takeAll(p *blackbox.Peer, n int, within time.Duration) []*wire.TaskFrame {
	x.t.Helper()
	late := time.Now().Add(within)
	var frames []*wire.TaskFrame
	for len(frames) < n {
		select {
		case f := <-p.Tasks:
			frames = append(frames, f)
		case <-time.After(time.Until(late)):
			x.t.Fatalf("%d of %d tasks came within %v", len(frames), n, within)
		}
	}
	return frames
}

// nothing makes sure that no task comes for a while.
func (x *site) nothing(p *blackbox.Peer, watch time.Duration) {
	x.t.Helper()
	select {
	case f := <-p.Tasks:
		x.t.Errorf("task %v came, delivery %d", f.Task.ID, f.Task.Deliveries)
	case <-time.After(watch):
	}
}

func (x *site) complete(p *blackbox.Peer, f *wire.TaskFrame, result string) {
	x.t.Helper()
	if err := p.Complete(x.ctx, blackbox.RefOf(f), result); err != nil {
		x.t.Errorf("complete %v: %v", f.Task.ID, err)
	}
}

// refused makes sure that an error is a refusal with that code.
func (x *site) refused(err error, code wire.Code) {
	x.t.Helper()
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		x.t.Errorf("the answer is %v, want %s", err, code)
	}
}

// eventually waits for what cannot tell by itself.
func (x *site) eventually(within time.Duration, what string, holds func() bool) {
	x.t.Helper()
	for late := time.Now().Add(within); !holds(); {
		if time.Now().After(late) {
			x.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(lookAgain) // the state of another process, which does not tell
	}
}

// figures are those of one queue; a queue that is empty and forgotten has none.
func (x *site) figures(command string) wire.QueueFigures {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues", "")
	if err != nil {
		x.t.Fatalf("read the queues: %v", err)
	}
	queues, err := wire.ParseQueueList(answer.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, q := range queues {
		if q.Command == command {
			return q
		}
	}
	return wire.QueueFigures{Command: command}
}

// inProgress waits until so many tasks of the command are with workers.
func (x *site) inProgress(n int, within time.Duration) {
	x.t.Helper()
	x.eventually(within, fmt.Sprintf("%d tasks in progress", n), func() bool { return x.figures(command).InProgress == int64(n) })
}

// sdk is a client of the Go SDK at an address.
func (x *site) sdk(addr string, options ...client.Option) *client.Client {
	x.t.Helper()
	c, err := client.New(addr, options...)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(c.Close)
	return c
}

// inBackground runs something until the end of the test, or until stop, which
// returns when it has ended.
func (x *site) inBackground(f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	x.t.Cleanup(stop)
	return stop
}
