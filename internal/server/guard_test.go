package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/httpapi"
	"codeq/wire"
)

// knock is how a request says who is asked and for which page: the lines of its
// head. PORT stands for the port of the server.
type knock struct {
	lines string
	// open and closed are the refusals of a server without and with tokens, the
	// latter for sessions only; "" is none.
	open, closed wire.Code
}

const (
	badHost   = wire.CodeForbiddenHost
	badOrigin = wire.CodeForbiddenOrigin
	// netHTTP is an answer that is not the API's: net/http refuses the request.
	netHTTP wire.Code = "no answer of the API"
)

// The server of these knocks listens on 127.0.0.1, is also called
// Queue.Example and xn--bcher-kva.example, and lets https://app.example and
// http://localhost:3000 ask.
var knocks = func() []knock {
	local := "Host: localhost:PORT\n"
	page := func(origin string) string { return local + "Origin: " + origin + "\n" }
	var all []knock
	for _, host := range []string{
		"127.0.0.1:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:", "10.1.2.3", "[::1]", "[::1]:PORT", "[::1]:1", "[0:0::1]", "[fe80::1%eth0]",
		"[fe80::1%25eth0]:80", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST:PORT", "localhost.", "LocalHost.:1", "queue.example", "QUEUE.example.:443",
		"xn--bcher-kva.example",
	} {
		all = append(all, knock{lines: "Host: " + host + "\n"})
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:PORT", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example", "127.0.0.1.", "127.1", "2130706433",
		"0x7f.0.0.1", "localhost..", ".localhost", "::1", "[::1", "[127.0.0.1]", "[localhost]", "localhost:80:80", "localhost:http", "xqueue.example",
		"queue.example.evil.example", "bcher-kva.example", "localhost,evil.example",
	} {
		all = append(all, knock{lines: "Host: " + host + "\n", open: badHost})
	}
	for _, proxied := range []string{"X-Forwarded-Host: localhost", "Forwarded: host=localhost", "X-Forwarded-For: 127.0.0.1", "X-Original-Host: localhost"} {
		all = append(all, knock{lines: "Host: evil.example\n" + proxied + "\n", open: badHost})
	}
	for _, origin := range []string{
		"http://localhost:PORT", "HTTP://LocalHost:PORT", "https://app.example", "https://APP.example:443", "http://localhost:3000",
	} {
		all = append(all, knock{lines: page(origin)})
	}
	for _, origin := range []string{
		"", "null", "http://evil.example", "http://evil.example:PORT", "http://localhost", "http://localhost:1", "https://localhost:PORT", "http://127.0.0.1:PORT",
		"http://localhost:PORT.evil.example", "http://localhost.evil.example:PORT", "http://localhost:PORT@evil.example", "http://evil.example#localhost:PORT",
		"http://localhost:PORT/", "http://app.example", "https://app.example:8443", "https://xapp.example", "https://app.example.evil.example",
		"https://app.example/", "https://*.example", "localhost:PORT", "file://", "http://localhost:PORT http://evil.example", "http://localhost:PORT, null",
	} {
		all = append(all, knock{page(origin), badOrigin, badOrigin})
	}
	for _, site := range []string{"same-origin", "none"} {
		all = append(all, knock{lines: local + "Sec-Fetch-Site: " + site + "\n"}, knock{lines: page("http://localhost:PORT") + "Sec-Fetch-Site: " + site + "\n"})
	}
	for _, site := range []string{"cross-site", "same-site", "CROSS-SITE", "", "anything", "same-origin, cross-site", "none\nSec-Fetch-Site: cross-site"} {
		all = append(all, knock{local + "Sec-Fetch-Site: " + site + "\n", badOrigin, badOrigin})
	}
	return append(all,
		knock{lines: "Host: localhost\nOrigin: http://localhost\n"},
		knock{lines: "Host: localhost:\nOrigin: http://localhost:80\n"},
		knock{lines: "Host: [::1]:8080\nOrigin: http://[0::1]:8080\n"},
		knock{"Host: localhost\nOrigin: https://localhost\n", badOrigin, badOrigin},
		knock{lines: page("https://app.example") + "Sec-Fetch-Site: cross-site\n"},
		knock{page("http://localhost:PORT") + "Sec-Fetch-Site: cross-site\n", badOrigin, badOrigin},
		knock{page("https://evil.example") + "Sec-Fetch-Site: same-origin\n", badOrigin, badOrigin},
		knock{page("http://localhost:PORT") + "Origin: http://localhost:PORT\n", badOrigin, badOrigin},
		knock{page("http://localhost:PORT") + "Origin: http://evil.example\n", badOrigin, badOrigin},
		// What a name that was made to point here has for its pages.
		knock{lines: "Host: evil.example:PORT\nOrigin: http://evil.example:PORT\nSec-Fetch-Site: same-origin\n", open: badHost},
		// A proxy that ends https and keeps Host, and one that writes its own.
		knock{"Host: queue.example\nX-Forwarded-Proto: https\nOrigin: https://queue.example\n", badOrigin, badOrigin},
		knock{"Host: 10.1.2.3:8080\nX-Forwarded-Host: evil.example\nOrigin: http://evil.example\n", badOrigin, badOrigin},
		knock{lines: "Host: 10.1.2.3:8080\nX-Forwarded-Host: app.example\nOrigin: https://app.example\n"},
		knock{"Host: localhost\nHost: localhost\n", netHTTP, netHTTP},
		knock{"Host: user@localhost\n", netHTTP, netHTTP},
		knock{"Host: localhost/\n", netHTTP, netHTTP},
		knock{"Host: b\u00fccher.example\n", netHTTP, netHTTP},
		knock{"", netHTTP, netHTTP},
	)
}()

// knockAt asks a route and returns the code of the refusal.
func (x *site) knockAt(route, version, lines string) (code wire.Code, err error) {
	_, port, err := net.SplitHostPort(x.server.Addr())
	if err != nil {
		return "", err
	}
	r := rawRequest(route)
	text := fmt.Sprintf("%s %s %s\n%sContent-Length: %d\n", r.method, r.target(), version, lines, len(r.body))
	if r.path == "/v1/codeq/session" || r.path == "/v1/codeq/events" {
		text += "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\n"
	} else {
		text += "Connection: close\n"
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "PORT", port), "\n", "\r\n") + "\r\n" + r.body
	conn, err := net.Dial("tcp", x.server.Addr())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method})
	if err != nil || response.StatusCode < 400 {
		return "", err
	}
	if response.Header.Get("Content-Type") != "application/json" {
		return netHTTP, nil
	}
	var e struct{ Code wire.Code }
	return e.Code, json.NewDecoder(response.Body).Decode(&e)
}

// admits holds all knocks at all routes against what the guard is to say.
func (x *site) admits(t *testing.T, want func(*knock, string) wire.Code) {
	t.Helper()
	for _, route := range httpapi.Routes() {
		for _, k := range knocks {
			code, err := x.knockAt(route, "HTTP/1.1", k.lines)
			if code != badHost && code != badOrigin && code != netHTTP {
				code = ""
			}
			if err != nil || code != want(&k, route) {
				t.Errorf("%s with %q: refused with %q (%v), want %q", route, k.lines, code, err, want(&k, route))
			}
		}
	}
}

func guardedOptions() Options {
	return Options{
		DataDir: "data", FS: vfs.NewMem(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test",
		PublicHosts: []string{"Queue.Example", "xn--bcher-kva.example."}, AllowOrigins: []string{"https://app.example", "http://localhost:3000"},
	}
}

func TestN05EveryRouteWithoutTokensKnowsItsHostsAndPages(t *testing.T) {
	s, err := Open(guardedOptions())
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	x.admits(t, func(k *knock, _ string) wire.Code { return k.open })
	// A request of HTTP/1.0 without Host, as simple probes send it.
	if code, err := x.knockAt("GET /healthz", "HTTP/1.0", ""); err != nil || code != badHost {
		t.Errorf("without Host: %q, %v", code, err)
	}
	if code, err := x.knockAt("GET /healthz", "HTTP/1.0", "Host: 127.0.0.1\n"); err != nil || code != "" {
		t.Errorf("by HTTP/1.0: %q, %v", code, err)
	}
}

func TestN05WithTokensOnlySocketsLookAtThePage(t *testing.T) {
	f := newTokenFile(t)
	f.addAll("one")
	tokens, err := auth.OpenTokens(f.path)
	if err != nil {
		t.Fatal(err)
	}
	o := guardedOptions()
	o.Tokens = tokens
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	x.admits(t, func(k *knock, route string) wire.Code {
		if route == "GET /v1/codeq/session" || route == "GET /v1/codeq/events" || k.closed == netHTTP {
			return k.closed
		}
		return ""
	})
}

func TestN05NoPageOfAnotherOriginMakesATask(t *testing.T) {
	s, err := Open(guardedOptions())
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	for _, k := range knocks {
		if k.open == "" {
			continue
		}
		if code, err := x.knockAt("POST /v1/codeq/tasks", "HTTP/1.1", k.lines+"Content-Type: text/plain\n"); err != nil || code != k.open {
			t.Errorf("%q: %q, %v", k.lines, code, err)
		}
	}
	x.mustHoldTasks(0)
}
