package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"codeq/wire"
)

// place is a server of a redirect test: it notes what reaches it and sends it on,
// or answers.
type place struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string // method, path, body and token of each request
	// status and to are the redirect; 0 is an answer instead. What is asked for
	// is added to the address, as a proxy does.
	status int
	to     string
	answer string
}

func newPlace(t *testing.T, secure bool) *place {
	p := &place{answer: taskBody('a')}
	p.Server = httptest.NewUnstartedServer(p)
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP implements http.Handler.
func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // as much as came
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization")))
	if p.status != 0 {
		if p.to != "" {
			w.Header().Set("Location", p.to+r.URL.RequestURI())
		}
		w.WriteHeader(p.status)
		return
	}
	if strings.HasPrefix(p.answer, `{"error"`) {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, p.answer) // a client that is gone notices itself
}

func (p *place) sends(status int, to string) { p.status, p.to = status, to }

func clientOf(t *testing.T, address string) *Client {
	t.Helper()
	c, err := New(address, WithToken("secret"), WithTLS(&tls.Config{InsecureSkipVerify: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// asks are requests of every kind: with a body and without, streamed, and the
// opening of a session.
var asks = map[string]func(*Client) error{
	"post": func(c *Client) error { _, err := c.Enqueue(context.Background(), "c", 1); return err },
	"put": func(c *Client) error {
		_, err := c.SetQueue(context.Background(), "c", &wire.QueueSettings{})
		return err
	},
	"delete": func(c *Client) error {
		_, err := c.PurgeTasks(context.Background(), BulkQuery{Command: "c"})
		return err
	},
	"get": func(c *Client) error { _, err := c.Task(context.Background(), taskID('a')); return err },
	"backup": func(c *Client) error {
		return c.Backup(context.Background(), func(string, int64, io.Reader) error { return nil })
	},
	"session": func(c *Client) error {
		_, err := c.connect(context.Background(), sessionDialect, &wire.Hello{})
		return err
	},
}

func TestN08OnlyRedirectsThatKeepTheRequestAreFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, ask := range asks {
			from, to := newPlace(t, false), newPlace(t, false)
			from.sends(status, to.URL)
			err := ask(clientOf(t, from.URL))
			followed := status == 307 || status == 308
			if got := len(to.heard); got != map[bool]int{true: 1}[followed] || len(from.heard) != 1 {
				t.Errorf("%d, %s: the new place heard %d requests, the old one %d", status, name, got, len(from.heard))
				continue
			}
			if followed {
				want := strings.TrimSpace(strings.TrimSuffix(from.heard[0], "Bearer secret"))
				if to.heard[0] != want || want == from.heard[0] {
					t.Errorf("%d, %s: the new place heard %q, the old one %q", status, name, to.heard[0], from.heard[0])
				}
				continue
			}
			want := fmt.Sprintf("%s answered %d %s: the server has moved to %s: give that address (--url)", from.URL, status, http.StatusText(status), to.URL)
			if err == nil || err.Error() != want || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%d, %s: error %v, want %q", status, name, err, want)
			}
		}
	}
}

func TestN08ARedirectGoesToHTTPSAndNeverBack(t *testing.T) {
	for name, ask := range asks {
		plain, secure := newPlace(t, false), newPlace(t, true)
		plain.sends(308, secure.URL)
		if err := ask(clientOf(t, plain.URL)); len(secure.heard) != 1 {
			t.Errorf("%s: not sent on to https: %v", name, err)
		}
		plain.sends(0, "")
		secure.sends(307, plain.URL)
		err := ask(clientOf(t, secure.URL))
		if len(plain.heard) != 1 || err == nil || !strings.Contains(err.Error(), plain.URL+", which is not encrypted") {
			t.Errorf("%s: error %v, the plain place heard %q", name, err, plain.heard[1:])
		}
	}
}

func TestN08RedirectsEnd(t *testing.T) {
	for name, ask := range asks {
		round := newPlace(t, false)
		round.sends(307, round.URL)
		if err := ask(clientOf(t, round.URL)); len(round.heard) != 1+maxHops || err == nil ||
			!strings.Contains(err.Error(), "after 5 redirects") {
			t.Errorf("%s: %d requests, error %v", name, len(round.heard), err)
		}
		for _, to := range []string{"", "ftp://host", "http://", "http://ho st"} {
			lost := newPlace(t, false)
			lost.sends(308, to)
			if err := ask(clientOf(t, lost.URL)); len(lost.heard) != 1 || err == nil ||
				!strings.Contains(err.Error(), "without the address of a server") || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s to %q: %d requests, error %v", name, to, len(lost.heard), err)
			}
		}
	}
}

// The token goes to the host and port that it was given for, also after a
// redirect there, and to no other; the refusal that follows says so.
func TestN08TheTokenStaysWithItsServer(t *testing.T) {
	for name, ask := range asks {
		old, other := newPlace(t, false), newPlace(t, false)
		other.answer = `{"error":"no credential","code":"unauthenticated","retryable":false}`
		old.sends(307, other.URL)
		err := ask(clientOf(t, old.URL))
		var refusal *wire.Error
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "a redirect led from "+old.URL+" to "+other.URL+", to which the token is not sent") {
			t.Errorf("%s: error %v", name, err)
		}
		other.sends(307, old.URL)
		if err := ask(clientOf(t, old.URL)); err == nil {
			t.Errorf("%s: went round without an error", name)
		}
		for _, heard := range old.heard {
			if !strings.HasSuffix(heard, "Bearer secret") {
				t.Errorf("%s: back at its server the request was %q", name, heard)
			}
		}
		for _, heard := range other.heard {
			if strings.Contains(heard, "secret") {
				t.Errorf("%s: the other place heard %q", name, heard)
			}
		}
	}
}

func TestN08OneServerIsOneHostAndPort(t *testing.T) {
	c := clientOf(t, "http://Queue.test")
	for address, want := range map[string]bool{
		"http://queue.test/x": true, "http://queue.test:80/": true, "https://queue.test:80": true,
		"https://queue.test": false, "http://queue.test:81": false, "http://a.queue.test": false, "http://queue.test.evil": false,
	} {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.mayKnowToken(at); got != want {
			t.Errorf("%s may know the token: %t", address, got)
		}
	}
}
