package identity

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"codeq/internal/yamlfile"
)

const asks = "- name: a\n  introspection: https://a.example/i\n  clientId: c\n  clientSecretFile: f\n"

func TestABadProviderIsToldWithFileAndLine(t *testing.T) {
	with := func(old, text string) string {
		return strings.Replace(strings.Replace(oneIssuer, "URL", "https://a.example", 1), old, text, 1)
	}
	for file, want := range map[string]string{
		"":                          "f: the file must be a list of providers",
		"- a\n":                     "f:1: a provider must be a map",
		with("name: id", "nam: id"): "f:1: nam is not known; did you mean name?",
		with("audience: codeq", "audience: [a, [b]]"):                           "f:3: audience must be a text or a list of texts",
		with("- name: id\n  issuer", "- issuer"):                                "f:1: this provider has no name",
		with("  audience: codeq\n", ""):                                         "f:1: a provider with keys needs issuer and audience",
		with("  keys: https://a.example/keys\n", ""):                            "f:1: this provider must have one of keys, keysFile and introspection",
		with("https://a.example", "http://a.example"):                           "f:4: keys must begin with https://, or with http:// for a loopback address",
		with("https://a.example", "http://127.0.0.1.a.example"):                 "f:4: keys must begin with https://",
		with("https://a.example", "https://u:p@a.example"):                      "f:4: keys must be a URL like",
		with("https://a.example", "file://a.example"):                           "f:4: keys must begin with https://",
		with("name: id", "name: id\n  algorithms: [HS256]"):                     "f:2: algorithms must be among EdDSA",
		with("name: id", "name: id\n  scopesIfAbsent: [root]"):                  "f:2: scopesIfAbsent must be scopes",
		with("name: id", "name: id\n  commandsIfAbsent: [a b]"):                 "f:2: commandsIfAbsent must be names of commands",
		with("name: id", "name: id\n  prefix: x"):                               "f:1: clientId, clientSecretFile and prefix are for",
		with("", "") + with("", ""):                                             "f:5: two providers are named id",
		with("", "") + with("name: id", "name: b"):                              "f:5: two providers have this issuer",
		strings.Replace(asks, "  clientId: c\n", "", 1):                         "f:1: a provider with introspection needs clientId",
		asks + "  issuer: x\n":                                                  "f:1: a provider with introspection recognises tokens by their prefix",
		asks + "  algorithms: [EdDSA]\n":                                        "f:1: algorithms are for",
		asks + "  prefix: cq_x\n":                                               "f:1: the prefix cq_ is for",
		asks + strings.Replace(asks, "name: a", "name: b", 1) + "  prefix: x\n": "f:5: two providers with introspection",
	} {
		_, err := parse("f", []byte(file))
		var refused *yamlfile.Error
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", file, err, want)
		}
	}
	for _, file := range []string{with("", ""), asks, with("https://a.example", "http://[::1]:80"), with("keys: https://a.example/keys", "keysFile: k.json"), "[]\n"} {
		if _, err := parse("f", []byte(file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if n := reflect.TypeFor[config]().NumField(); len(fieldNames) != n {
		t.Errorf("%d names for %d fields", len(fieldNames), n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(oneIssuer))
	f.Add([]byte(asks))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse("f", text)
		for i := range all {
			if problem := all[i].problem(); err == nil && problem != "" {
				t.Errorf("%q: %s", text, problem)
			}
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	m := newMaker(f)
	f.Add([]byte(m.keys("ed", "rsa", "ec")))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := parseKeys(text)
		if (set == nil) != (err != nil) || set != nil && (len(set.keys) == 0 || len(set.keys) > maxKeys) {
			t.Fatalf("%q: %v, %v", text, set, err)
		}
		if set != nil && !set.has(set.keys[0].sum) {
			t.Error("a set does not have its key")
		}
	})
}

// Whatever a token says, only the one that was signed stands for somebody.
func FuzzToken(f *testing.F) {
	m := newMaker(f)
	p := m.open(oneIssuer)
	sound := m.sign(good(), nil)
	for _, seed := range []string{sound, m.signed(jwt.SigningMethodRS256, m.rsa, "rsa", good(), nil), "opaque", "cq_", "ey.ey."} {
		f.Add(seed)
	}
	f.Add("ey" + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + ".e30.")
	f.Fuzz(func(t *testing.T, token string) {
		who, refusal := p.Authenticate(t.Context(), token)
		if (who == nil) == (refusal == nil) {
			t.Fatalf("%q: %v, %v", token, who, refusal)
		}
		if who != nil && (who.Tenant != "acme" || who.Subject != "ada") {
			t.Errorf("%q stands for %+v", token, who)
		}
	})
}
