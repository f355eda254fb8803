package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"codeq/wire"
)

// answering is a server that gives every request the same answer, and a client
// of it. What was asked is in the returned request.
func answering(t *testing.T, status int, body string) (*Client, *http.Request) {
	t.Helper()
	asked := &http.Request{}
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		posted, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = *r.Clone(context.Background())
		asked.Body = io.NopCloser(strings.NewReader(string(posted)))
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			t.Error(err)
		}
	})
	return c, asked
}

func serving(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(server.URL+"/", WithToken("secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The token is asked for before each request, and without one nothing is sent.
func TestTheTokenIsAskedForEachTime(t *testing.T) {
	var came []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came = append(came, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, taskBody('a'))
	}))
	defer server.Close()
	said := []string{"one", " two\n", ""}
	c, err := New(server.URL, WithTokens(func(context.Context) (string, error) {
		if len(said) == 0 {
			return "", errors.New("the provider is away")
		}
		token := said[0]
		said = said[1:]
		return token, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if _, err := c.Enqueue(t.Context(), "hash", 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err = c.Enqueue(t.Context(), "hash", 1)
	if err == nil || errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "because there is no token: the provider is away") {
		t.Errorf("without a token: %v", err)
	}
	if got := strings.Join(came, ","); got != "Bearer one,Bearer two," {
		t.Errorf("the server was told %q", got)
	}
}

func taskBody(name byte) string {
	return string(wire.AppendTask(nil, task(name), wire.PayloadAsString))
}

func TestPostSendsTheRequestAndReadsTheTask(t *testing.T) {
	c, asked := answering(t, 202, taskBody('a'))
	got, err := c.EnqueueRequest(context.Background(), &wire.EnqueueRequest{
		Command: "hash", Payload: []byte(`{"b":1, "a":12345678901234567890}`), Priority: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.TaskID != taskID('a') || !got.Replayed || got.Task.Command != "hash" {
		t.Errorf("got %+v", got)
	}
	body, err := io.ReadAll(asked.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"command":"hash","payload":{"b":1, "a":12345678901234567890},"priority":3}`
	if string(body) != want || asked.Method != "POST" || asked.URL.Path != "/v1/codeq/tasks" {
		t.Errorf("asked %s %s %s, want POST of %s", asked.Method, asked.URL, body, want)
	}
	if got := asked.Header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("authorization %q", got)
	}
}

func TestTaskQueuesAndVersionAreRead(t *testing.T) {
	ctx := context.Background()
	c, asked := answering(t, 200, taskBody('a'))
	if got, err := c.Task(ctx, taskID('a')); err != nil || got.ID != taskID('a') {
		t.Errorf("task %+v, error %v", got, err)
	} else if asked.URL.Path != "/v1/codeq/tasks/"+taskID('a').String() {
		t.Errorf("asked %s", asked.URL)
	}
	figures := wire.AppendQueueFigures([]byte(`{"queues":[`), &wire.QueueFigures{Command: "hash", TenantID: "default", Ready: 7})
	c, asked = answering(t, 200, string(figures)+"]}")
	if got, err := c.Queues(ctx); err != nil || len(got) != 1 || got[0].Ready != 7 {
		t.Errorf("queues %+v, error %v", got, err)
	} else if asked.URL.Path != "/v1/codeq/admin/queues" {
		t.Errorf("asked %s", asked.URL)
	}
	c, asked = answering(t, 200, `{"version":"1.2.3","more":{}}`)
	if got, err := c.Version(ctx); err != nil || got != "1.2.3" {
		t.Errorf("version %+v, error %v", got, err)
	} else if asked.URL.Path != "/version" {
		t.Errorf("asked %s", asked.URL)
	}
}

func TestRefusalsOverHTTPComeAsTheServerSaidThem(t *testing.T) {
	c, _ := answering(t, 400, `{"error":"priority must be an integer from 0 to 9, got 10","code":"invalid_priority","retryable":false}`)
	_, err := c.EnqueueRequest(context.Background(), request("1", ""))
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != wire.CodeInvalidPriority ||
		refusal.Sentence != "priority must be an integer from 0 to 9, got 10" {
		t.Errorf("error %v", err)
	}
}

func TestAnswersThatAreNotCodeqsAreSaidToBe(t *testing.T) {
	for body, status := range map[string]int{"<html>bad gateway</html>": 502, `{"message":"no"}`: 404, "hello": 200} {
		c, _ := answering(t, status, body)
		if _, err := c.Task(context.Background(), taskID('a')); err == nil || !strings.Contains(err.Error(), c.URL()) {
			t.Errorf("%d %s: error %v, want one that names the address", status, body, err)
		}
	}
}

func TestNobodyListeningIsUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	var nobody *UnreachableError
	if _, err := c.EnqueueRequest(context.Background(), request("1", "")); !errors.As(err, &nobody) {
		t.Errorf("enqueue: %v, want UnreachableError", err)
	}
}

func TestAnEnqueueThatBreaksOffIsOfUnknownOutcome(t *testing.T) {
	c := serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := c.EnqueueRequest(context.Background(), request("1", "")); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("error %v, want ErrOutcomeUnknown", err)
	}
	var nobody *UnreachableError
	_, err := c.Task(context.Background(), taskID('a'))
	if errors.As(err, &nobody) || err == nil || !strings.Contains(err.Error(), "ended before the answer came") {
		t.Errorf("error %v, want one that says that the request was taken", err)
	}
}

func TestBaseAddressesArePutRight(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:8080":            "http://127.0.0.1:8080 ws://127.0.0.1:8080/v1/codeq/session 127.0.0.1:8080",
		":8080":                     "http://127.0.0.1:8080 ws://127.0.0.1:8080/v1/codeq/session 127.0.0.1:8080",
		"localhost":                 "http://localhost ws://localhost/v1/codeq/session localhost:80",
		" http://host:1/ ":          "http://host:1 ws://host:1/v1/codeq/session host:1",
		"https://host":              "https://host wss://host/v1/codeq/session host:443",
		"wss://host:1/queue/":       "https://host:1/queue wss://host:1/queue/v1/codeq/session host:1",
		"http://[::1]:8080":         "http://[::1]:8080 ws://[::1]:8080/v1/codeq/session [::1]:8080",
		"http://host:1/v1/codeq":    "http://host:1 ws://host:1/v1/codeq/session host:1",
		"host:1/queue/v1/codeq/":    "http://host:1/queue ws://host:1/queue/v1/codeq/session host:1",
		"":                          "",
		"ftp://host":                "",
		"http://":                   "",
		"http://user:secret@host/":  "",
		"http://host/?a=b":          "",
		"http://host:port":          "",
		"http://host/#part":         "",
		"http://ho st/":             "",
		"127.0.0.1:8080/some where": "http://127.0.0.1:8080/some%20where ws://127.0.0.1:8080/some%20where/v1/codeq/session 127.0.0.1:8080",
	} {
		base, err := parseBase(text)
		got := ""
		if err == nil {
			got = base.String() + " " + socketURL(base) + sessionPath + " " + hostPort(base)
		}
		if got != want {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}
