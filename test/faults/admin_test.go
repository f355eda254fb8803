package faults

import (
	"context"
	"testing"

	"codeq/client"
	"codeq/wire"
)

// patient is a worker of the SDK whose handlers wait until they may end or lose their task.
type patient struct {
	welcomes chan wire.SessionID
	began    chan wire.TaskID
	lost     chan wire.TaskID
	mayEnd   chan struct{}
	ended    chan client.Ending
	stop     func()
}

func (x *site) patient(name string, window int) *patient {
	x.t.Helper()
	p := &patient{
		make(chan wire.SessionID, 10), make(chan wire.TaskID, 10), make(chan wire.TaskID, 10), make(chan struct{}), make(chan client.Ending, 10), nil,
	}
	w, err := x.sdk(x.server.Addr).NewWorker(client.WorkerOptions{
		Commands: []string{command}, Window: window, WorkerID: name,
		Handler: func(ctx context.Context, d client.Delivery) client.Outcome {
			p.began <- d.Task.ID
			select {
			case <-p.mayEnd:
			case <-ctx.Done():
				p.lost <- d.Task.ID
			}
			return client.Complete([]byte(`{}`))
		},
		Connected: func(welcome *wire.Welcome) { p.welcomes <- welcome.SessionID },
		Ended:     func(e client.Ending) { p.ended <- e },
	})
	x.fine("a worker", err)
	p.stop = x.inBackground(func(ctx context.Context) { _ = w.Run(ctx) }) // ends with the test
	return p
}

// adminRuns runs a command of the program that must succeed.
func (x *site) adminRuns(args ...string) {
	x.t.Helper()
	if code, _, said := x.codeq(x.t, args...); code != 0 {
		x.t.Fatalf("codeq %v ended with %d: %s", args, code, said)
	}
}

// An admin drains the session of a worker, takes its task away and disconnects it. The
// worker keeps its task until then, gets no other, and takes tasks again afterwards.
func TestAnAdminDrainsTakesBackAndDisconnects(t *testing.T) {
	x := newSite(t)
	ada := x.patient("ada", 2)
	session := <-ada.welcomes
	first := x.post(command, 1, 0)[0]
	if got := <-ada.began; got != first {
		t.Fatalf("ada has %v, want %v", got, first)
	}
	x.adminRuns("session", "drain", session.String())
	second := x.post(command, 1, 0)[0]
	bob := x.patient("bob", 2)
	if got := <-bob.began; got != second {
		t.Errorf("bob has %v, want %v, which ada must not get", got, second)
	}
	x.adminRuns("task", "take-back", first.String())
	if got := <-ada.lost; got != first {
		t.Errorf("ada lost %v, want %v", got, first)
	}
	if got := <-bob.began; got != first {
		t.Errorf("bob has %v, want %v, which was taken from ada", got, first)
	}
	if e := <-ada.ended; e.Err == nil {
		t.Errorf("the outcome of ada was accepted: %+v", e)
	}
	task := x.read(first)
	if len(task.History) != 1 || task.History[0].Cause != "taken_back" || task.Attempts != 0 || task.Deliveries != 2 {
		t.Errorf("the task is %+v", task)
	}
	close(bob.mayEnd)
	for range 2 {
		if e := <-bob.ended; e.Err != nil {
			t.Error(e.Err)
		}
	}
	bob.stop()
	x.adminRuns("session", "disconnect", session.String())
	if got := <-ada.welcomes; got != session {
		t.Errorf("ada came back as session %v, want %v", got, session)
	}
	third := x.post(command, 1, 0)[0]
	if got := <-ada.began; got != third {
		t.Errorf("ada has %v, want %v", got, third)
	}
	close(ada.mayEnd)
	if e := <-ada.ended; e.Err != nil {
		t.Error(e.Err)
	}
}
