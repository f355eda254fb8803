package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/internal/auth"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker makes tokens, and is the endpoint of their keys.
type maker struct {
	t      testing.TB
	ed     ed25519.PrivateKey
	rsa    *rsa.PrivateKey
	ec     *ecdsa.PrivateKey
	server *httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
	nowMs  atomic.Int64
	log    lockedText
	file   string
}

type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// rsaKey is drawn once, because that takes long.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// startMs is the time of every test: 2026-01-01 UTC.
const startMs = 1_767_225_600_000

func newMaker(t testing.TB) *maker {
	t.Helper()
	m := &maker{t: t}
	m.nowMs.Store(startMs)
	var err error
	if m.rsa, err = rsaKey(); err != nil {
		t.Fatal(err)
	}
	if _, m.ed, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	if m.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	m.say(m.keys("ed", "rsa", "ec"))
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		(*m.answer.Load())(w, r)
	}))
	t.Cleanup(m.server.Close)
	m.file = filepath.Join(t.TempDir(), "providers.yaml")
	return m
}

// do sets what the endpoint answers.
func (m *maker) do(answer http.HandlerFunc) { m.answer.Store(&answer) }

func (m *maker) say(text string) {
	m.do(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

// keys is a key set.
func (m *maker) keys(names ...string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	point, err := m.ec.PublicKey.Bytes()
	if err != nil {
		m.t.Fatal(err)
	}
	all := map[string]string{
		"ed":  `{"kty":"OKP","kid":"ed","crv":"Ed25519","x":"` + b64(m.ed.Public().(ed25519.PublicKey)) + `"}`,
		"rsa": `{"kty":"RSA","kid":"rsa","use":"sig","alg":"RS256","n":"` + b64(m.rsa.N.Bytes()) + `","e":"AQAB"}`,
		"ec":  `{"kty":"EC","kid":"ec","crv":"P-256","x":"` + b64(point[1:33]) + `","y":"` + b64(point[33:]) + `"}`,
	}
	var list []string
	for _, name := range names {
		list = append(list, all[name])
	}
	return `{"keys":[` + strings.Join(list, ",") + `]}`
}

// open opens the providers of a text, in which URL is the endpoint.
func (m *maker) open(text string) *Providers {
	m.t.Helper()
	if err := os.WriteFile(m.file, []byte(strings.ReplaceAll(text, "URL", m.server.URL)), 0o600); err != nil {
		m.t.Fatal(err)
	}
	p, err := Open(Options{File: m.file, Log: zerolog.New(&m.log), NowMs: m.nowMs.Load})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(p.Close)
	return p
}

const oneIssuer = "- name: id\n  issuer: https://id.example\n  audience: codeq\n  keys: URL/keys\n"

// good are the claims of a good token.
func good(changes ...any) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://id.example", "aud": "codeq", "sub": "ada", "tid": "acme", "exp": startMs/1000 + 3600, "iat": startMs / 1000,
		"scope": "codeq:claim codeq:result openid", "eventTypes": []string{"a", "build.*"},
	}
	for i := 0; i < len(changes); i += 2 {
		if c[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(c, changes[i].(string))
		}
	}
	return c
}

// sign signs claims. header changes the header.
func (m *maker) sign(c jwt.MapClaims, header map[string]any) string {
	m.t.Helper()
	return m.signed(jwt.SigningMethodEdDSA, m.ed, "ed", c, header)
}

func (m *maker) signed(method jwt.SigningMethod, k crypto.PrivateKey, kid string, c jwt.MapClaims, header map[string]any) string {
	m.t.Helper()
	token := jwt.NewWithClaims(method, c)
	token.Header["kid"] = kid
	maps.Copy(token.Header, header)
	text, err := token.SignedString(k)
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

// raw signs header and claims as they are.
func (m *maker) raw(header, payload string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(header)) + "." + b64([]byte(payload))
	return text + "." + b64(ed25519.Sign(m.ed, []byte(text)))
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// must wants a code for a token, "" for a principal.
func must(t testing.TB, p *Providers, token string, code wire.Code, part string) *auth.Principal {
	t.Helper()
	who, refusal := p.Authenticate(t.Context(), token)
	switch {
	case refusal == nil && code != "":
		t.Errorf("it stands for %+v, want %s", who, code)
	case refusal != nil && (refusal.Code != code || !strings.Contains(refusal.Sentence, part)):
		t.Errorf("refused with %s: %s\nwant %s: %s", refusal.Code, refusal.Sentence, code, part)
	case refusal != nil && (who != nil || len(token) > 8 && strings.Contains(refusal.Sentence, token[:8])):
		t.Errorf("a refusal with the token: %s", refusal.Sentence)
	case refusal != nil && code == wire.CodeAuthUnavailable && (refusal.RetryAfterSeconds == 0 || !code.Retryable() || code.HTTPStatus() != 503):
		t.Errorf("no advice: %+v", refusal)
	}
	return who
}

// eventually waits for what a goroutine does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		time.Sleep(time.Millisecond) // the requests of a real socket
	}
}
