package session

import (
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

// A key that the keyring takes is the one it made for that session and that
// principal, byte for byte; no other text is.
func FuzzResumeKey(f *testing.F) {
	k := keyring{secret: []byte("of one data directory")}
	id := wire.SessionID{1, 2, 3}
	made := k.key(id, &auth.Principal{Tenant: "acme", Subject: "bob"})
	f.Add(made, "acme", "bob")
	f.Add(made, "acme", "bo")
	f.Add(made, "acmeb", "ob")
	f.Add(made[:len(made)-1], "acme", "bob")
	f.Add(id.String(), "acme", "bob")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, key, tenant, subject string) {
		p := &auth.Principal{Tenant: tenant, Subject: subject}
		found, ok := k.session(key, p)
		if ok && k.key(found, p) != key {
			t.Errorf("%q is taken for the key of %v", key, found)
		}
		if ok != (key == k.key(found, p) && !found.IsZero()) {
			t.Errorf("%q: taken %v for %v", key, ok, found)
		}
		if key == made && ok != (tenant == "acme" && subject == "bob") {
			t.Errorf("the key of bob of acme: taken %v for %q of %q", ok, subject, tenant)
		}
		if _, ok := (keyring{}).session(key, p); ok {
			t.Errorf("a keyring without a secret takes %q", key)
		}
	})
}
