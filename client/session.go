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

// Limits of what one session has under way, whatever the server would allow.
const (
	maxPosts     = 2048
	maxPostBytes = 4 << 20
	// postOverheadBytes is what a post weighs besides its payload.
	postOverheadBytes = 512
)

// SessionOptions tunes a producer session. The zero value is good.
type SessionOptions struct {
	// GiveUpAfter is how long the session tries to find its server, the first time
	// and again; then everything under way fails with the last error. 0 means for
	// ever.
	GiveUpAfter time.Duration
}

// Session posts and cancels tasks over one WebSocket with many in flight, and
// finds its server again when the connection is lost. A request whose answer was
// lost is repeated if it has an idempotency key or is a cancel; otherwise it ends
// with ErrOutcomeUnknown. A refusal that says "later" is repeated for every
// request. All methods may be called from any goroutine.
type Session struct {
	loop   *sessionLoop
	events chan func() // for the loop
	stop   chan struct{}
	ended  chan struct{}
	once   sync.Once
	// err is why the session ended; set before ended is closed.
	err error
}

// posting is one request under way: a new task, or the end of one. The loop
// owns it from the moment it was accepted, but for abandoned.
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

// frame is what is said for it.
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

// Dial opens a producer session. It fails if the server refuses for good. One that
// is not there yet is waited for until ctx ends, or for GiveUpAfter. Later losses
// are made good by the session itself.
func (c *Client) Dial(ctx context.Context, o SessionOptions) (*Session, error) {
	redial := c.newRedialer("")
	first, err := redial.first(ctx, cmp.Or(o.GiveUpAfter, waitForever))
	if err != nil {
		redial.stop()
		return nil, err
	}
	s := &Session{events: make(chan func()), stop: make(chan struct{}), ended: make(chan struct{})}
	s.loop = &sessionLoop{loop: newLoop(c, redial), session: s, options: o, inFlight: map[int64]*posting{}, offer: maxPosts}
	go s.loop.run(first)
	return s, nil
}

// EnqueueAsync hands a request to the session. It waits while as much is under way as
// the limits allow, and returns an error if the request was not accepted.
// After that done is called exactly once, from the session's loop, with the
// answer or with why there is none. The request must not be touched again.
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

// Close ends the session. Requests under way end with ErrOutcomeUnknown, or
// ErrClosed if they were never sent. It returns when the session's goroutines
// are gone; closing twice is harmless.
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
