package client

import (
	"errors"
	"fmt"
)

// Sentinels. Test for them with errors.Is: most arrive wrapped in a sentence.
var (
	// ErrOutcomeUnknown: the request was sent and no answer of codeq came, so the
	// server may or may not have done it. Only requests that change something end with
	// it. Most can be repeated without harm; the sentence says so. Before you repeat a
	// post without an idempotency key, or a replay of one task, look whether it is done.
	ErrOutcomeUnknown = errors.New("no answer came: the server may or may not have done it")
	// ErrClosed: the session was closed before the request was sent.
	ErrClosed = errors.New("session closed before the request was sent")
	// ErrLeaseLost is the cause of a handler's context when its delivery is no
	// longer this worker's.
	ErrLeaseLost = errors.New("lease lost")
	// ErrTimeout is the cause of a handler's context when its delivery has run for the
	// timeout of its task or queue. The server takes the delivery back at that moment.
	ErrTimeout = errors.New("the timeout of the delivery is over")
	// ErrStopping is the cause of a handler's context when the worker ends without
	// waiting for it. A handler that stops early because its worker drains (see Draining)
	// returns it: the task is handed back and no attempt is counted.
	ErrStopping = errors.New("worker is stopping")
	// ErrRedirected: the server has moved, and its redirect must not be followed; the error
	// names the address.
	ErrRedirected = errors.New("the server has moved")
	// ErrNotCodeq: an answer came that is none of codeq, for example of a proxy.
	ErrNotCodeq = errors.New("the answer is not one of codeq")
	// ErrGraceOver: the context of Work ended, and some handlers still ran when the
	// grace was over.
	ErrGraceOver = errors.New("some handlers still ran when the grace was over")
)

// outcomeUnknown marks the error of a request that the server may have done.
func outcomeUnknown(why error) error {
	if errors.Is(why, ErrOutcomeUnknown) {
		return why
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, why)
}
