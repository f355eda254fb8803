package httpapi

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

const upgradeText = "GET /v1/codeq/session HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"

// upgrade sends an upgrade with more header lines.
func (b *bench) upgrade(text string, lines ...string) got {
	b.t.Helper()
	for _, line := range lines {
		text = strings.Replace(text, "\r\n\r\n", "\r\n"+line+"\r\n\r\n", 1)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(r)
}

func TestUpgradeIsRefusedWithACodeAndASentence(t *testing.T) {
	b := newBench(t, setup{auth: keys{"good": {Tenant: "acme", Subject: "bob"}}})
	without := func(line string) string { return strings.Replace(upgradeText, line+"\r\n", "", 1) }
	instead := func(line, other string) string { return strings.Replace(upgradeText, line, other, 1) }
	with := func(line string) string { return strings.Replace(upgradeText, "\r\n\r\n", "\r\n"+line+"\r\n\r\n", 1) }
	for name, c := range map[string]struct {
		request string
		status  int
		want    string
	}{
		"POST":          {instead("GET", "POST"), 405, "method_not_allowed"},
		"HTTP/1.0":      {instead("HTTP/1.1", "HTTP/1.0"), 400, "HTTP/1.1"},
		"no upgrade":    {without("Upgrade: websocket"), 400, "Upgrade: websocket"},
		"other upgrade": {instead("Upgrade: websocket", "Upgrade: h2c"), 400, "Upgrade: websocket"},
		"no connection": {without("Connection: Upgrade"), 400, "Connection: Upgrade"},
		"no version":    {without("Sec-WebSocket-Version: 13"), 400, "must be 13"},
		"old version":   {instead("Version: 13", "Version: 8"), 400, "must be 13"},
		"no key":        {without("Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="), 400, "Key"},
		"short key":     {instead("MDEyMzQ1Njc4OWFiY2RlZg==", "MDEy"), 400, "16 random bytes"},
		"subprotocol":   {with("Sec-WebSocket-Protocol: codeq.v2, chat"), 400, "codeq.v1"},
		"bad token":     {with("Authorization: Bearer bad"), 401, "unauthenticated"},
		"other scheme":  {with("Authorization: Basic Z29vZA=="), 401, "Bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			g := b.upgrade(c.request)
			refusal, err := wire.ParseError([]byte(g.body))
			if err != nil || g.status != c.status || !strings.Contains(refusal.Error(), c.want) {
				t.Errorf("got %d %s (%v), want %d with %q", g.status, g.body, err, c.status, c.want)
			}
			if c.status == http.StatusBadRequest && g.header.Get(headerVersion) != wsVersion {
				t.Errorf("%s: %q", headerVersion, g.header.Get(headerVersion))
			}
			if c.status == http.StatusUnauthorized && g.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("WWW-Authenticate: %q", g.header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestUpgradeGoesToTheSessionsWithItsPrincipal(t *testing.T) {
	bob := &auth.Principal{Tenant: "acme", Subject: "bob"}
	b := newBench(t, setup{auth: keys{"good": bob}})
	for line, who := range map[string]*auth.Principal{"Authorization: bearer good": bob, "X-None: 1": nil} {
		if g := b.upgrade(upgradeText, line); g.status != http.StatusTeapot || b.sessions.who != who {
			t.Errorf("%s: %d %s for %v", line, g.status, g.body, b.sessions.who)
		}
	}
	b.sessions.refusal = &wire.Error{Code: wire.CodeOverloaded, Sentence: "too many", RetryAfterSeconds: 1}
	if g := b.upgrade(upgradeText); g.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", g.header.Get("Retry-After"))
	}
}
