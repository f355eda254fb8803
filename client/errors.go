package client

import (
	"errors"
	"fmt"
)

// Sentinels. Test for them with errors.Is: most arrive wrapped in a sentence.
var (
	// ErrOutcomeUnknown: the request was sent and the connection ended before
	// its answer came, or what came was no answer of codeq, so what was asked for
	// may or may not be done. Every request that changes something ends so, and
	// most can be repeated without harm; the sentence says it. Look first for a
	// task without an idempotency key, and for a replay of one task.
	ErrOutcomeUnknown = errors.New("no answer came: the server may or may not have done it")
	// ErrClosed: the session was closed before the request was sent.
	ErrClosed = errors.New("session closed before the request was sent")
	// ErrLeaseLost is the cause of a handler's context when its delivery is no
	// longer this worker's.
	ErrLeaseLost = errors.New("lease lost")
	// ErrTimeout is the cause of a handler's context when its delivery has run for as
	// long as the task or its queue lets it. The server takes it back then.
	ErrTimeout = errors.New("the delivery has run for as long as it may")
	// ErrStopping is the cause of a handler's context when the worker ends
	// without waiting for it. A handler that stops early because its worker
	// drains (Draining) returns it: the task is handed back at no cost.
	ErrStopping = errors.New("worker is stopping")
	// ErrGraceOver: Work was told to end, and some of what ran had not ended
	// when the grace was over.
	ErrGraceOver = errors.New("the grace was over before all tasks had ended")
)

// outcomeUnknown is the end of a request that the server may have done.
func outcomeUnknown(why error) error {
	if errors.Is(why, ErrOutcomeUnknown) {
		return why
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, why)
}
