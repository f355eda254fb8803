package auth

import (
	"context"
	"strings"
	"testing"
)

func TestNoneMakesEverybodyTheAnonymousSubjectOfTheDefaultTenant(t *testing.T) {
	for _, credential := range []string{"", "whatever"} {
		p, refusal := None().Authenticate(context.Background(), credential)
		if refusal != nil {
			t.Fatalf("credential %q refused: %v", credential, refusal)
		}
		if p.Tenant != "default" || p.Subject != "anonymous" {
			t.Errorf("credential %q is %s/%s, want default/anonymous", credential, p.Tenant, p.Subject)
		}
		if !p.MayUse("any.command") || p.ExpiredAt(1<<62) {
			t.Errorf("credential %q is limited: %+v", credential, p)
		}
	}
}

func TestPrincipalIsHeldToItsCommandsAndItsEnd(t *testing.T) {
	p := Principal{Commands: []string{"a", "b"}, ExpiresAtMs: 100}
	if !p.MayUse("a") || !p.MayUse("b") || p.MayUse("c") || p.MayUse("*") {
		t.Error("the list of commands does not decide")
	}
	if p.ExpiredAt(99) || !p.ExpiredAt(100) {
		t.Error("the credential does not end at its moment")
	}
	nobody := Principal{Commands: []string{}}
	if nobody.MayUse("a") {
		t.Error("an empty list of commands allows one")
	}
}

func TestCheckListenerAllowsLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:8080", "127.8.9.10:0", "[::1]:8080", "[::ffff:127.0.0.1]:1", "localhost:8080"} {
		if err := CheckListener(addr, false); err != nil {
			t.Errorf("%s refused: %v", addr, err)
		}
	}
	for _, addr := range []string{":8080", "0.0.0.0:8080", "[::]:8080", "10.0.0.1:8080", "[2001:db8::1]:80", "128.0.0.1:1"} {
		err := CheckListener(addr, false)
		if err == nil {
			t.Errorf("%s allowed without authentication", addr)
			continue
		}
		for _, part := range []string{addr, "--insecure-no-auth", "127.0.0.1"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the sentence %q does not name %s", addr, err, part)
			}
		}
		if err := CheckListener(addr, true); err != nil {
			t.Errorf("%s refused although asked for: %v", addr, err)
		}
	}
}

func TestCheckListenerRefusesWhatIsNoAddress(t *testing.T) {
	for _, addr := range []string{"", "8080", "host", "[::1", "no-such-host.invalid:80"} {
		if err := CheckListener(addr, false); err == nil {
			t.Errorf("%q allowed", addr)
		}
	}
}
