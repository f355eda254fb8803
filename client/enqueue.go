package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"codeq/wire"
)

// EnqueueOption sets one property of a new task.
type EnqueueOption func(*wire.EnqueueRequest) error

// Priority is the priority of a task, from 0 to 9; 0 without this option. A queue
// delivers higher priorities first.
func Priority(priority int) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.Priority = priority
		return nil
	}
}

// Delay keeps a task from workers for this time, rounded up to whole seconds. It excludes
// RunAt.
func Delay(delay time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if delay < 0 {
			return fmt.Errorf("the delay must not be negative, got %s", delay)
		}
		r.DelaySeconds = wholeSeconds(delay)
		return nil
	}
}

// RunAt keeps a task from workers until this time, by the clock of the server. A time in
// the past is no delay. It excludes Delay.
func RunAt(at time.Time) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.RunAtMs = at.UnixMilli()
		return nil
	}
}

// Timeout is the longest time that one delivery of a task may run, from 1 s to thirty
// days, rounded up to whole seconds. After it the server takes the task back and tries it
// again. Without this option the timeout of the queue holds.
func Timeout(timeout time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if timeout <= 0 {
			return fmt.Errorf("the timeout must be more than 0, got %s", timeout)
		}
		r.TimeoutSeconds = wholeSeconds(timeout)
		return nil
	}
}

// TTL is the time after its post in which a task may begin, rounded up to whole seconds.
// A task that still waits after it ends CANCELLED with the cause wire.CancelExpired.
// Without this option the TTL of the queue holds. It excludes ExpiresAt.
func TTL(ttl time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if ttl <= 0 {
			return fmt.Errorf("the TTL must be more than 0, got %s", ttl)
		}
		r.TTLSeconds = wholeSeconds(ttl)
		return nil
	}
}

// ExpiresAt is the end of the TTL as a time by the clock of the server. It excludes TTL.
func ExpiresAt(at time.Time) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.ExpiresAtMs = max(1, at.UnixMilli())
		return nil
	}
}

// MaxAttempts is how many attempts of a task may fail before it becomes a dead letter,
// from 1 to 1,000. Without this option that of the queue holds, or else 5.
func MaxAttempts(attempts int) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if attempts < 1 || attempts > wire.MaxAttemptsLimit {
			return fmt.Errorf("MaxAttempts must be from 1 to %d, got %d", wire.MaxAttemptsLimit, attempts)
		}
		r.MaxAttempts = attempts
		return nil
	}
}

// Key is the idempotency key of a task. A second request with the same key, command and
// content makes no task and returns the first one. A request with a key is repeated if
// its answer was lost.
func Key(key string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if key == "" {
			return errors.New("the key must not be empty: leave out the option Key for a task without a key")
		}
		r.IdempotencyKey = key
		return nil
	}
}

// ConcurrencyKey gives a task a concurrency key, from 1 to 128 bytes: a customer, for
// example. The limits PerKey of the queue hold for all its tasks with the same key.
func ConcurrencyKey(key string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if key == "" {
			return errors.New("the concurrency key must not be empty: leave out the option ConcurrencyKey for a task without one")
		}
		r.ConcurrencyKey = key
		return nil
	}
}

// Label gives a task a label, by which Find finds it: a name of letters, digits, dots,
// underscores, colons and hyphens, and a text, of at most 64 bytes together. A task has at most
// 8 labels.
func Label(name, value string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if strings.Contains(name, "=") {
			return fmt.Errorf("the name of a label must have no equals sign, got %q", name)
		}
		labels, refusal := wire.MakeLabels(append(r.Labels.List(), name+"="+value))
		if refusal != nil {
			return refusal
		}
		r.Labels = labels
		return nil
	}
}

// Webhook is an http or https URL to which the server posts the outcome of the task, signed and
// repeated until it is taken.
func Webhook(url string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.Webhook = url
		return nil
	}
}

// Trace gives a task the trace context of its producer, as in W3C Trace Context: the texts of the
// headers traceparent and tracestate, of which the second may be empty. The worker gets both, and
// so does the receiver of the webhook. Without it a task that is posted with the context of a
// handler of Work has the trace context of the handler's task.
func Trace(parent, state string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.TraceParent, r.TraceState = parent, state
		return nil
	}
}

// Enqueue posts one task over HTTP and returns when it is on the server's disk. The
// payload is any value that encoding/json can encode; a json.RawMessage is sent byte for
// byte.
//
// If the answer is lost, the task may or may not exist. Without a Key the error is then
// ErrOutcomeUnknown. With a Key the request is repeated until it is answered or ctx ends,
// also while the server is not there or is starting; if ctx ends, the error wraps the
// cause of ctx, and ErrOutcomeUnknown if the task may exist.
//
// If the server refuses the request, the error is a *wire.Error. If a request without a
// Key does not reach it, the error is an *UnreachableError. After both there is no task,
// unless the code of the refusal is internal.
func (c *Client) Enqueue(ctx context.Context, command string, payload any, options ...EnqueueOption) (*Enqueued, error) {
	request, err := newRequest(ctx, command, payload, options)
	if err != nil {
		return nil, err
	}
	return c.EnqueueRequest(ctx, request)
}

// Enqueue is Client.Enqueue over this session. Many goroutines can use it at a time at
// little cost. A request that the server refuses for now, because it is busy, is repeated.
// If ctx ends before the answer, the error wraps ErrOutcomeUnknown and the cause of ctx.
func (s *Session) Enqueue(ctx context.Context, command string, payload any, options ...EnqueueOption) (*Enqueued, error) {
	request, err := newRequest(ctx, command, payload, options)
	if err != nil {
		return nil, err
	}
	return s.wait(ctx, &posting{request: request})
}

// newRequest makes a request and checks it by the rules of the server, so that a bad one
// is not sent. A task that a handler posts belongs to the trace of its own task.
func newRequest(ctx context.Context, command string, payload any, options []EnqueueOption) (*wire.EnqueueRequest, error) {
	encoded, err := encode(payload)
	if err != nil {
		return nil, fmt.Errorf("encode payload of %s: %w", command, err)
	}
	request := &wire.EnqueueRequest{Command: command, Payload: encoded}
	for _, option := range options {
		if err := option(request); err != nil {
			return nil, err
		}
	}
	if task := TaskFrom(ctx); request.TraceParent == "" {
		request.TraceParent, request.TraceState = task.TraceParent, task.TraceState
	}
	if refusal := request.Check(); refusal != nil {
		return nil, refusal
	}
	return request, nil
}

// encode is json.Marshal without the escapes that only HTML needs. A
// json.RawMessage stays as it is.
func encode(value any) ([]byte, error) {
	if raw, ok := value.(json.RawMessage); ok && len(raw) > 0 {
		return bytes.Clone(raw), wire.CheckJSON(raw)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte{'\n'}), nil
}

// wholeSeconds rounds up.
func wholeSeconds(span time.Duration) int64 {
	seconds := int64(span / time.Second)
	if span%time.Second > 0 {
		seconds++
	}
	return seconds
}
