package blackbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"codeq/wire"
)

// answerFor bounds one request. The longest wait that a test asks for is a
// minute; a server that stands still fails the test that asks it, in place of
// keeping the whole run until its limit.
const answerFor = 2 * time.Minute

// API speaks HTTP to a server by hand. It repeats nothing.
type API struct {
	base  string
	token string
	http  *http.Client
}

// NewAPI makes an API of the server at host:port.
func NewAPI(addr string) *API {
	return &API{base: "http://" + addr + "/v1/codeq", http: &http.Client{
		Timeout: answerFor, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
}

// As is the same API for a credential.
func (a *API) As(token string) *API { return &API{base: a.base, token: token, http: a.http} }

// Close lets go of connections that are kept open.
func (a *API) Close() { a.http.CloseIdleConnections() }

// Answer is a 2xx.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request below /v1/codeq and returns a 2xx. Any other answer is a
// *wire.Error, and ErrNoAnswer is in the chain when none came.
func (a *API) Do(ctx context.Context, method, path, body string) (*Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	// Without it net/http may send a request again on a fresh connection when a
	// kept one turns out dead; what a test asks once must be asked once.
	r.GetBody = nil
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := a.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", method, path, ErrNoAnswer, err)
	}
	if response.StatusCode < 300 {
		return &Answer{response.StatusCode, response.Header, answer}, nil
	}
	refusal, err := wire.ParseError(answer)
	if err != nil {
		return nil, fmt.Errorf("%s %s: status %d: %w", method, path, response.StatusCode, err)
	}
	return nil, refusal
}

// Post makes a task from the body of POST /tasks.
func (a *API) Post(ctx context.Context, body string) (*wire.Task, error) {
	answer, err := a.Do(ctx, http.MethodPost, "/tasks", body)
	if err != nil {
		return nil, err
	}
	return wire.ParseTask(answer.Body)
}

// Read reads a task.
func (a *API) Read(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	answer, err := a.Do(ctx, http.MethodGet, "/tasks/"+id.String(), "")
	if err != nil {
		return nil, err
	}
	return wire.ParseTask(answer.Body)
}
