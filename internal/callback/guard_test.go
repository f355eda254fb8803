package callback

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The addresses of metadata services, of private networks and of this machine are reached by
// no spelling.
func TestNoTrickReachesAPrivateAddress(t *testing.T) {
	pointNamesHere(t)
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTP_PROXY", server.URL)
	t.Setenv("HTTPS_PROXY", server.URL)
	t.Setenv("ALL_PROXY", server.URL)
	p := newPoster(t, nil)
	for _, host := range []string{
		"127.0.0.1", "127.1", "0177.0.0.1", "0x7f000001", "2130706433", "0", "0.0.0.0", "localhost", "localhost.",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "[fe80::a9fe:a9fe]", "100.100.100.200", "192.0.0.192",
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[fc00::1]", "[ff02::1]",
		"user@127.0.0.1", "user:secret@127.0.0.1", "127.0.0.1%2f.example.org", "127.0.0.1#.example.org",
	} {
		for _, scheme := range []string{"http", "https"} {
			a := ask(p, scheme+"://"+host+":"+port+"/")
			if a.Status != 0 || a.Problem == "" {
				t.Errorf("%s over %s: %+v", host, scheme, a)
			}
			if strings.Contains(a.Problem, "127.") || strings.Contains(a.Problem, "169.") {
				t.Errorf("%s over %s tells an address: %s", host, scheme, a.Problem)
			}
		}
	}
	for _, url := range []string{"file:///etc/passwd", "gopher://127.0.0.1:" + port + "/", "://", "https://", "javascript:1"} {
		if a := ask(p, url); a.Status != 0 {
			t.Errorf("%s: %+v", url, a)
		}
	}
	if reached > 0 {
		t.Errorf("the server was reached %d times", reached)
	}
}

// What passes is decided by the address of the connection: a name that was good before counts
// for nothing.
func TestTheGuardLooksAtTheConnection(t *testing.T) {
	g, err := NewGuard([]string{"10.1.0.0/16", "fd00::1", "hooks.internal", "192.168.7.7"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string][2]bool{ // over https, over http
		"93.184.215.14:443": {true, false}, "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443": {true, false},
		"10.1.2.3:80": {true, true}, "[::ffff:10.1.2.3]:80": {true, true}, "10.2.0.1:443": {false, false},
		"[fd00::1]:1": {true, true}, "[fd00::2]:1": {false, false}, "192.168.7.7:9": {true, true}, "192.168.7.8:9": {false, false},
		"127.0.0.1:80": {false, false}, "no address": {false, false},
	} {
		if got := [2]bool{g.check(address, false) == nil, g.check(address, true) == nil}; got != want {
			t.Errorf("%s passes over https and http: %v, want %v", address, got, want)
		}
	}
	for _, text := range []string{"", "10.0.0.0/40", "hooks.internal:80", "https://x", "a b"} {
		if _, err := NewGuard([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A name that resolves to a public address first and to this machine afterwards is the trick
// that a check before the connection misses.
func TestANameThatPointsHereIsNotCalled(t *testing.T) {
	pointNamesHere(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if a := ask(newPoster(t, nil), "https://hooks.example.org:"+port+"/"); !a.Refused {
		t.Errorf("%+v", a)
	}
	// The name itself may be allowed.
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	defer open.Close()
	_, port, _ = net.SplitHostPort(open.Listener.Addr().String())
	if a := ask(newPoster(t, nil, "hooks.example.org"), "http://HOOKS.example.org:"+port+"/"); a.Status != 204 {
		t.Errorf("%+v", a)
	}
}

func TestRedirectsAreFailures(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Errorf("the redirect to %s was followed", r.URL)
		}
		http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	a := ask(newPoster(t, server, "127.0.0.1"), server.URL)
	if v := judge(a, 0, 0.5); a.Status != 307 || v.done || v.reason != "the endpoint answered 307, and redirects are not followed" {
		t.Errorf("%+v, %+v", a, v)
	}
}

func TestAnEndlessAnswerIsReadInPart(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		for { // until the client is gone
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				close(stop)
				return
			}
		}
	}))
	defer server.Close()
	if a := ask(newPoster(t, server, netip.MustParsePrefix("127.0.0.0/8").String()), server.URL); a.Status != 200 || a.Took > 10*time.Second {
		t.Errorf("%+v", a)
	}
	<-stop
}

// A host with many endpoints, or a target with many tasks, keeps its connections from one call to
// the next.
func TestConnectionsAreUsedAgain(t *testing.T) {
	const atOnce = 64
	var made atomic.Int64
	var together sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		together.Done()
		together.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := newPoster(t, server, "127.0.0.1")
	for range 3 {
		together.Add(atOnce)
		var calls sync.WaitGroup
		for range atOnce {
			calls.Go(func() {
				if a := ask(p, server.URL); a.Status != 200 {
					t.Errorf("%+v", a)
				}
			})
		}
		calls.Wait()
	}
	// A connection is put back just after its answer, so a few calls may be before it.
	if n := made.Load(); n > atOnce+atOnce/2 {
		t.Errorf("%d connections for %d calls at once", n, atOnce)
	}
}
