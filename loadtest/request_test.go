package loadtest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// echo answers with what came and counts connections.
type echo struct {
	connections atomic.Int32
	// parting makes it close connections behind an answer, rude without one.
	parting, rude atomic.Bool
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || e.rude.Load() {
		panic(http.ErrAbortHandler)
	}
	if e.parting.Load() {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(http.StatusAccepted)
	for _, part := range []string{
		r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Prefer"), r.Header.Get("Content-Type"), string(body),
	} {
		_, _ = io.WriteString(w, part+"|") // a client that has gone says so itself
	}
}

// start returns the address of a server that is e.
func (e *echo) start(t *testing.T, secure bool) *address {
	t.Helper()
	s := httptest.NewUnstartedServer(e)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // what it hears of rude tests
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			e.connections.Add(1)
		}
	}
	t.Cleanup(s.Close)
	if !secure {
		s.Start()
		return &address{url: s.URL, token: "secret"}
	}
	s.StartTLS()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig
	return &address{url: s.URL, token: "secret", tls: config}
}

func TestCallerPostsOverOneConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		e := &echo{}
		c, err := newCaller(e.start(t, secure))
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for _, body := range []string{"one", "two", strings.Repeat("long", 100_000)} {
			status, answer, err := c.post("/path", "return=minimal", []byte(body))
			want := "POST|/path|Bearer secret|return=minimal|application/json|" + body + "|"
			if err != nil || status != http.StatusAccepted || string(answer) != want {
				t.Errorf("TLS %t: %d, %v, %.100q", secure, status, err, answer)
			}
		}
		if n := e.connections.Load(); n != 1 {
			t.Errorf("TLS %t: %d connections for three requests", secure, n)
		}
	}
}

func TestCallerConnectsAgain(t *testing.T) {
	e := &echo{}
	c, err := newCaller(e.start(t, false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	e.parting.Store(true)
	for range 2 {
		if _, answer, err := c.post("/", "", nil); err != nil || len(answer) == 0 {
			t.Fatalf("%q, %v", answer, err)
		}
	}
	e.rude.Store(true)
	if _, _, err := c.post("/", "", nil); err == nil {
		t.Error("a request without an answer is no error")
	}
	e.rude.Store(false)
	if status, _, err := c.post("/", "", nil); err != nil || status != http.StatusAccepted {
		t.Errorf("after it: %d, %v", status, err)
	}
	if n := e.connections.Load(); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
}

func TestCallerTrustsNobodyUnasked(t *testing.T) {
	e := &echo{}
	at := e.start(t, true)
	for name, config := range map[string]*tls.Config{"no certificate": nil, "another name": at.tls.Clone()} {
		if config != nil {
			config.ServerName = "elsewhere.test"
		}
		c, err := newCaller(&address{url: at.url, tls: config})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.post("/", "", nil); err == nil {
			t.Errorf("%s: the server was trusted", name)
		}
	}
}
