package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeq/wire"
)

// Limits of what one session has unanswered, also if the server allows more.
const (
	maxPosts     = 2048
	maxPostBytes = 4 << 20
	// postOverheadBytes is the weight of a post besides its payload.
	postOverheadBytes = 512
)

// SessionOptions are the options of a Session. The zero value is usable.
type SessionOptions struct {
	// GiveUpAfter is how long the session tries to connect, the first time and again.
	// After it every unanswered request ends with the last error. 0 means for ever.
	GiveUpAfter time.Duration
	// NoWaitForSpace ends a request that is refused because the disk of the server is nearly full
	// (storage_full) with that refusal. Without it the session repeats the request until there is space.
	NoWaitForSpace bool
}

// Session posts and cancels tasks over one WebSocket, with up to 2,048 requests in
// flight, and reconnects by itself. If an answer is lost, the session repeats a request
// with an idempotency key and a cancel; any other request ends with ErrOutcomeUnknown. It
// repeats every request that the server refuses for now, unless the options say otherwise. Make it with Client.Dial and end
// it with Close. All methods may be called from any goroutine.
type Session struct {
	loop   *sessionLoop
	events chan func() // for the loop
	stop   chan struct{}
	ended  chan struct{}
	once   sync.Once
	// err is why the session ended; set before ended is closed.
	err error
}

// posting is one request under way: a new task, or a cancel. The loop owns it from the
// moment it was accepted, except for abandoned.
type posting struct {
	request *wire.EnqueueRequest // nil for a cancel
	cancel  wire.TaskID
	done    func(*Enqueued, error)
	ref     wire.Ref
	sent    bool // handed to the writer of the present link
	unsure  bool // an earlier sending had no definite answer
	refusal *wire.Error
	// abandoned: nobody waits any more, so it is not repeated.
	abandoned atomic.Bool
}

func (p *posting) bytes() int {
	if p.request == nil {
		return postOverheadBytes
	}
	return len(p.request.Payload) + postOverheadBytes
}

// frame is the frame of the request.
func (p *posting) frame() wire.ClientFrame {
	if p.request == nil {
		return &wire.Cancel{Ref: p.ref, TaskID: p.cancel}
	}
	return &wire.Enqueue{Ref: p.ref, EnqueueRequest: *p.request}
}

func (p *posting) verb() verb {
	if p.request == nil || p.request.IdempotencyKey != "" {
		return harmlessFrame
	}
	return sessionFrame
}

// Dial opens a session. If there is no server yet, it waits until ctx ends or GiveUpAfter
// is over. If the server refuses the session for good, the error is a *wire.Error. ctx does
// not bound the session: Close ends it.
func (c *Client) Dial(ctx context.Context, o SessionOptions) (*Session, error) {
	redial := c.newRedialer(sessionDialect, "")
	first, err := redial.first(ctx, cmp.Or(o.GiveUpAfter, waitForever))
	if err != nil {
		redial.stop()
		return nil, err
	}
	s := &Session{events: make(chan func()), stop: make(chan struct{}), ended: make(chan struct{})}
	s.loop = &sessionLoop{loop: newLoop(c, redial), session: s, options: o, inFlight: map[int64]*posting{}, offer: maxPosts, careful: maxPosts}
	go s.loop.run(first)
	return s, nil
}

// EnqueueAsync hands a request to the session and returns before its answer. It waits
// while the session has as many unanswered requests as its limits allow. An error means
// that the request was not accepted, and done is never called. Otherwise the session calls
// done exactly once, on its loop, with the answer or with the error; done must not block.
// The caller must not change the request after the call.
func (s *Session) EnqueueAsync(ctx context.Context, request *wire.EnqueueRequest, done func(*Enqueued, error)) error {
	return s.submit(ctx, &posting{request: request, done: done})
}

func (s *Session) submit(ctx context.Context, p *posting) error {
	select {
	case s.events <- func() { s.loop.accept(p) }:
		return nil
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait submits one request and waits for its answer.
func (s *Session) wait(ctx context.Context, p *posting) (*Enqueued, error) {
	type answer struct {
		enqueued *Enqueued
		err      error
	}
	answers := make(chan answer, 1)
	p.done = func(e *Enqueued, err error) { answers <- answer{e, err} }
	if err := s.submit(ctx, p); err != nil {
		return nil, err
	}
	select {
	case a := <-answers:
		return a.enqueued, a.err
	case <-ctx.Done():
		p.abandoned.Store(true)
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, context.Cause(ctx))
	}
}

// Close ends the session. Unanswered requests end with ErrOutcomeUnknown, or with
// ErrClosed if they were never sent. It returns when the goroutines of the session have
// ended. It may be called twice.
func (s *Session) Close() {
	s.once.Do(func() { close(s.stop) })
	<-s.ended
}

// unanswered is the error of a request that will get no answer.
func unanswered(p *posting, why error) error {
	switch {
	case p.refusal != nil && !p.sent && !p.unsure:
		return p.refusal
	case !p.sent && !p.unsure:
		return why
	case errors.Is(why, ErrClosed):
		return ErrOutcomeUnknown
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, why)
}
