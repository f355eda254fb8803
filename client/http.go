package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
	// file is sent in place of body for the delivery with that token; nil is none.
	file  *File
	lease wire.Token
	// remedy is what the caller can do if there is no answer. It is set for requests that
	// change something and are not repeated here: without an answer their error is
	// ErrOutcomeUnknown.
	remedy string
	// keyed: the request makes a task with a key, so it may be sent twice.
	keyed bool
	// waitFor is the time the server was asked to wait.
	waitFor time.Duration
	// patience ends the request; nil leaves that to its context.
	patience *patience
}

// repeatable is the remedy of requests that change nothing more when they are sent twice.
const repeatable = "it can be done again without harm"

// unsure adds ErrOutcomeUnknown and the remedy to the error of a request that the server
// may have done.
func (in *call) unsure(err error) error {
	if in.remedy == "" || fateOf(err)&inDoubt&^internal == 0 {
		return err
	}
	return fmt.Errorf("%w; %s", outcomeUnknown(err), in.remedy)
}

// reply is a 2xx answer.
type reply struct {
	call   call
	from   string // the base address that was asked
	header http.Header
	body   []byte
}

// errMute ends a request that got no answer in time.
var errMute = errors.New("no answer came in time")

// do sends one request, once. The error is a *wire.Error for a refusal, an
// *UnreachableError if nothing could be sent, ErrOutcomeUnknown if a request with a
// remedy had no whole answer of codeq, and otherwise a sentence.
func (c *Client) do(ctx context.Context, in call) (*reply, error) {
	answer, err := c.try(ctx, in)
	return answer, in.unsure(err)
}

func (c *Client) try(ctx context.Context, in call) (answer *reply, err error) {
	next := notDone
	if in.method == http.MethodGet {
		next = unread
	}
	err = c.nodes.each(ctx, next, func(base *url.URL) (err error) {
		answer, err = c.tryAt(ctx, in, base)
		c.nodes.lost(base, err)
		return err
	})
	return answer, err
}

// tryAt sends a request to one address and reads its answer.
func (c *Client) tryAt(ctx context.Context, in call, base *url.URL) (*reply, error) {
	first := answerTimeout
	if (in.keyed || in.method == http.MethodGet) && c.nodes.othersLeft() {
		first = answerSoon
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in.patience = newPatience(in.waitFor+first, func() { cancel(errMute) })
	defer in.patience.sends()
	response, err := c.openAt(ctx, in, base)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = response.Body.Close() // what was needed has been read
	}()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, noAnswer(ctx, baseOf(response.Request.URL, in.path), cutShort, err)
	}
	if to, ok := ctx.Value(answerKey{}).(*[]byte); ok {
		*to = body
	}
	return &reply{call: in, from: c.URL(), header: response.Header, body: body}, nil
}

type answerKey struct{}

// CaptureAnswer returns a context under which a request of a Client stores the body of
// its answer in *body, as it came, before it reads it: for programs that pass the JSON on.
// The body of a refusal is not stored. Requests under one such context must not run at
// the same time.
func CaptureAnswer(ctx context.Context, body *[]byte) context.Context {
	return context.WithValue(ctx, answerKey{}, body)
}

// ask sends a request and has read make an answer of the body; what names it for people.
func ask[A any](ctx context.Context, c *Client, in call, what string, read func(body []byte) (A, error)) (answer A, err error) {
	got, err := c.do(ctx, in)
	if err != nil {
		return answer, err
	}
	if answer, err = read(got.body); err != nil {
		return answer, got.misunderstood(what, err)
	}
	return answer, nil
}

// decoded reads an answer with encoding/json.
func decoded[A any](body []byte) (*A, error) {
	answer := new(A)
	return answer, json.Unmarshal(body, answer)
}

// open sends one request, follows redirects, and returns the answer if it is a 2xx. The
// caller must read and close its body.
func (c *Client) open(ctx context.Context, in call) (response *http.Response, err error) {
	err = c.nodes.each(ctx, notDone, func(base *url.URL) (err error) {
		response, err = c.openAt(ctx, in, base)
		c.nodes.lost(base, err)
		return err
	})
	return response, err
}

func (c *Client) openAt(ctx context.Context, in call, base *url.URL) (*http.Response, error) {
	at, err := url.Parse(base.String() + in.path)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for hops := 0; ; hops++ {
		response, err := c.send(ctx, in, at)
		if err == nil {
			c.nodes.leads(base, response.Header.Get(leaderHeader))
		}
		if err != nil || response.StatusCode >= 200 && response.StatusCode <= 299 {
			return response, err
		}
		next, err := c.sentOn(at, response, in.path, hops)
		if next == nil && err == nil {
			err = c.refusal(at, in.path, response)
		}
		_ = response.Body.Close() // what was needed has been read
		if err != nil {
			return nil, err
		}
		at = next
	}
}

// send sends one request to one address.
func (c *Client) send(ctx context.Context, in call, at *url.URL) (*http.Response, error) {
	in.patience.awaits()
	w := &watch{patience: in.patience}
	request, err := http.NewRequestWithContext(w.on(ctx), in.method, at.String(), bytes.NewReader(in.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if err := c.authorize(ctx, request.Header, at); err != nil {
		return nil, err
	}
	if in.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if in.file != nil {
		if err := in.addFile(request); err != nil {
			return nil, err
		}
	}
	response, err := c.http.RoundTrip(request)
	how := w.fate(ctx)
	if how != unreached {
		c.reached.Store(true)
	}
	if err != nil {
		return nil, noAnswer(ctx, baseOf(at, in.path), how, c.alert(ctx, at, err))
	}
	response.Body = &comingBody{ReadCloser: response.Body, patience: in.patience}
	return response, nil
}

// refusal turns an answer that is no 2xx into an error. After an answer of a proxy that
// lost the server, nobody knows what the server did.
func (c *Client) refusal(at *url.URL, path string, response *http.Response) error {
	// A body that broke off may still hold the whole error.
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	status := response.StatusCode
	if refusal, err := wire.ParseError(bytes.TrimSpace(body)); err == nil && refusal.Code != "" {
		if status == http.StatusUnauthorized && (c.token != "" || c.tokens != nil) && !c.mayKnowToken(at) {
			return fmt.Errorf("%w; a redirect led from %s to %s, to which the token is not sent, because it is another host or port: give that address (--url)",
				refusal, c.URL(), baseOf(at, path))
		}
		return refusal
	}
	f := &failed{how: foreign}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.after = min(time.Duration(seconds), maxAdvice/time.Second) * time.Second
	}
	said := fmt.Sprintf("%s answered %d %s, not in the words of codeq", baseOf(at, path), status, http.StatusText(status))
	switch {
	case speaksTLS(string(body)):
		return mistrust(baseOf(at, path), errPlainToTLS)
	case status == http.StatusTooManyRequests:
		f.how, f.error = putOff, fmt.Errorf("%s: a proxy lets no more requests through now", said)
	case status >= http.StatusInternalServerError:
		f.how, f.error = gateway, fmt.Errorf("%s: a proxy has no answer of the server", said)
	default:
		f.error = fmt.Errorf("%s: is it a codeq server?", said)
	}
	return f
}

// misunderstood is the error of a 2xx that codeq does not send.
func (r *reply) misunderstood(what string, err error) error {
	return r.call.unsure(&failed{error: fmt.Errorf("read %s from %s: %w", what, r.from, err), how: garbled})
}

// Enqueued is the answer to a request for a new task.
type Enqueued struct {
	TaskID wire.TaskID
	// Replayed: the task was there already, made by a request with the same idempotency
	// key.
	Replayed bool
	// Repeated: a Session sent the request more than once because an answer was lost. If
	// Replayed is true too, the first sending of this request may have made the task.
	Repeated bool
	// Task is the task; nil after a request over a Session.
	Task *wire.Task
}

// EnqueueRequest is Enqueue with the request in the terms of the protocol.
func (c *Client) EnqueueRequest(ctx context.Context, request *wire.EnqueueRequest) (*Enqueued, error) {
	if request.IdempotencyKey == "" {
		return c.postOnce(ctx, request)
	}
	var enqueued *Enqueued
	err := c.persist(ctx, keyed, waitForever, func(time.Duration) (err error) {
		enqueued, err = c.postOnce(ctx, request)
		return err
	})
	return enqueued, err
}

func (c *Client) postOnce(ctx context.Context, request *wire.EnqueueRequest) (*Enqueued, error) {
	body := wire.AppendEnqueueRequest(nil, request)
	in := call{method: http.MethodPost, path: apiPath + "/tasks", body: body, keyed: request.IdempotencyKey != ""}
	if request.IdempotencyKey == "" {
		in.remedy = "look with \"codeq tasks\" whether the task is there before it is posted again"
	}
	answer, err := c.do(ctx, in)
	if err != nil {
		return nil, err
	}
	task, err := wire.ParseTask(answer.body)
	if err != nil {
		return nil, outcomeUnknown(answer.misunderstood("the new task", err))
	}
	replayed := strings.EqualFold(answer.header.Get("Idempotent-Replayed"), "true")
	return &Enqueued{TaskID: task.ID, Replayed: replayed, Task: task}, nil
}

// Task reads one task. If there is none with this id, the error is a *wire.Error with the
// code task_not_found.
func (c *Client) Task(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/tasks/" + id.String()}, "a task", wire.ParseTask)
}

// Queues reads the figures of all queues of the tenant.
func (c *Client) Queues(ctx context.Context) ([]wire.QueueFigures, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/admin/queues"}, "the queues", wire.ParseQueueList)
}

// AllQueues returns those of Queues and the queues of the server itself, such as codeq.webhook.
func (c *Client) AllQueues(ctx context.Context) ([]wire.QueueFigures, error) {
	return ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/admin/queues?system=true"}, "the queues", wire.ParseQueueList)
}

// WebhookSecret returns the secret of the tenant, with which what the server posts to webhooks
// is signed.
func (c *Client) WebhookSecret(ctx context.Context) (string, error) {
	answer, err := ask(ctx, c, call{method: http.MethodGet, path: apiPath + "/admin/webhooks/secret"}, "the secret", decoded[struct{ Secret string }])
	if err != nil {
		return "", err
	}
	return answer.Secret, nil
}

// SessionPage is a part of the list of sessions.
type SessionPage struct {
	Sessions []wire.SessionFigures
	// Cursor asks for the next page; it is "" on the last.
	Cursor string
}

// DrainSession keeps further tasks from a session of a worker until its socket ends, and
// returns the session. The worker keeps the tasks that it has. If no such session is
// connected, the error is a *wire.Error with the code session_not_found.
func (c *Client) DrainSession(ctx context.Context, id wire.SessionID) (*wire.SessionFigures, error) {
	return c.onSession(ctx, id, "drain")
}

// DisconnectSession closes the socket of a session, and returns the session. Its client
// may connect again, and resume its tasks within the grace. If no such session is
// connected, the error is a *wire.Error with the code session_not_found.
func (c *Client) DisconnectSession(ctx context.Context, id wire.SessionID) (*wire.SessionFigures, error) {
	return c.onSession(ctx, id, "disconnect")
}

func (c *Client) onSession(ctx context.Context, id wire.SessionID, verb string) (*wire.SessionFigures, error) {
	in := call{method: http.MethodPost, path: apiPath + "/admin/sessions/" + id.String() + "/" + verb, remedy: repeatable}
	return ask(ctx, c, in, "a session", decoded[wire.SessionFigures])
}

// Sessions reads a page of the tenant's sessions, the first one for the cursor "".
func (c *Client) Sessions(ctx context.Context, cursor string) (*SessionPage, error) {
	path := apiPath + "/admin/sessions"
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	return ask(ctx, c, call{method: http.MethodGet, path: path}, "the sessions", func(body []byte) (page *SessionPage, err error) {
		page = &SessionPage{}
		page.Sessions, page.Cursor, err = wire.ParseSessionList(body)
		return page, err
	})
}
