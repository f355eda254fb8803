package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	bad       = wire.CodeUnauthenticated
	forbidden = wire.CodeForbidden
	down      = wire.CodeAuthUnavailable
)

func TestAGoodTokenStandsForItsClaims(t *testing.T) {
	m := newMaker(t)
	p := m.open(oneIssuer)
	for name, token := range map[string]string{
		"EdDSA": m.sign(good(), nil), "RS256": m.signed(jwt.SigningMethodRS256, m.rsa, "rsa", good(), nil),
		"ES256": m.signed(jwt.SigningMethodES256, m.ec, "ec", good(), nil),
	} {
		who := must(t, p, token, "", "")
		if who == nil {
			t.Fatal(name)
		}
		if who.Tenant != "acme" || who.Subject != "ada" || who.ExpiresAtMs != startMs+3_600_000 ||
			!slices.Equal(who.Scopes, []string{auth.ScopeClaim, auth.ScopeResult}) || !who.MayUse("build.x") || who.MayUse("b") {
			t.Errorf("%s: %+v", name, who)
		}
		if again := must(t, p, token, "", ""); again != who || who.Current() != who {
			t.Errorf("%s: it is another one the second time", name)
		}
	}
	if n := m.asked.Load(); n != 1 {
		t.Errorf("the keys were read %d times", n)
	}
}

// badToken is a token, and the code and a part of the sentence of its refusal.
type badToken struct {
	token, part string
	code        wire.Code
}

// badTokens are tokens by what is wrong with them.
func badTokens(t *testing.T, m *maker) map[string]badToken {
	const now = startMs / 1000
	b64 := base64.RawURLEncoding.EncodeToString
	header, payload := `{"alg":"EdDSA","kid":"ed"}`, jsonOf(good())
	none := b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(payload)) + "."
	hmac := jwt.NewWithClaims(jwt.SigningMethodHS256, good())
	hmac.Header["kid"] = "ed"
	confused, err := hmac.SignedString([]byte(m.ed.Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sound := m.sign(good(), nil)
	return map[string]badToken{
		"alg none":             {none, "algorithm", bad},
		"alg None":             {b64([]byte(`{"alg":"None"}`)) + "." + b64([]byte(payload)) + ".", "algorithm", bad},
		"HMAC of a public key": {confused, "algorithms are", bad},
		"wrong key type":       {m.signed(jwt.SigningMethodRS256, m.rsa, "ed", good(), nil), "no such key for this algorithm", bad},
		"another's signature":  {m.signed(jwt.SigningMethodEdDSA, stranger, "ed", good(), nil), "signature", bad},
		"a changed claim":      {strings.Join([]string{strings.Split(sound, ".")[0], b64([]byte(jsonOf(good("tid", "other")))), strings.Split(sound, ".")[2]}, "."), "signature", bad},
		"no signature":         {strings.TrimRight(sound[:strings.LastIndexByte(sound, '.')+1], "") + "", "", bad},
		"1 MiB":                {"ey" + strings.Repeat("a", 1<<20) + ".b.c", "the limit is 16384", bad},
		"no base64":            {"ey!.ey!.x", "can be read", bad},
		"no JSON":              {"ey" + b64([]byte("x")) + "." + b64([]byte("x")) + ".x", "can be read", bad},
		"claims twice":         {m.raw(header, strings.Replace(payload, `"sub"`, `"tid":"other","sub"`, 1)), "twice", bad},
		"nested twice":         {m.raw(header, strings.Replace(payload, `"sub"`, `"x":[{"a":1,"a":2}],"sub"`, 1)), "twice", bad},
		"header twice":         {m.raw(`{"alg":"EdDSA","kid":"ed","kid":"ec"}`, payload), "twice", bad},
		"claims are a list":    {m.raw(header, `[]`), "", bad},
		"deep":                 {m.raw(header, strings.Replace(payload, `"sub"`, `"x":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+`,"sub"`, 1)), "no JSON", bad},
		"crit":                 {m.sign(good(), map[string]any{"crit": []string{"b64"}, "b64": false}), "signed in a way", bad},
		"unknown key":          {m.sign(good(), map[string]any{"kid": "x"}), "no such key", bad},
		"no kid of several":    {m.sign(good(), map[string]any{"kid": ""}), "no such key", bad},
		"kid is a number":      {m.sign(good(), map[string]any{"kid": 1}), "no text", bad},
		"long kid":             {m.sign(good(), map[string]any{"kid": strings.Repeat("k", 9000)}), "no such key", bad},
		"other issuer":         {m.sign(good("iss", "https://id.example/"), nil), "issuer", bad},
		"no issuer":            {m.sign(good("iss", nil), nil), "issuer", bad},
		"issuer is a list":     {m.sign(good("iss", []string{"https://id.example"}), nil), "issuer", bad},
		"other audience":       {m.sign(good("aud", "other"), nil), "audience", bad},
		"no audience":          {m.sign(good("aud", nil), nil), "audience", bad},
		"expired":              {m.sign(good("exp", now), nil), "expired at 2026-01-01T00:00:00Z", bad},
		"no exp":               {m.sign(good("exp", nil), nil), "exp", bad},
		"exp is a text":        {m.sign(good("exp", "9999999999"), nil), "exp", bad},
		"exp is huge":          {m.sign(good("exp", 1e300), nil), "exp", bad},
		"not yet valid":        {m.sign(good("nbf", now+31), nil), "good only from", bad},
		"from the future":      {m.sign(good("iat", now+31), nil), "future", bad},
		"no subject":           {m.sign(good("sub", nil), nil), "sub", forbidden},
		"long subject":         {m.sign(good("sub", strings.Repeat("s", 201)), nil), "sub", forbidden},
		"NUL in subject":       {m.sign(good("sub", "a\x00"), nil), "sub", forbidden},
		"no tenant":            {m.sign(good("tid", nil), nil), "names no tenant", forbidden},
		"two tenants":          {m.sign(good("tenantId", "other"), nil), "two tenants", forbidden},
		"tenant is a number":   {m.sign(good("tid", 7), nil), "tid", forbidden},
		"long tenant":          {m.sign(good("tid", strings.Repeat("t", 129)), nil), "tid", forbidden},
		"no scope of ours":     {m.sign(good("scope", "admin read openid"), nil), "no scope", forbidden},
		"no scopes":            {m.sign(good("scope", nil), nil), "no scope", forbidden},
		"scope is a number":    {m.sign(good("scope", 3), nil), "scope", forbidden},
		"commands are numbers": {m.sign(good("eventTypes", []int{1}), nil), "eventTypes", forbidden},
		"a bad command":        {m.sign(good("eventTypes", []string{"a/b"}), nil), "eventTypes", forbidden},
		"a star inside":        {m.sign(good("eventTypes", []string{"a*"}), nil), "eventTypes", forbidden},
		"no form":              {"opaque", "form", bad},
		"nothing":              {"", "requires a token", bad},
		"of no file":           {"cq_x", "form", bad},
	}
}

func TestEveryBadTokenIsRefused(t *testing.T) {
	m := newMaker(t)
	p := m.open(oneIssuer)
	must(t, p, m.sign(good(), nil), "", "")
	for name, c := range badTokens(t, m) {
		t.Run(name, func(t *testing.T) { must(t, p, c.token, c.code, c.part) })
	}
	if n := m.asked.Load(); n > 2 {
		t.Errorf("bad tokens have read the keys %d times", n)
	}
}

func TestClaimsInOtherForms(t *testing.T) {
	m := newMaker(t)
	p := m.open(strings.Replace(oneIssuer, "audience: codeq", "audience: [other, codeq]\n  scopesIfAbsent: [producer]\n  commandsIfAbsent: [\"*\"]", 1))
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		is     func(*auth.Principal) bool
	}{
		"scp":          {good("scope", nil, "scp", []string{"codeq:read"}), func(p *auth.Principal) bool { return slices.Equal(p.Scopes, []string{auth.ScopeView}) }},
		"both":         {good("scp", "codeq:read"), func(p *auth.Principal) bool { return len(p.Scopes) == 3 }},
		"no scope":     {good("scope", nil), func(p *auth.Principal) bool { return slices.Equal(p.Scopes, []string{auth.ScopeProduce}) }},
		"commands":     {good("eventTypes", "a b"), func(p *auth.Principal) bool { return p.MayUse("a") && p.MayUse("b") && !p.MayUse("c") }},
		"all":          {good("eventTypes", []string{"*"}), func(p *auth.Principal) bool { return p.Commands == nil }},
		"no commands":  {good("eventTypes", nil), func(p *auth.Principal) bool { return p.MayUse("z") }},
		"none":         {good("eventTypes", []string{}), func(p *auth.Principal) bool { return !p.MayUse("z") }},
		"organization": {good("tid", nil, "organization_id", "o", "tenantId", "o"), func(p *auth.Principal) bool { return p.Tenant == "o" }},
		"nearly valid": {good("nbf", startMs/1000+29, "iat", startMs/1000+29), func(*auth.Principal) bool { return true }},
		"audiences":    {good("aud", []string{"x", "codeq"}), func(*auth.Principal) bool { return true }},
	} {
		if who := must(t, p, m.sign(c.claims, nil), "", ""); who == nil || !c.is(who) {
			t.Errorf("%s: %+v", name, who)
		}
	}
	p = m.open(strings.Replace(oneIssuer, "audience: codeq", "audience: codeq\n  tenantClaim: org", 1))
	must(t, p, m.sign(good(), nil), forbidden, "it needs the claim org")
	if who := must(t, p, m.sign(good("org", "x"), nil), "", ""); who == nil || who.Tenant != "x" {
		t.Errorf("with its own claim: %+v", who)
	}
}

func TestATokenEndsAtItsTimeThoughItIsRemembered(t *testing.T) {
	m := newMaker(t)
	p := m.open(oneIssuer)
	token := m.sign(good("exp", startMs/1000+10), nil)
	must(t, p, token, "", "")
	m.nowMs.Add(9_999)
	must(t, p, token, "", "")
	m.nowMs.Add(1)
	must(t, p, token, bad, "expired")
}

// Junk costs an issuer one request in ten seconds, and nobody else any time.
func TestUnknownKeysCauseFewRequests(t *testing.T) {
	m := newMaker(t)
	p := m.open(oneIssuer)
	must(t, p, m.sign(good(), nil), "", "")
	for range 3 {
		for i := range 2000 {
			must(t, p, m.sign(good(), map[string]any{"kid": fmt.Sprint("junk", i%50)}), bad, "no such key")
		}
		m.nowMs.Add(10_000)
	}
	if n := m.asked.Load(); n > 3 {
		t.Errorf("the keys were read %d times", n)
	}
	i := p.table.Load().issuers["https://id.example"]
	for n := range 3 * maxUnknown {
		i.noteUnknown(fmt.Sprint(n))
	}
	if len(i.unknown) > maxUnknown {
		t.Errorf("%d unknown keys are remembered", len(i.unknown))
	}
}

// A new key is found at once, and a withdrawn one ends its principals with the next round.
func TestKeysAreReplaced(t *testing.T) {
	m := newMaker(t)
	m.say(m.keys("rsa"))
	p := m.open(oneIssuer)
	old := must(t, p, m.signed(jwt.SigningMethodRS256, m.rsa, "rsa", good(), nil), "", "")
	m.say(m.keys("ed"))
	m.nowMs.Add(10_000)
	young := must(t, p, m.sign(good(), nil), "", "")
	if old.Current() != nil || young.Current() != young {
		t.Errorf("after the change: %v, %v", old.Current(), young.Current())
	}
	must(t, p, m.signed(jwt.SigningMethodRS256, m.rsa, "rsa", good(), nil), bad, "no such key")
	m.say(m.keys("rsa"))
	p.Refresh(func() {})
	if young.Current() != nil {
		t.Error("a round leaves the withdrawn key")
	}
}

func TestAnIssuerThatFailsIsUnavailableAndItsOldKeysStay(t *testing.T) {
	release := make(chan struct{})
	for name, answer := range map[string]http.HandlerFunc{
		"gone":     func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"slow":     func(_ http.ResponseWriter, r *http.Request) { <-release },
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[`, strings.Repeat(" ", maxKeysBytes), `]}`)
		},
		"no keys": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) },
		"many": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{}`, strings.Repeat(",{}", 100), `]}`)
		},
		"only symmetric ones": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{"kty":"oct","kid":"ed","k":"c2VjcmV0"}]}`)
		},
		"a private one": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`)
		},
		"a small one": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{"kty":"RSA","kid":"ed","n":"`, strings.Repeat("A", 100), `BB","e":"AQAB"}]}`)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t)
			sound := *m.answer.Load()
			m.do(answer)
			p := m.open(oneIssuer)
			token := m.sign(good(), nil)
			must(t, p, token, down, "keep the token")
			m.do(sound)
			if name == "slow" {
				close(release)
			}
			m.nowMs.Add(10_000)
			eventually(t, "no keys", func() bool {
				m.nowMs.Add(10_000)
				_, refusal := p.Authenticate(t.Context(), token)
				return refusal == nil
			})
			who := must(t, p, token, "", "")
			m.do(answer)
			if name != "slow" {
				p.Refresh(func() {})
				eventually(t, "no log", func() bool { return strings.Contains(m.log.String(), "gives no good answer") })
			}
			if who.Current() != who {
				t.Error("its sessions end")
			}
			set := p.table.Load().issuers["https://id.example"].set.Load()
			m.nowMs.Store(set.readMs + staleFor.Milliseconds() + 1)
			must(t, p, m.sign(good("exp", m.nowMs.Load()/1000+60), nil), down, "")
		})
	}
}

func TestAProviderThatLeavesTheFileEndsItsPrincipals(t *testing.T) {
	m := newMaker(t)
	p := m.open(oneIssuer + strings.NewReplacer("name: id", "name: two", "id.example", "two.example").Replace(oneIssuer))
	token := m.sign(good("iss", "https://two.example"), nil)
	one, two := must(t, p, m.sign(good(), nil), "", ""), must(t, p, token, "", "")
	if err := os.WriteFile(m.file, []byte(strings.ReplaceAll(oneIssuer, "URL", m.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if one.Current() != one || two.Current() != nil {
		t.Errorf("%v, %v", one.Current(), two.Current())
	}
	must(t, p, token, bad, "issuer")
	if err := os.WriteFile(m.file, []byte("- nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reload(); err == nil || p.Count() != 1 {
		t.Errorf("after a mistake: %v, %d", err, p.Count())
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	m := newMaker(b)
	p := m.open(oneIssuer)
	token := m.sign(good(), nil)
	for b.Loop() {
		if _, refusal := p.Authenticate(b.Context(), token); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
