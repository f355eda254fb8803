package auth

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeq/wire"
)

// openLogins are logins over tokens "one", which ends at 2031-12-24, and "two", which does not.
func openLogins(t *testing.T, secret string) (*Tokens, *Logins) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := strings.ReplaceAll(entryHead, "HASH", HashToken("one")) + "  scopes: [read]\n  expiresAt: 2031-12-24T00:00:00Z\n" +
		strings.ReplaceAll(strings.ReplaceAll(entryHead, "HASH", HashToken("two")), "ci", "cd") + "  scopes: [read]\n"
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, NewLogins(tokens, tokens, []byte(secret))
}

func TestACookieEndsAfterTwelveHoursOrWithItsToken(t *testing.T) {
	tokens, logins := openLogins(t, "s")
	end, _ := wire.ParseTimeMs("2031-12-24T00:00:00Z")
	const hour = int64(3600_000)
	for _, c := range []struct {
		token              string
		madeMs, aliveForMs int64
	}{{"two", end, 12 * hour}, {"one", end - 24*hour, 12 * hour}, {"one", end - hour, hour}} {
		tokens.nowMs = func() int64 { return c.madeMs }
		who, refusal := tokens.Authenticate(t.Context(), c.token)
		if refusal != nil {
			t.Fatal(refusal)
		}
		cookie, goodFor, _ := logins.Cookie(who, "")
		if goodFor.Milliseconds() != c.aliveForMs {
			t.Errorf("%s is good for %v", c.token, goodFor)
		}
		tokens.nowMs = func() int64 { return c.madeMs + c.aliveForMs - 1 }
		paged, refusal := logins.Authenticate(t.Context(), cookie)
		if refusal != nil || !paged.SameRights(who) || paged.ExpiresAtMs != c.madeMs+c.aliveForMs {
			t.Fatalf("%s: %+v, %v", c.token, paged, refusal)
		}
		if now := paged.Current(); now == nil || now.ExpiresAtMs != paged.ExpiresAtMs {
			t.Errorf("%s is now %+v", c.token, now)
		}
		tokens.nowMs = func() int64 { return c.madeMs + c.aliveForMs }
		if _, refusal := logins.Authenticate(t.Context(), cookie); refusal == nil || refusal.Code != wire.CodeUnauthenticated {
			t.Errorf("%s is good after its end: %v", c.token, refusal)
		}
	}
}

func TestACookieIsGoodOnItsServerAlone(t *testing.T) {
	tokens, logins := openLogins(t, "s")
	who, refusal := tokens.Authenticate(t.Context(), "two")
	if refusal != nil {
		t.Fatal(refusal)
	}
	cookie, _, _ := logins.Cookie(who, "")
	same, other := NewLogins(tokens, tokens, []byte("s")), NewLogins(tokens, tokens, []byte("z"))
	if _, refusal := same.Authenticate(t.Context(), cookie); refusal != nil || same.Name != logins.Name {
		t.Errorf("after a restart: %v", refusal)
	}
	if _, refusal := other.Authenticate(t.Context(), cookie); refusal == nil || other.Name == logins.Name {
		t.Error("another server knows the cookie")
	}
	if again, _, _ := logins.Cookie(who, ""); again == cookie {
		t.Error("two cookies of a token are equal")
	}
}

func FuzzLogin(f *testing.F) {
	f.Add("")
	f.Add("A")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 68)))
	f.Fuzz(func(t *testing.T, cookie string) {
		_, logins := openLogins(t, "s")
		if who, refusal := logins.Authenticate(t.Context(), cookie); refusal == nil {
			t.Fatalf("%q is %+v", cookie, who)
		}
	})
}
