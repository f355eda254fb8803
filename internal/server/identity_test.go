package server

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/httpapi"
	"codeq/internal/identity"
	"codeq/wire"
)

func openProviders(t *testing.T, tokens *auth.Tokens, text string) *identity.Providers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := identity.Open(identity.Options{File: file, Tokens: tokens, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// issuer is an identity provider whose keys are in a file.
type issuer struct {
	t    *testing.T
	key  ed25519.PrivateKey
	keys string
}

// openIssued opens a server that takes the tokens of an issuer, and whose log goes to log.
func openIssued(t *testing.T, log io.Writer) (*site, *issuer) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: private, keys: filepath.Join(t.TempDir(), "keys.json")}
	i.publish(base64.RawURLEncoding.EncodeToString(public))
	s, err := Open(Options{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Version: "test", Log: zerolog.New(log).Level(zerolog.DebugLevel),
		Providers: openProviders(t, nil, "- name: id\n  issuer: me\n  audience: codeq\n  keysFile: "+i.keys+"\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, s), i
}

func (i *issuer) publish(x string) {
	i.t.Helper()
	if err := os.WriteFile(i.keys, []byte(`{"keys":[{"kty":"OKP","kid":"k","crv":"Ed25519","x":"`+x+`"}]}`), 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// token is a token of a tenant, with all scopes of it unless changed.
func (i *issuer) token(tenant string, changes ...any) string {
	i.t.Helper()
	scopes := slices.DeleteFunc(auth.Scopes(), func(s string) bool { return s == auth.ScopeAdminAll })
	c := jwt.MapClaims{
		"iss": "me", "aud": "codeq", "sub": "s", "tid": tenant, "exp": time.Now().Unix() + 3600,
		"scope": strings.Join(scopes, " "), "eventTypes": []string{"*"},
	}
	for n := 0; n < len(changes); n += 2 {
		c[changes[n].(string)] = changes[n+1]
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["kid"] = "k"
	text, err := token.SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// badTokens are tokens that no route, frame or socket takes, each with its code. CANARY is in each
// of them.
func (i *issuer) badTokens() map[string]wire.Code {
	now := time.Now().Unix()
	b64 := base64.RawURLEncoding.EncodeToString
	none := b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(`{"iss":"me","sub":"CANARY"}`)) + "."
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		i.t.Fatal(err)
	}
	stranger := &issuer{t: i.t, key: other}
	twice := strings.Split(i.token("CANARY"), ".")
	twice[1] = b64([]byte(`{"iss":"me","aud":"codeq","sub":"CANARY","sub":"s","tid":"one","exp":9999999999}`))
	secret := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": "me", "aud": "codeq", "sub": "CANARY", "exp": now + 9})
	byPublic, err := secret.SignedString([]byte(i.key.Public().(ed25519.PublicKey)))
	if err != nil {
		i.t.Fatal(err)
	}
	return map[string]wire.Code{
		strings.Join(twice, "."): wire.CodeUnauthenticated, byPublic: wire.CodeUnauthenticated,
		i.token("CANARY", "x", strings.Repeat("x", 14<<10)): wire.CodeUnauthenticated, "cq_CANARY": wire.CodeUnauthenticated, "CANARY": wire.CodeUnauthenticated,
		"": wire.CodeUnauthenticated, none: wire.CodeUnauthenticated, stranger.token("CANARY"): wire.CodeUnauthenticated,
		i.token("CANARY", "exp", now-1): wire.CodeUnauthenticated, i.token("CANARY", "nbf", now+3600): wire.CodeUnauthenticated,
		i.token("CANARY", "aud", "x"): wire.CodeUnauthenticated, i.token("CANARY", "iss", "x"): wire.CodeUnauthenticated,
		i.token("one", "tenantId", "CANARY"): wire.CodeForbidden, i.token("CANARY", "scope", "openid"): wire.CodeForbidden,
	}
}

// Every route and both sockets refuse every bad token, and say nothing of it, in the log neither.
func TestEveryRouteAndSocketRefusesABadToken(t *testing.T) {
	log := &lockedBuffer{}
	x, i := openIssued(t, log)
	good := i.token("one")
	task := x.as(good).post(`{"command":"c","payload":"CANARY"}`)
	bad := i.badTokens()
	for token, code := range bad {
		for _, route := range httpapi.Routes() {
			method, pattern, _ := strings.Cut(route, " ")
			if isOpen(pattern) || route == "DELETE /v1/codeq/login" {
				continue
			}
			a := x.as(token).ask(method, strings.NewReplacer("{id}", task.ID.String(), "{command}", "c").Replace(pattern), "")
			if strings.HasSuffix(pattern, "/session") || strings.HasSuffix(pattern, "/events") {
				continue // without an upgrade they are no socket; the sockets follow
			}
			if a.code() != code {
				t.Errorf("%s with %.20s…: %d %s", route, token, a.status, a.body)
			}
			if strings.Contains(a.body, "CANARY") {
				t.Errorf("%s: %s", route, a.body)
			}
		}
		k := x.as(token).connect()
		if e, ok := k.next().(*wire.ErrorFrame); !ok || e.Err.Code != code {
			t.Errorf("a session with %.20s…: %+v", token, e)
		}
		for _, path := range []string{"/v1/codeq/session", "/v1/codeq/events"} {
			if _, _, status := x.upgrade(path, map[string]string{"Authorization": "Bearer " + token}); token != "" && status != code.HTTPStatus() {
				t.Errorf("an upgrade of %s with %.20s…: %d", path, token, status)
			}
		}
		if response := x.as(token).stream("kind=events"); response != code.HTTPStatus() {
			t.Errorf("a stream with %.20s…: %d", token, response)
		}
	}
	x.as(good).ask("POST", "/v1/codeq/admin/queues/c/pause", "")
	x.as(i.token("one", "scope", "codeq:read")).ask("POST", "/v1/codeq/admin/queues/c/pause", "")
	said := log.text()
	for token := range bad {
		if token != "" && strings.Contains(said, token) {
			t.Error("the log has a token")
		}
	}
	if strings.Contains(said, "CANARY") || strings.Contains(said, good) {
		t.Errorf("the log has what it must not have: %s", said)
	}
	if !strings.Contains(said, `"subject":"s"`) || !strings.Contains(said, `"message":"admin"`) || !strings.Contains(said, `refused: `) {
		t.Errorf("the log lacks lines about who did what: %s", said)
	}
}

func isOpen(pattern string) bool {
	return slices.Contains([]string{"/healthz", "/readyz", "/version", "/metrics"}, pattern)
}

// stream asks for server-sent events and returns the status.
func (x *site) stream(query string) int {
	x.t.Helper()
	r, err := http.NewRequest("GET", "http://"+x.server.Addr()+"/v1/codeq/events?"+query, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Accept", "text/event-stream")
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = response.Body.Close() // a stream has no end
	return response.StatusCode
}

// A token that is too long is refused on each way by which it can come.
func TestAHugeTokenIsRefused(t *testing.T) {
	x, _ := openIssued(t, io.Discard)
	huge := "ey" + strings.Repeat("a", 1<<20) + ".b.c"
	for size, status := range map[int]int{17_000: http.StatusUnauthorized, 40_000: http.StatusRequestHeaderFieldsTooLarge} {
		if a := x.as(huge[:size]+".b.c").ask("GET", "/v1/codeq/admin/queues", ""); a.status != status {
			t.Errorf("%d bytes in a header: %d %s", size, a.status, a.body)
		}
	}
	k := x.as(huge[:900_000]).connect()
	if e, ok := k.next().(*wire.ErrorFrame); !ok || e.Err.Code != wire.CodeUnauthenticated {
		t.Errorf("900 KB in a hello: %+v", e)
	}
}

// A key that is withdrawn ends sessions, and the login of a page.
func TestAWithdrawnKeyEndsSessionsAndLogins(t *testing.T) {
	x, i := openIssued(t, io.Discard)
	token := i.token("one", "exp", time.Now().Unix()+24*3600)
	cookie := x.login(token)
	who := page{"GET", loginPath, "", map[string]string{"Cookie": cookie}}
	if a := x.browse(who); a.status != http.StatusOK || strings.Contains(cookie, token) || !strings.Contains(a.body, `"tenantId":"one"`) {
		t.Fatalf("logged in: %d %s", a.status, a.body)
	}
	k := x.as(token).dial()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i.publish(base64.RawURLEncoding.EncodeToString(public))
	x.server.o.Providers.Refresh(x.server.recheck)
	if code := k.closeCode(); code != 4401 {
		t.Errorf("the session is closed with %d", code)
	}
	if a := x.browse(who); a.status != http.StatusUnauthorized {
		t.Errorf("the page: %d %s", a.status, a.body)
	}
	if a := x.as(token).ask("GET", "/v1/codeq/admin/queues", ""); a.status != http.StatusUnauthorized {
		t.Errorf("a request: %d %s", a.status, a.body)
	}
}

// A session is renewed by a hello with a newer token, and ends with the leeway after an old one.
func TestASessionIsRenewedForItsSubjectOnly(t *testing.T) {
	x, i := openIssued(t, io.Discard)
	k := x.as(i.token("one", "exp", time.Now().Unix()+3600)).dial()
	for n, token := range []string{i.token("one"), i.token("two"), i.token("one", "sub", "t")} {
		k.say(fmt.Sprintf(`{"type":"hello","ref":%d,"token":"%s"}`, n+1, token))
		_, isOK := k.next().(*wire.OK)
		if isOK != (n == 0) {
			t.Errorf("renewal %d is ok: %t", n, isOK)
		}
	}
}
