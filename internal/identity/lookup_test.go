package identity

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codeq/internal/auth"
)

// asker opens a provider that is asked about tokens with the prefix opq_.
func (m *maker) asker(more string) *Providers {
	m.t.Helper()
	secret := filepath.Join(m.t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return m.open("- name: id\n  introspection: URL/introspect\n  clientId: codeq\n  clientSecretFile: " + secret + "\n  prefix: opq_\n" + more)
}

const active = `{"active":true,"sub":"ada","tid":"acme","scope":"codeq:claim","eventTypes":["a"],"aud":"codeq","exp":%d}`

func TestATokenIsLookedUpOnceAMinute(t *testing.T) {
	m := newMaker(t)
	m.do(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if r.Method != "POST" || id != "codeq" || secret != "s3cret" || r.FormValue("token") != "opq_1" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, active, startMs/1000+90)
	})
	p := m.asker("  audience: codeq\n")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { must(t, p, "opq_1", "", "") })
	}
	all.Wait()
	who := must(t, p, "opq_1", "", "")
	if who.Tenant != "acme" || who.Subject != "ada" || who.ExpiresAtMs != startMs+90_000 || !who.Has(auth.ScopeClaim) || !who.MayUse("a") {
		t.Errorf("it stands for %+v", who)
	}
	if n := m.asked.Load(); n != 1 {
		t.Errorf("51 requests have asked %d times", n)
	}
	m.nowMs.Add(59_999)
	must(t, p, "opq_1", "", "")
	m.nowMs.Add(1)
	must(t, p, "opq_1", "", "")
	if n := m.asked.Load(); n != 2 {
		t.Errorf("after a minute it was asked %d times", n)
	}
	m.nowMs.Add(30_000)
	must(t, p, "opq_1", bad, "expired")
	must(t, p, "other", bad, "form")
}

func TestAnInactiveTokenIsAskedAboutAfterFiveSeconds(t *testing.T) {
	m := newMaker(t)
	m.say(`{"active":false}`)
	p := m.asker("")
	for range 3 {
		must(t, p, "opq_1", bad, "not active")
		m.nowMs.Add(2_000)
	}
	must(t, p, "opq_1", bad, "not active")
	if n := m.asked.Load(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestAnswersAboutATokenThatAreNotGood(t *testing.T) {
	for name, c := range map[string]struct{ answer, code string }{
		"no JSON": {`<html>`, "auth_unavailable"}, "twice": {`{"active":false,"active":true}`, "auth_unavailable"},
		"no active": {`{}`, "auth_unavailable"}, "a text": {`{"active":"true"}`, "auth_unavailable"},
		"huge":       {`{"active":true,"x":"` + strings.Repeat("x", maxAnswerBytes) + `"}`, "auth_unavailable"},
		"no tenant":  {`{"active":true,"sub":"a","scope":"codeq:read","aud":"codeq"}`, "forbidden"},
		"no subject": {`{"active":true,"tid":"a","scope":"codeq:read","aud":"codeq"}`, "forbidden"},
		"no scope":   {`{"active":true,"tid":"a","sub":"a","aud":"codeq"}`, "forbidden"},
		"expired":    {fmt.Sprintf(active, startMs/1000), "unauthenticated"},
		"a bad exp":  {`{"active":true,"exp":"1"}`, "unauthenticated"},
		"others":     {strings.Replace(fmt.Sprintf(active, startMs), `"aud":"codeq"`, `"aud":"x"`, 1), "unauthenticated"},
	} {
		m := newMaker(t)
		m.say(c.answer)
		p := m.asker("  audience: codeq\n")
		if _, refusal := p.Authenticate(t.Context(), "opq_1"); refusal == nil || string(refusal.Code) != c.code {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

// A provider that is down refuses nobody for good, and ends no session.
func TestAProviderThatIsDownIsUnavailable(t *testing.T) {
	m := newMaker(t)
	m.say(fmt.Sprintf(active, startMs))
	p := m.asker("")
	who := must(t, p, "opq_1", "", "")
	m.do(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	m.nowMs.Add(60_000)
	must(t, p, "opq_1", down, "keep the token")
	must(t, p, "opq_2", down, "keep the token")
	if who.Current() == nil {
		t.Error("its session ends")
	}
	m.say(fmt.Sprintf(active, startMs))
	must(t, p, "opq_1", "", "")
	if log := m.log.String(); !strings.Contains(log, "no good answer") || !strings.Contains(log, "answers again") || strings.Contains(log, "opq_1") || strings.Contains(log, "s3cret") {
		t.Errorf("the log says %s", log)
	}
}

// A session asks what its principal is by now; the next round finds that it was revoked.
func TestARevokedTokenEndsWithTheNextRound(t *testing.T) {
	m := newMaker(t)
	m.say(fmt.Sprintf(active, startMs))
	p := m.asker("")
	who := must(t, p, "opq_1", "", "")
	rechecks := 0
	look := func() { rechecks++; who.Current() }
	p.Refresh(look)
	if who.Current() != who || rechecks != 2 {
		t.Errorf("an active token: %v after %d looks", who.Current(), rechecks)
	}
	m.say(`{"active":false}`)
	p.Refresh(look)
	if who.Current() != nil {
		t.Error("the revoked token stands for somebody")
	}
	must(t, p, "opq_1", bad, "not active")
}
