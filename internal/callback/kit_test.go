package callback

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPoster makes a poster whose guard lets those hosts pass, and that trusts a server.
func newPoster(t *testing.T, server *httptest.Server, allow ...string) *Poster {
	t.Helper()
	g, err := NewGuard(allow)
	if err != nil {
		t.Fatal(err)
	}
	o := PosterOptions{Guard: g, Secrets: Secrets("secret"), Version: "1"}
	if server != nil && server.TLS != nil {
		o.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
	}
	p := NewPoster(o)
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}

func callbackTo(url string) wire.Callback {
	return wire.Callback{ID: "t.1", URL: url, Body: []byte(`{"taskId":"t"}`)}
}

// ask posts one callback and returns what came of it.
func ask(p *Poster, url string) Answer {
	answer := make(chan Answer, 1)
	p.Send(&Call{Callback: callbackTo(url), Tenant: "acme", Attempt: 2, TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		func(a Answer) { answer <- a })
	return <-answer
}
