package loadtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"codeq/client"
	"codeq/wire"
)

// Remote is a server behind its public protocol, as a Target. One value
// serves one run.
type Remote struct {
	at         address
	workload   *Workload
	producers  []*producerSession
	workers    []*workerSession
	http       *httpLine
	durability string
}

// NewRemote is the server at that address, in the forms that client.New takes.
// The error is a sentence about the address.
func NewRemote(url, token string, config *tls.Config) (*Remote, error) {
	c, err := client.New(url, client.WithoutWaiting())
	if err != nil {
		return nil, err
	}
	return &Remote{at: address{url: c.URL(), token: token, tls: config}}, nil
}

// Durability implements Target.
func (t *Remote) Durability() string { return t.durability }

// Open implements Target.
func (t *Remote) Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Line, error) {
	t.workload = w
	for range w.Sessions {
		worker := &workerSession{tally: newTally(), fail: fail, seated: make(chan struct{})}
		socket, welcome, err := openSocket(ctx, &t.at, worker.hear, worker.fail)
		if err != nil {
			return nil, err
		}
		t.durability = welcome.Durability
		worker.socket = socket
		t.workers = append(t.workers, worker)
	}
	if w.OverHTTP {
		var err error
		if t.http, err = newHTTPLine(&t.at, w, newTally); err != nil {
			return nil, err
		}
		lines := make([]Line, w.Sessions)
		for i := range lines {
			lines[i] = t.http
		}
		return lines, nil
	}
	var lines []Line
	for range w.Sessions {
		p := &producerSession{workload: w, tally: newTally()}
		var err error
		if p.socket, _, err = openSocket(ctx, &t.at, p.hear, fail); err != nil {
			return nil, err
		}
		t.producers = append(t.producers, p)
		lines = append(lines, p)
	}
	return lines, nil
}

// Work implements Target.
func (t *Remote) Work(ctx context.Context) error {
	for _, worker := range t.workers {
		worker.socket.send(wire.AppendClientFrame(nil, &wire.Subscribe{
			Ref: wire.Ref{Value: subscribeRef, Present: true}, Commands: t.workload.Commands, Window: t.workload.Window,
		}), 1)
		select {
		case <-worker.seated:
		case <-ctx.Done():
			return cause(ctx)
		}
	}
	return nil
}

// Close implements Target.
func (t *Remote) Close() error {
	for _, p := range t.producers {
		p.socket.close()
	}
	for _, w := range t.workers {
		w.close()
	}
	if t.http != nil {
		t.http.close()
	}
	return nil
}

// producerSession posts over one session. The number of a task is its ref.
type producerSession struct {
	workload *Workload
	socket   *socket
	encoders sync.Pool // of *encoder

	// owned by the reader
	tally *Tally
	frame frame
}

// encoder is what a producer makes frames with.
type encoder struct {
	frame   wire.Enqueue
	frames  []byte
	payload []byte
}

// Post implements Line.
func (p *producerSession) Post(first uint64, count int) error {
	e, _ := p.encoders.Get().(*encoder)
	if e == nil {
		e = &encoder{}
	}
	e.frames = e.frames[:0]
	inMessage := 0
	for n := first; n < first+uint64(count); n++ {
		if inMessage > 0 {
			e.frames = append(e.frames, ',')
		}
		e.payload = appendPayload(e.payload[:0], n, p.workload.PayloadBytes)
		e.frame.Command, e.frame.Payload = p.workload.CommandOf(n), e.payload
		e.frame.Ref = wire.Ref{Value: int64(n), Present: true}
		e.frames = wire.AppendClientFrame(e.frames, &e.frame)
		inMessage++
		if len(e.frames) >= messageBytes/2 {
			p.socket.send(e.frames, inMessage)
			e.frames, inMessage = e.frames[:0], 0
		}
	}
	if inMessage > 0 {
		p.socket.send(e.frames, inMessage)
	}
	p.encoders.Put(e)
	return nil
}

// hear runs in the reader.
func (p *producerSession) hear(data []byte) error {
	p.tally.Begin()
	defer p.tally.End()
	return scanMessage(data, &p.frame, p.take)
}

func (p *producerSession) take(f *frame) error {
	switch string(f.kind) {
	case "ok":
		id, ok := readID(f.taskID)
		if !ok {
			return fmt.Errorf("the answer to enqueue %d names no task: %q", f.ref, f.taskID)
		}
		p.tally.Acked(uint64(f.ref), id)
	case "error":
		refusal, err := refusalIn(f)
		if err != nil {
			return err
		}
		p.tally.Refused(uint64(f.ref), refusal)
	case "draining":
		return errors.New("the server is shutting down")
	}
	return nil
}

// refusalIn reads the error of an error frame.
func refusalIn(f *frame) (*wire.Error, error) {
	frames, err := wire.ParseServerMessage(append([]byte(nil), f.raw...))
	if err != nil {
		return nil, err
	}
	if len(frames) == 1 {
		if e, ok := frames[0].(*wire.ErrorFrame); ok {
			return e.Err, nil
		}
	}
	return nil, errors.New("read server message: an error frame without an error")
}
