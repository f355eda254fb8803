package faults

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// idp is an identity provider, whose key set is what answers says at the moment.
type idp struct {
	t       *testing.T
	key     ed25519.PrivateKey
	answers atomic.Pointer[http.HandlerFunc]
	asked   atomic.Int64
	server  *httptest.Server
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{t: t, key: newKey(t)}
	p.publish(p.key)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answers.Load())(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// says has the provider answer with a text.
func (p *idp) says(text string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	p.answers.Store(&h)
}

// publish has the provider answer with the public half of a key.
func (p *idp) publish(key ed25519.PrivateKey) {
	x := base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	p.says(`{"keys":[{"kty":"OKP","kid":"k","crv":"Ed25519","x":"` + x + `"}]}`)
}

// token is a token of an issuer, with changes of its claims; nil is null in JSON.
func (p *idp) token(issuer string, changes ...any) string {
	p.t.Helper()
	claims := map[string]any{
		"iss": issuer, "aud": "codeq", "sub": "CANARYs", "tid": "one", "exp": time.Now().Unix() + 3600, "scope": "codeq:produce codeq:read", "eventTypes": "a",
	}
	for i := 0; i < len(changes); i += 2 {
		claims[changes[i].(string)] = changes[i+1]
	}
	text, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.sign(`{"alg":"EdDSA","kid":"k"}`, string(text))
}

func (p *idp) sign(header, claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(header)) + "." + b64([]byte(claims))
	switch {
	case strings.Contains(header, "HS256"):
		mac := hmac.New(sha256.New, p.key.Public().(ed25519.PublicKey))
		mac.Write([]byte(text))
		return text + "." + b64(mac.Sum(nil))
	case strings.Contains(header, "none"):
		return text + "."
	}
	return text + "." + b64(ed25519.Sign(p.key, []byte(text)))
}

// newIdentified is a server at debug level with one provider of each sort. Only that of "good" gives
// good answers.
func newIdentified(t *testing.T) (*site, map[string]*idp) {
	t.Helper()
	all := map[string]*idp{}
	file := ""
	for _, name := range []string{"good", "empty", "huge", "html", "slow", "stranger", "gone"} {
		p := newIDP(t)
		all[name] = p
		file += fmt.Sprintf("- {name: %s, issuer: %s, audience: codeq, keys: %q}\n", name, name, p.server.URL)
	}
	all["empty"].says(`{"keys":[]}`)
	all["huge"].says(`{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	all["html"].says(`<html>CANARY</html>`)
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	all["slow"].answers.Store(&slow)
	all["stranger"].publish(newKey(t))
	all["gone"].server.Close()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return newSite(t, "--providers", path, "--log-level", "debug"), all
}

// refusedAs is the code with which a request of a token is refused, "" for none.
func (x *site) refusedAs(token, ask, body string) wire.Code {
	x.t.Helper()
	method, path, _ := strings.Cut(ask, " ")
	_, err := x.api.As(token).Do(x.ctx, method, path, body)
	var refusal *wire.Error
	if err != nil && !errors.As(err, &refusal) {
		x.t.Fatalf("%s: %v", ask, err)
	}
	if refusal == nil {
		return ""
	}
	if strings.Contains(refusal.Sentence, "CANARY") {
		x.t.Errorf("%s: %v", ask, refusal)
	}
	return refusal.Code
}

// Bad tokens and bad providers, at the built server: a provider that gives no keys makes its tokens
// auth_unavailable, a bad token is refused with its code, and neither is in the log.
func TestTheBuiltServerRefusesBadTokensAndBadProviders(t *testing.T) {
	x, all := newIdentified(t)
	good := all["good"]
	x.eventually(patience, "the keys are read", func() bool { return x.refusedAs(good.token("good"), "GET /admin/queues", "") == "" })
	tokens := []string{}
	check := func(what, token, ask, body string, want wire.Code) {
		t.Helper()
		tokens = append(tokens, token)
		if got := x.refusedAs(token, ask, body); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for _, name := range []string{"empty", "huge", "html", "slow", "gone"} {
		check(name, all[name].token(name), "GET /admin/queues", "", wire.CodeAuthUnavailable)
	}
	now := time.Now().Unix()
	for what, token := range map[string]string{
		"another key of the same name": all["stranger"].token("stranger"), "the key of another issuer": all["stranger"].token("good"),
		"expired": good.token("good", "exp", now-1), "never ends": good.token("good", "exp", nil), "not yet": good.token("good", "nbf", now+3600),
		"another audience": good.token("good", "aud", "x"), "another issuer": good.token("x"), "unknown": "CANARY", "none": good.sign(`{"alg":"none"}`, `{"iss":"good"}`),
		"a public key as a secret": good.sign(`{"alg":"HS256","kid":"k"}`, `{"iss":"good","aud":"codeq","sub":"CANARY"}`),
		"a claim twice":            good.sign(`{"alg":"EdDSA","kid":"k"}`, `{"iss":"good","sub":"CANARY","sub":"b"}`),
		"17 KB":                    good.sign(`{"alg":"EdDSA","kid":"k"}`, `{"iss":"good","x":"`+strings.Repeat("x", 11<<10)+`"}`),
	} {
		check(what, token, "GET /admin/queues", "", wire.CodeUnauthenticated)
	}
	check("two tenants", good.token("good", "tenantId", "CANARY"), "GET /admin/queues", "", wire.CodeForbidden)
	check("no tenant", good.token("good", "tid", nil), "GET /admin/queues", "", wire.CodeForbidden)
	check("a missing scope", good.token("good", "scope", "codeq:claim"), "GET /admin/queues", "", wire.CodeForbidden)
	check("a missing command", good.token("good"), "POST /tasks", `{"command":"b","payload":"CANARY"}`, wire.CodeForbidden)
	check("all rights", good.token("good"), "POST /tasks", `{"command":"a","payload":1}`, "")
	if asked := all["gone"].asked.Load() + all["stranger"].asked.Load(); asked > 20 {
		t.Errorf("bad tokens caused %d requests", asked)
	}
	said := x.server.Log() + x.server.Metrics()
	for _, token := range tokens {
		if strings.Contains(said, token) {
			t.Errorf("the log has the token %.20s…", token)
		}
	}
	if strings.Contains(strings.ReplaceAll(said, `"subject":"CANARYs"`, ""), "CANARY") {
		t.Errorf("the log has what it must not have: %s", said)
	}
}

// A key that its issuer withdraws ends sessions within a minute; one that cannot be read any more
// ends none.
func TestTheBuiltServerEndsSessionsOfAWithdrawnKey(t *testing.T) {
	x, all := newIdentified(t)
	good := all["good"]
	token := good.token("good", "scope", "codeq:subscribe codeq:read")
	x.eventually(patience, "the keys are read", func() bool { return x.refusedAs(token, "GET /admin/queues", "") == "" })
	p, err := blackbox.Dial(x.ctx, x.server.Addr, &wire.Hello{WorkerID: "w", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	good.publish(newKey(t))
	x.eventually(time.Minute+patience, "the session ends", func() bool { return p.CloseCode() == 4401 })
	if code := x.refusedAs(token, "GET /admin/queues", ""); code != wire.CodeUnauthenticated {
		t.Errorf("a request: %q", code)
	}
}
