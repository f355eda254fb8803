package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"codeq/internal/httpapi"
)

// isShared tells the routes that pages of --allow-origin may use: three posts of producers, beside every GET that needs codeq:read
// or any credential; the page of security.md names the same.
func isShared(route string) bool {
	method, pattern, _ := strings.Cut(route, " ")
	switch route {
	case "POST /v1/codeq/tasks", "POST /v1/codeq/tasks/batch", "POST /v1/codeq/tasks/{id}/cancel":
		return true
	case "GET /v1/codeq/admin/cluster", "GET /v1/codeq/admin/backup", "GET /v1/codeq/admin/config", "GET /v1/codeq/admin/webhooks/secret", "GET /v1/codeq/session",
		"GET /v1/codeq/workers/subscriptions":
		return false
	}
	return method == "GET" && !isOpen(pattern)
}

// An answer may be read by pages of the origins that are named, on routes of producers and readers;
// exactly those, and never with what a browser adds by itself.
func TestPagesOfNamedOriginsReadAnswersOfProducersAndReaders(t *testing.T) {
	f := newTokenFile(t)
	bearer := "Bearer " + f.addAll("one")
	x := openPaged(f, t.TempDir())
	_, port, err := net.SplitHostPort(x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range httpapi.Routes() {
		r := rawRequest(route)
		for _, origin := range []string{
			"https://app.example", "http://localhost:3000", "null", "", "https://evil-app.example", "https://app.example.evil", "https://app.example:8443",
			"http://app.example", "https://sub.app.example", "https://app.example/", "http://localhost:" + port, "https://app.example https://evil.example",
		} {
			allowed := isShared(route) && (origin == "https://app.example" || origin == "http://localhost:3000")
			want := ""
			if allowed {
				want = origin
			}
			p := page{method: "OPTIONS", path: r.path, headers: map[string]string{
				"Host": "localhost:" + port, "Origin": origin, "Access-Control-Request-Method": r.method, "Access-Control-Request-Headers": "authorization",
			}}
			a := x.browse(p)
			if got := a.header.Get("Access-Control-Allow-Origin"); got != want || allowed != (a.status == http.StatusNoContent) ||
				allowed != (a.header.Get("Access-Control-Allow-Methods") == r.method) || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s asked for by %q: %d %v", route, origin, a.status, a.header)
			}
			if strings.HasSuffix(route, "/events") || strings.HasSuffix(route, "/session") || strings.HasSuffix(route, "/backup") {
				continue // a stream has no end, sockets are in the test of the guard, a copy is long
			}
			p = page{method: r.method, path: r.path + r.query, body: r.body, headers: map[string]string{
				"Host": "localhost:" + port, "Origin": origin, "Authorization": bearer,
			}}
			a = x.browse(p)
			if got := a.header.Get("Access-Control-Allow-Origin"); got != want || isShared(route) != (a.header.Get("Vary") == "Origin") ||
				allowed != strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Retry-After") || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s by %q: %d %v", route, origin, a.status, a.header)
			}
		}
	}
}

// A page reads a refusal too, and the cookie of a page of this server is of no use to another one.
func TestAPageOfANamedOriginReadsRefusalsAndUsesNoCookie(t *testing.T) {
	f := newTokenFile(t)
	token := f.addAll("one")
	x := openPaged(f, t.TempDir())
	cookie := x.login(token)
	ask := page{"GET", "/v1/codeq/admin/queues", "", map[string]string{"Host": "localhost:1", "Origin": "https://app.example", "Authorization": "Bearer no"}}
	if a := x.browse(ask); a.status != http.StatusUnauthorized || a.header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("a bad token: %d %v", a.status, a.header)
	}
	ask.headers["Cookie"] = cookie
	delete(ask.headers, "Authorization")
	if a := x.browse(ask); a.status != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a cookie: %d %v", a.status, a.header)
	}
}

// Every answer, of every route and of the pages, tells browsers not to guess its type, not to show
// it in a frame and not to keep it; over TLS to a name, to come back by TLS.
func TestEveryAnswerHasTheHeadersForBrowsers(t *testing.T) {
	check := func(what string, h http.Header, isPage bool) {
		t.Helper()
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || !isPage && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", what, h)
		}
	}
	x := openSite(t, t.TempDir())
	paths := []string{"GET /", "GET /ui/", "GET /ui/no", "GET /nothing", "DELETE /version", "GET /a//b"}
	for _, route := range append(httpapi.Routes(), paths...) {
		if route == "GET /v1/codeq/admin/backup" {
			continue // a copy is long
		}
		r := rawRequest(route)
		a := x.ask(r.method, r.path+r.query, r.body)
		check(route, a.header, slices.Contains(paths, route))
		if a.header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: a server without TLS asks for it", route)
		}
	}
	response, err := http.Get("http://" + x.server.Addr() + "/v1/codeq/tasks?x=1")
	if err != nil {
		t.Fatal(err)
	}
	check("a refused method", response.Header, false)
	_ = response.Body.Close() // it was not read
	if status, h := x.streamed(); status != http.StatusOK || h.Get("Cache-Control") != "no-store" {
		t.Errorf("a stream: %d %v", status, h)
	}
}

// streamed begins a stream of events and returns the head of its answer.
func (x *site) streamed() (int, http.Header) {
	x.t.Helper()
	r, err := http.NewRequest("GET", "http://"+x.server.Addr()+"/v1/codeq/events?kind=events", nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = response.Body.Close() // a stream has no end
	return response.StatusCode, response.Header
}

func TestOnlyANameIsTiedToTLS(t *testing.T) {
	x := openSecured(t, nil, tls.VersionTLS13)
	cert, key := x.authority.Issue("named", &x509.Certificate{DNSNames: []string{"queue.example", "localhost"}})
	x.server.o.Certificate.files.Certificate, x.server.o.Certificate.files.Key = cert, key
	x.server.ReloadTokens()
	for name, want := range map[string]string{"queue.example": "max-age=31536000", "localhost": ""} {
		config := x.authority.Client("", "")
		x.speak(config)
		x.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, x.server.Addr())
		}
		response, err := x.http.Get(fmt.Sprintf("https://%s/healthz", name))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close() // it was not read
		if got := response.Header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
