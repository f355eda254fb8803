package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"codeq/wire"
)

// maxAnswerBytes bounds what is read of one HTTP answer: a task with a full
// payload as a JSON string is the largest one there is.
const maxAnswerBytes = 16 << 20

// call is one HTTP request of the API and what it may cost.
type call struct {
	method string
	path   string // from the base address on
	body   []byte
	// harmless: doing it twice is doing it once, so a request that broke off is
	// no doubt that has to be told.
	harmless bool
	// waitFor is the time the server was asked to wait.
	waitFor time.Duration
}

// reply is a 2xx answer.
type reply struct {
	header http.Header
	body   []byte
}

// do carries out one request. It returns a *wire.Error for a refusal, an
// *UnreachableError when the server could not be reached, ErrOutcomeUnknown
// when a request that changes something broke off, and else a sentence.
func (c *Client) do(ctx context.Context, in call) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, in.waitFor+answerTimeout)
	defer cancel()
	request, err := c.request(ctx, in)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.brokenOff(ctx, in, err)
	}
	defer func() {
		_ = response.Body.Close() // what was needed has been read
	}()
	c.reached.Store(true)
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, c.brokenOff(ctx, in, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, c.refusal(in, response.StatusCode, body)
	}
	return &reply{header: response.Header, body: body}, nil
}

func (c *Client) request(ctx context.Context, in call) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, in.method, c.URL()+in.path, bytes.NewReader(in.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if in.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// brokenOff says what a request without an answer means.
func (c *Client) brokenOff(ctx context.Context, in call, err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return c.notReached(ctx, err)
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if in.method == http.MethodPost && !in.harmless {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the answer of %s: %w", c.URL(), context.Cause(ctx))
	}
	return &UnreachableError{URL: c.URL(), Err: err}
}

// notReached says what it means that no connection came about.
func (c *Client) notReached(ctx context.Context, err error) error {
	if cause := gaveUp(ctx); cause != nil {
		return fmt.Errorf("connect to %s: %w", c.URL(), cause)
	}
	return &UnreachableError{URL: c.URL(), Err: err}
}

// gaveUp is why whoever asked wants no answer any more, nil if it does, or if the
// time for one is over.
func gaveUp(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

// refusal turns an answer that is no 2xx into an error. What a proxy says when
// it lost the server leaves open what the server did.
func (c *Client) refusal(in call, status int, body []byte) error {
	if refusal, err := wire.ParseError(body); err == nil && refusal.Code != "" {
		return refusal
	}
	err := fmt.Errorf("%s answered %d %s, not in the words of codeq: is it a codeq server?",
		c.URL(), status, http.StatusText(status))
	if in.method == http.MethodPost && !in.harmless && status >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

func (c *Client) misunderstood(what string, err error) error {
	return fmt.Errorf("read %s from %s: %w", what, c.URL(), err)
}

// Enqueued answers a request for a new task.
type Enqueued struct {
	TaskID wire.TaskID
	// Replayed: an earlier request with the same idempotency key made the
	// task; this one made none.
	Replayed bool
	// Task and Raw are set by a Client, not by a Session: the task, and the answer as
	// it came.
	Task *wire.Task
	Raw  []byte
}

// Post is Enqueue with the request in the protocol's own terms, sent once as it
// is. Errors are a *wire.Error for a refusal, an *UnreachableError, and ErrOutcomeUnknown
// when the connection broke before the answer.
func (c *Client) Post(ctx context.Context, request *wire.EnqueueRequest) (*Enqueued, error) {
	body := wire.AppendEnqueueRequest(nil, request)
	answer, err := c.do(ctx, call{method: http.MethodPost, path: apiPath + "/tasks", body: body})
	if err != nil {
		return nil, err
	}
	task, err := wire.ParseTask(answer.body)
	if err != nil {
		return nil, c.misunderstood("the new task", err)
	}
	replayed := strings.EqualFold(answer.header.Get("Idempotent-Replayed"), "true")
	return &Enqueued{TaskID: task.ID, Replayed: replayed, Task: task, Raw: answer.body}, nil
}

// TaskAnswer is a task and the answer as it came.
type TaskAnswer struct {
	Task *wire.Task
	Raw  []byte
}

// Task reads one task.
func (c *Client) Task(ctx context.Context, id wire.TaskID) (*TaskAnswer, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: apiPath + "/tasks/" + id.String()})
	if err != nil {
		return nil, err
	}
	task, err := wire.ParseTask(answer.body)
	if err != nil {
		return nil, c.misunderstood("a task", err)
	}
	return &TaskAnswer{Task: task, Raw: answer.body}, nil
}

// QueuesAnswer is the figures of every queue and the answer as it came.
type QueuesAnswer struct {
	Queues []wire.QueueFigures
	Raw    []byte
}

// Queues reads the figures of the tenant's queues.
func (c *Client) Queues(ctx context.Context) (*QueuesAnswer, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: apiPath + "/admin/queues"})
	if err != nil {
		return nil, err
	}
	queues, err := wire.ParseQueueList(answer.body)
	if err != nil {
		return nil, c.misunderstood("the queues", err)
	}
	return &QueuesAnswer{Queues: queues, Raw: answer.body}, nil
}

// SessionsAnswer is a page of sessions and the answer as it came. With Cursor
// the next one is asked for; it is "" on the last.
type SessionsAnswer struct {
	Sessions []wire.SessionFigures
	Cursor   string
	Raw      []byte
}

// Sessions reads a page of the tenant's sessions, the first one for "".
func (c *Client) Sessions(ctx context.Context, cursor string) (*SessionsAnswer, error) {
	path := apiPath + "/admin/sessions"
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	sessions, next, err := wire.ParseSessionList(answer.body)
	if err != nil {
		return nil, c.misunderstood("the sessions", err)
	}
	return &SessionsAnswer{Sessions: sessions, Cursor: next, Raw: answer.body}, nil
}

// VersionAnswer is what a server says about itself, and the answer as it came.
type VersionAnswer struct {
	Version string
	Raw     []byte
}

// Version reads the server's version.
func (c *Client) Version(ctx context.Context) (*VersionAnswer, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: "/version"})
	if err != nil {
		return nil, err
	}
	var said struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(answer.body, &said); err != nil {
		return nil, c.misunderstood("the version", err)
	}
	return &VersionAnswer{Version: said.Version, Raw: answer.body}, nil
}
