package replica

import (
	"context"
	"fmt"
	"sync"

	"codeq/store"
)

// verifying lets everybody who waits share one question to the followers: the next one, which
// begins when the one before has ended, so that each answer is of a moment after the call.
type verifying struct {
	verify func() error

	mu      sync.Mutex
	running bool
	next    *question
}

type question struct {
	done chan struct{}
	err  error // set before done is closed
}

func (v *verifying) ask(ctx context.Context) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &question{done: make(chan struct{})}
	}
	mine := v.next
	if !v.running {
		v.running = true
		go v.run()
	}
	v.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fmt.Errorf("ask whether this node leads: %w", context.Cause(ctx))
	}
}

func (v *verifying) run() {
	for {
		v.mu.Lock()
		q := v.next
		v.next, v.running = nil, q != nil
		v.mu.Unlock()
		if q == nil {
			return
		}
		if err := v.verify(); err != nil {
			q.err = fmt.Errorf("%w: %w", store.ErrNotLeader, err)
		}
		close(q.done)
	}
}
