package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codeq/wire"
)

// EnqueueOption says one more thing about a new task.
type EnqueueOption func(*wire.EnqueueRequest) error

// Priority puts a task before those with a lower one: from 0, which is what a
// task has without this option, to 9.
func Priority(priority int) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.Priority = priority
		return nil
	}
}

// Delay keeps a task from the workers for that long, rounded up to whole
// seconds. It excludes RunAt.
func Delay(delay time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if delay < 0 {
			return fmt.Errorf("the delay must not be negative, got %s", delay)
		}
		r.DelaySeconds = wholeSeconds(delay)
		return nil
	}
}

// RunAt keeps a task from the workers until that time, by the clock of the
// server. A time that has passed is no delay. It excludes Delay.
func RunAt(at time.Time) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.RunAtMs = at.UnixMilli()
		return nil
	}
}

// Timeout is the longest one execution of a task may take, rounded up to whole
// seconds, from 1 s to thirty days. Then its worker loses it, whatever it says, and it
// is tried again. Without this option the queue says how long.
func Timeout(timeout time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if timeout <= 0 {
			return fmt.Errorf("the timeout must be more than 0, got %s", timeout)
		}
		r.TimeoutSeconds = wholeSeconds(timeout)
		return nil
	}
}

// TTL is how long after its post a task may begin, rounded up to whole seconds. One
// that waits then ends CANCELLED with the cause wire.CancelExpired. Without this
// option the queue says so. It excludes ExpiresAt.
func TTL(ttl time.Duration) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if ttl <= 0 {
			return fmt.Errorf("the time to live must be more than 0, got %s", ttl)
		}
		r.TTLSeconds = wholeSeconds(ttl)
		return nil
	}
}

// ExpiresAt is TTL with a time, by the clock of the server. It excludes TTL.
func ExpiresAt(at time.Time) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		r.ExpiresAtMs = max(1, at.UnixMilli())
		return nil
	}
}

// MaxAttempts is how many executions of a task may fail before it becomes a
// dead letter, the first one included; 5 without this option.
func MaxAttempts(attempts int) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if attempts < 1 || attempts > wire.MaxAttemptsLimit {
			return fmt.Errorf("the attempts must be from 1 to %d, got %d", wire.MaxAttemptsLimit, attempts)
		}
		r.MaxAttempts = attempts
		return nil
	}
}

// Key makes a task that can be enqueued twice without harm: whoever uses the
// same key again for the same command and the same request gets the task that
// is there. With a key, a request whose answer was lost is repeated.
func Key(key string) EnqueueOption {
	return func(r *wire.EnqueueRequest) error {
		if key == "" {
			return errors.New("the key must not be empty: leave Key out for a task without one")
		}
		r.IdempotencyKey = key
		return nil
	}
}

// Enqueue posts one task over HTTP and returns when it is on the server's
// disk. The payload is anything that encoding/json can encode; a
// json.RawMessage goes out byte for byte.
//
// When the answer is lost, the task may or may not exist. Without a key that
// is the error ErrOutcomeUnknown. With one the request is repeated until it is
// answered or ctx ends, which then wraps both ErrOutcomeUnknown and the cause
// of ctx. So it is while the server is not there, or is starting. A refusal is a
// *wire.Error, a server that cannot be reached by a request without a key an
// *UnreachableError; after both there is no task, unless the refusal's code is
// internal.
func (c *Client) Enqueue(ctx context.Context, command string, payload any, options ...EnqueueOption) (*Enqueued, error) {
	request, err := newRequest(command, payload, options)
	if err != nil {
		return nil, err
	}
	return c.EnqueueRequest(ctx, request)
}

// Enqueue is Client.Enqueue over this session, which many goroutines can use
// at a time at little cost. A request that the server puts off is repeated
// too. When ctx ends before the answer, the error is ErrOutcomeUnknown and the
// cause, and the request is not repeated.
func (s *Session) Enqueue(ctx context.Context, command string, payload any, options ...EnqueueOption) (*Enqueued, error) {
	request, err := newRequest(command, payload, options)
	if err != nil {
		return nil, err
	}
	return s.wait(ctx, &posting{request: request})
}

// newRequest makes a request and holds it against every rule that the server
// has for it, so that a bad one does not even travel.
func newRequest(command string, payload any, options []EnqueueOption) (*wire.EnqueueRequest, error) {
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
