package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// entryOf is the entry of a token named by its text.
func entryOf(token string, more string) string {
	return "- name: n-" + token + "\n  sha256: " + HashToken(token) + "\n  tenant: t-" + token +
		"\n  subject: s-" + token + "\n" + more
}

const everything = "  scopes: [producer, worker, admin]\n  commands: [\"*\"]\n"

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, content string) *Tokens {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, file, content)
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestATokenStandsForItsEntryAndNothingElseDoes(t *testing.T) {
	tokens := open(t, entryOf("one", everything)+entryOf("two", "  scopes: [worker]\n  commands: [a, b]\n")+
		entryOf("three", "  scopes: [read]\n"))
	if tokens.Count() != 3 {
		t.Errorf("%d tokens", tokens.Count())
	}
	one, refusal := tokens.Authenticate(context.Background(), "one")
	if refusal != nil || one.Tenant != "t-one" || one.Subject != "s-one" || !one.Has(ScopeAdmin) || one.Has(ScopeRead) || !one.MayUse("x") {
		t.Errorf("one is %+v, %v", one, refusal)
	}
	two, refusal := tokens.Authenticate(context.Background(), "two")
	if refusal != nil || two.Tenant != "t-two" || two.Has(ScopeProduce) || !two.Has(ScopeClaim) || !two.MayUse("a") || two.MayUse("c") {
		t.Errorf("two is %+v, %v", two, refusal)
	}
	three, refusal := tokens.Authenticate(context.Background(), "three")
	if refusal != nil || three.Commands == nil || three.MayUse("a") {
		t.Errorf("three, which names no commands, is %+v, %v", three, refusal)
	}
	for _, credential := range []string{"", "One", "o ne", "one\x00", "one\u00a0", "n-one", HashToken("one"), strings.Repeat("x", 1<<20)} {
		if p, refusal := tokens.Authenticate(context.Background(), credential); p != nil || refusal == nil || refusal.Code != wire.CodeUnauthenticated {
			t.Errorf("%.20q is %+v, %v", credential, p, refusal)
		}
	}
}

func TestATokenEndsAtItsTime(t *testing.T) {
	tokens := open(t, entryOf("one", everything+"  expiresAt: 2031-12-24T06:00:00Z\n"))
	end := time.Date(2031, 12, 24, 6, 0, 0, 0, time.UTC).UnixMilli()
	tokens.nowMs = func() int64 { return end - 1 }
	if p, refusal := tokens.Authenticate(context.Background(), "one"); refusal != nil || p.ExpiresAtMs != end {
		t.Errorf("just before its end: %+v, %v", p, refusal)
	}
	tokens.nowMs = func() int64 { return end }
	_, refusal := tokens.Authenticate(context.Background(), "one")
	if refusal == nil || refusal.Code != wire.CodeUnauthenticated || !strings.Contains(refusal.Sentence, "2031-12-24T06:00:00Z") {
		t.Errorf("at its end: %v", refusal)
	}
}

func TestAPrincipalKnowsWhatItsTokenStandsForByNow(t *testing.T) {
	tokens := open(t, entryOf("one", everything)+entryOf("two", everything))
	one, _ := tokens.Authenticate(context.Background(), "one")
	two, _ := tokens.Authenticate(context.Background(), "two")
	if one.Current() != one || two.Current() != two {
		t.Error("an unchanged token stands for another principal")
	}
	write(t, tokens.File(), entryOf("two", "  scopes: [admin]\n"))
	if changed, err := tokens.Reload(); !changed || err != nil {
		t.Fatalf("changed %t, %v", changed, err)
	}
	if one.Current() != nil {
		t.Error("a token that was taken back still stands for somebody")
	}
	if now := two.Current(); now == nil || now.SameRights(two) || !now.Has(ScopeAdmin) || now.Has(ScopeClaim) {
		t.Errorf("a token with other scopes stands for %+v", now)
	}
	if changed, err := tokens.Reload(); changed || err != nil {
		t.Errorf("the same file again: changed %t, %v", changed, err)
	}
	free := &Principal{Tenant: "t", Subject: "s"}
	if free.Current() != free {
		t.Error("a principal of no token is taken back")
	}
}

func TestSameRights(t *testing.T) {
	p := Principal{Tenant: "t", Subject: "s", Scopes: []string{"a"}, Commands: []string{"c"}}
	q := p
	q.ExpiresAtMs = 1
	if !p.SameRights(&q) {
		t.Error("the end counts")
	}
	for what, change := range map[string]func(*Principal){
		"tenant":   func(p *Principal) { p.Tenant = "u" },
		"subject":  func(p *Principal) { p.Subject = "u" },
		"scopes":   func(p *Principal) { p.Scopes = nil },
		"commands": func(p *Principal) { p.Commands = []string{} },
	} {
		q := p
		change(&q)
		if p.SameRights(&q) || q.SameRights(&p) {
			t.Errorf("another %s does not count", what)
		}
	}
	none, all := Principal{Commands: []string{}}, Principal{}
	if none.SameRights(&all) {
		t.Error("no command is taken for all")
	}
}

func TestABadNewFileKeepsTheOldTokens(t *testing.T) {
	tokens := open(t, entryOf("one", everything))
	for _, bad := range []string{"", "- name: x\n", "- [", strings.Repeat("#", 2<<20)} {
		write(t, tokens.File(), bad)
		changed, err := tokens.Reload()
		if changed || err == nil || !strings.Contains(err.Error(), tokens.File()) {
			t.Errorf("%.20q: changed %t, %v", bad, changed, err)
		}
		if _, refusal := tokens.Authenticate(context.Background(), "one"); refusal != nil {
			t.Fatalf("%.20q: the old token is gone: %v", bad, refusal)
		}
	}
	if err := os.Remove(tokens.File()); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := OpenTokens(tokens.File()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open without a file: %v", err)
	}
}

func TestANewTokenIsDrawnWholeAndHasItsForm(t *testing.T) {
	token, err := NewToken(bytes.NewReader(make([]byte, 32)))
	if err != nil || token != "cq_"+strings.Repeat("A", 43) {
		t.Errorf("of zeros: %q, %v", token, err)
	}
	if _, err := NewToken(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("31 random bytes are enough for a token")
	}
	a, errA := NewToken(nil)
	b, errB := NewToken(nil)
	if errA != nil || errB != nil || a == b || !regexp.MustCompile(`^cq_[A-Za-z0-9_-]{43}$`).MatchString(a) {
		t.Errorf("drawn: %q, %v; %q, %v", a, errA, b, errB)
	}
	sum := sha256.Sum256([]byte("x"))
	if HashToken("x") != hex.EncodeToString(sum[:]) {
		t.Error("the hash is another one")
	}
}

// toldOnce waits for the watcher's next word.
func toldOnce(t *testing.T, told <-chan error) error {
	t.Helper()
	select {
	case err := <-told:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was told of the change")
		return nil
	}
}

func TestTheFileIsReadAgainWhenItChanges(t *testing.T) {
	tokens := open(t, entryOf("one", everything))
	told := make(chan error, 100)
	stop, err := WatchFile(tokens.File(), tokens.Reload, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	good := func(token string) bool {
		_, refusal := tokens.Authenticate(context.Background(), token)
		return refusal == nil
	}
	write(t, tokens.File(), entryOf("two", everything))
	for good("one") || !good("two") { // the file may be seen while it is empty
		if err := toldOnce(t, told); err != nil && good("two") {
			t.Errorf("written over: %v", err)
		}
	}
	replace := func(content string) {
		other := filepath.Join(filepath.Dir(tokens.File()), "other")
		write(t, other, content)
		if err := os.Rename(other, tokens.File()); err != nil {
			t.Fatal(err)
		}
	}
	replace(entryOf("three", everything))
	if err := toldOnce(t, told); err != nil || good("two") || !good("three") {
		t.Errorf("replaced: %v", err)
	}
	replace("- bad\n")
	if err := toldOnce(t, told); err == nil || !strings.Contains(err.Error(), tokens.File()+":1:") || !good("three") {
		t.Errorf("a bad file: %v", err)
	}
	stop()
	stop()
	if len(told) != 0 {
		t.Errorf("told more: %v", <-told)
	}
}

func TestAFileBehindASwitchedLinkIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, d, "tokens.yaml"), entryOf(d, everything))
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("a", "data")
	link("data/tokens.yaml", "tokens.yaml")
	tokens, err := OpenTokens(filepath.Join(dir, "tokens.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 100)
	stop, err := WatchFile(tokens.File(), tokens.Reload, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	link("b", "next")
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	if err := toldOnce(t, told); err != nil {
		t.Fatal(err)
	}
	if _, refusal := tokens.Authenticate(context.Background(), "b"); refusal != nil {
		t.Errorf("the token of the new file: %v", refusal)
	}
	write(t, filepath.Join(dir, "b", "new"), entryOf("c", everything))
	if err := os.Rename(filepath.Join(dir, "b", "new"), filepath.Join(dir, "b", "tokens.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := toldOnce(t, told); err != nil {
		t.Errorf("the file behind the new link: %v", err)
	}
}

func TestAChangeBeforeTheWatchIsSeen(t *testing.T) {
	tokens := open(t, entryOf("one", everything))
	write(t, tokens.File(), entryOf("two", everything))
	told := make(chan error, 100)
	stop, err := WatchFile(tokens.File(), tokens.Reload, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	tokens.file = filepath.Join(t.TempDir(), "no", "directory")
	if _, err := WatchFile(tokens.File(), tokens.Reload, func(error) {}); err == nil {
		t.Error("a directory that is not there is watched")
	}
}
