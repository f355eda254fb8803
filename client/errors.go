package client

import (
	"errors"
	"fmt"

	"codeq/wire"
)

// Sentinels. Test for them with errors.Is: most arrive wrapped in a sentence.
var (
	// ErrOutcomeUnknown: the request was sent and the connection ended before
	// its answer came, so a new task may or may not exist. A request with an
	// idempotency key can be repeated without harm, and so can a cancel.
	ErrOutcomeUnknown = errors.New("no answer came: the server may or may not have done it")
	// ErrClosed: the session was closed before the request was sent.
	ErrClosed = errors.New("session closed before the request was sent")
	// ErrLeaseLost is the cause of a handler's context when its delivery is no
	// longer this worker's.
	ErrLeaseLost = errors.New("lease lost")
	// ErrStopping is the cause of a handler's context when the worker ends
	// without waiting for it. A handler that stops early because its worker
	// drains (Draining) returns it: the task is handed back at no cost.
	ErrStopping = errors.New("worker is stopping")
	// ErrGraceOver: Work was told to end, and some of what ran had not ended
	// when the grace was over.
	ErrGraceOver = errors.New("the grace was over before all tasks had ended")
)

// UnreachableError says that nobody answered at an address: nothing was sent
// that a server could have acted on.
type UnreachableError struct {
	URL string
	Err error
}

// Error is one sentence with the remedy; the cause is behind Unwrap.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no codeq server answers at %s: start one with \"codeq serve\", or name another with --url", e.URL)
}

// Unwrap is what the network said.
func (e *UnreachableError) Unwrap() error { return e.Err }

// lastingRefusal is the refusal in err that no repetition can turn into a
// success, nil if there is none.
func lastingRefusal(err error) *wire.Error {
	var refusal *wire.Error
	if errors.As(err, &refusal) && !refusal.Code.Retryable() {
		return refusal
	}
	return nil
}

// nothingDone reports a refusal that says for certain that the request had no
// effect and may be repeated as it is. An internal error does not say that.
func nothingDone(refusal *wire.Error) bool {
	switch refusal.Code {
	case wire.CodeOverloaded, wire.CodeDraining, wire.CodeNotLeader,
		wire.CodeRateLimited, wire.CodeStorageFull:
		return true
	}
	return false
}
