package peer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAMachineBecomesAMemberByItsToken(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	b, dir := join(t, a, l, nil)
	until(t, "the second node is a member", func() bool { return len(l.Members()) == 2 })
	if b.Self().Node == a.Self().Node {
		t.Fatal("both nodes have one id")
	}
	info, err := os.Stat(filepath.Join(dir, "peer", "node.json"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	// A node that joined makes tokens too, and one that follows sends a new node to the leader.
	c, _ := join(t, b, l, nil)
	until(t, "both vote, because three do", func() bool { return a.votes(b.Self().Node) && a.votes(c.Self().Node) })
}

func TestWhatATokenBrings(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	token, err := a.Invite(time.Minute)
	must(t, err)
	got, err := Join(t.Context(), " "+token+"\n", drawn(), "127.0.0.1:9")
	must(t, err)
	if got.Data != (Data{"a-creation", 4}) || !isNode(got.file.Node) || !slices.Equal(got.file.Others, []string{a.Self().Address}) {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(readFile(t, a), token) || !strings.Contains(readFile(t, a), `"authorityKey"`) {
		t.Error("the file has the token, or not the key of the authority")
	}
}

func readFile(t *testing.T, p *Peers) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.directory.path, fileName))
	must(t, err)
	return string(text)
}

func TestATokenCountsOnceAndNotForLong(t *testing.T) {
	l := &log{}
	a, dir := first(t, l, nil)
	token, err := a.Invite(time.Minute)
	must(t, err)
	var good atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Join(t.Context(), token, drawn(), "127.0.0.1:9"); err == nil {
				good.Add(1)
			} else if !strings.Contains(err.Error(), errTicket.Error()) {
				t.Errorf("a token that was used: %v", err)
			}
		})
	}
	all.Wait()
	if good.Load() != 1 {
		t.Errorf("a token counted %d times", good.Load())
	}
	// It is used up on disk as well.
	again, err := openDirectory(dir)
	must(t, err)
	parsed, err := parseToken(token)
	must(t, err)
	if err := again.redeem(parsed.secret[:], time.Now()); !errors.Is(err, errTicket) {
		t.Errorf("after a restart: %v", err)
	}
	late, err := a.directory.invite(time.Minute, time.Now().Add(-time.Hour))
	must(t, err)
	if _, err := Join(t.Context(), late, drawn(), "127.0.0.1:9"); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired token: %v", err)
	}
}

func TestATokenOfAnotherClusterSendsNothing(t *testing.T) {
	a, _ := first(t, &log{}, nil)
	b, _ := first(t, &log{}, nil)
	text, err := a.Invite(time.Minute)
	must(t, err)
	token, err := parseToken(text)
	must(t, err)
	token.address = b.Self().Address
	if _, err := Join(t.Context(), token.String(), drawn(), "127.0.0.1:9"); !errors.Is(err, errForeign) {
		t.Errorf("the authority of another cluster: %v", err)
	}
	token.address, token.authority[0] = a.Self().Address, token.authority[0]^1
	if _, err := Join(t.Context(), token.String(), drawn(), "127.0.0.1:9"); !errors.Is(err, errForeign) {
		t.Errorf("a token with one bit changed: %v", err)
	}
	if _, err := Join(t.Context(), text, drawn(), "127.0.0.1:9"); err != nil {
		t.Errorf("the token was used up: %v", err)
	}
}

func TestJoinRefusesBeforeItUsesTheToken(t *testing.T) {
	a, _ := first(t, &log{}, nil)
	token, err := a.Invite(time.Minute)
	must(t, err)
	for address, want := range map[string]string{
		"127.0.0.1": "host:port", "127.0.0.1:0": "host:port", ":7000": "host:port", "0.0.0.0:7000": "other nodes can reach", "a b:1": "character",
		"127.0.0.1:99999": "from 1 to 65535", "h:00": "from 1 to 65535", "foo:bar": "from 1 to 65535",
		a.Self().Address: "codeq cluster remove " + a.Self().Node,
	} {
		if _, err := Join(t.Context(), token, drawn(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, text := range []string{"", "cq_abc", "cqj_", "cqj_!!", token + "A", token[:len(token)-4], "cqj_" + strings.Repeat("A", 1000)} {
		if _, err := Join(t.Context(), text, drawn(), "127.0.0.1:9"); !errors.Is(err, errToken) && !strings.Contains(err.Error(), "join at") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if _, err := Join(t.Context(), token, drawn(), "127.0.0.1:9"); err != nil {
		t.Errorf("the token was used up: %v", err)
	}
}

func TestTokensOfAServerThatDoesNotRun(t *testing.T) {
	dir := t.TempDir()
	on := port(t)
	for _, node := range []string{"cd", "ab"} { // the first time was cut short after it
		must(t, Found(dir, &Founding{Node: strings.Repeat(node, 16), Address: on.Addr().String(), Now: time.Now()}))
	}
	token, err := Invite(dir, time.Minute, time.Now())
	must(t, err)
	open(t, dir, on, &log{}, nil)
	if _, err := Join(t.Context(), token, drawn(), "127.0.0.1:9"); err != nil {
		t.Error(err)
	}
}

func TestTokensThatWaitAreBounded(t *testing.T) {
	a, _ := first(t, &log{}, nil)
	now := time.Now()
	for range mostTickets {
		_, err := a.directory.invite(time.Minute, now)
		must(t, err)
	}
	if _, err := a.directory.invite(time.Minute, now); err == nil {
		t.Error("any number of tokens may wait")
	}
	if _, err := a.directory.invite(time.Minute, now.Add(time.Hour)); err != nil {
		t.Errorf("expired tokens count: %v", err)
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	silent := port(t)
	token := newToken([sha256.Size]byte{1}, silent.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, token.String(), drawn(), "127.0.0.1:9"); err == nil {
		t.Error("joined a port that says nothing")
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(newToken([sha256.Size]byte{1}, "10.0.0.1:8090").String())
	f.Add("cqj_AQ")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := parseToken(text)
		if err == nil && token.String() != strings.TrimSpace(text) {
			t.Errorf("%q is read as %q", text, token)
		}
	})
}

func FuzzParseContents(f *testing.F) {
	f.Add([]byte(`{"node":"00000000000000000000000000000001","address":"10.0.0.1:8090","tickets":[{"sha256":"x","expiresAt":"2026-01-01T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseContents(text)
		if err == nil && (!isNode(c.Node) || AddressProblem(c.Address) != "") {
			t.Errorf("took %q", text)
		}
	})
}

func FuzzParseJoining(f *testing.F) {
	f.Add([]byte(`{"secret":"AAAA","node":"00000000000000000000000000000001","address":"10.0.0.1:8090","request":"MAA="}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		j, request, err := parseJoining(body)
		if err == nil && (request == nil || !json.Valid(body) || !isNode(j.Node)) {
			t.Errorf("took %q", body)
		}
	})
}

// A directory of which the file of the node is missing says what to do.
func TestADirectoryThatDidNotJoinToItsEnd(t *testing.T) {
	_, err := Open(Options{DataDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "empty the directory and join with a new token") {
		t.Error(err)
	}
}
