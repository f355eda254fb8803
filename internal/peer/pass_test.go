package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/wire"
)

// public serves the clients of a node that follows, as internal/httpapi does. It returns the
// address.
func public(t *testing.T, p *Peers, secure bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch got := p.Pass(w, r); {
		case got.Broken:
			panic(http.ErrAbortHandler)
		case got.Refusal != nil:
			answerJSON(w, got.Refusal.Code.HTTPStatus(), wire.AppendError(nil, got.Refusal))
		}
	}))
	if secure {
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, VerifyConnection: nil}
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// pair is a leader that serves h and a follower that knows it.
func pair(t *testing.T, h http.HandlerFunc) (l *log, leader, follower *Peers) {
	t.Helper()
	l = &log{}
	leader, _ = first(t, l, h)
	follower, _ = join(t, leader, l, http.NotFoundHandler())
	until(t, "both are members", func() bool { return len(l.Members()) == 2 })
	knowsLeader(t, follower, leader)
	return l, leader, follower
}

// seen is what a handler tells of a request.
type seen struct {
	Method, URI, Host, Remote, Body, Leaf string
	TLS                                   bool
	Header                                http.Header
}

func tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what came is compared
	s := seen{Method: r.Method, URI: r.RequestURI, Host: r.Host, Remote: r.RemoteAddr, Body: string(body), TLS: r.TLS != nil, Header: r.Header}
	if s.TLS && len(r.TLS.VerifiedChains) > 0 {
		s.Leaf = r.TLS.VerifiedChains[0][0].Subject.CommonName
	}
	w.Header().Set("Codeq-Leader", "http://leader.example:8080")
	w.WriteHeader(http.StatusTeapot)
	_ = json.NewEncoder(w).Encode(s) // the client sees it
}

func TestARequestReachesTheLeaderAsItsClientSentIt(t *testing.T) {
	_, _, b := pair(t, tell)
	s := public(t, b, false)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }() // nothing is lost on it
	_, err = io.WriteString(conn, "POST /v1/x%2Fy?a=b;c&d=%zz HTTP/1.1\r\nHost: public.example:99\r\nOrigin: https://page.example\r\n"+
		"Codeq-Peer-Remote: 6.6.6.6:1\r\ncodeq-peer-tls: 1\r\nCodeq-Peer-Certificate: x\r\nCodeq-Peer-Other: x\r\nAuthorization: Bearer t\r\n"+
		"X-Forwarded-For: 7.7.7.7\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 3\r\n\r\nabc")
	must(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	got := seen{}
	must(t, json.NewDecoder(response.Body).Decode(&got))
	if response.StatusCode != http.StatusTeapot || response.Header.Get("Codeq-Leader") != "http://leader.example:8080" {
		t.Errorf("answered %v", response)
	}
	if got.Method != "POST" || got.URI != "/v1/x%2Fy?a=b;c&d=%zz" || got.Host != "public.example:99" || got.Body != "abc" || got.TLS || got.Leaf != "" ||
		got.Remote != conn.LocalAddr().String() {
		t.Errorf("the leader got %+v", got)
	}
	if got.Header.Get("Origin") != "https://page.example" || got.Header.Get("Authorization") != "Bearer t" || got.Header.Get("Upgrade") != "" {
		t.Errorf("with the headers %v", got.Header)
	}
	for name := range got.Header {
		if strings.HasPrefix(name, headerPrefix) {
			t.Errorf("the handler sees %s", name)
		}
	}
}

func TestTheCertificateOfAClientReachesTheLeader(t *testing.T) {
	_, _, b := pair(t, tell)
	s := public(t, b, true)
	signer, err := newAuthority(time.Now())
	must(t, err)
	client := s.Client()
	transport, _ := client.Transport.(*http.Transport)
	defer transport.CloseIdleConnections()
	get := func() seen {
		response, err := client.Get(s.URL)
		must(t, err)
		defer func() { _ = response.Body.Close() }() // it is read
		got := seen{}
		must(t, json.NewDecoder(response.Body).Decode(&got))
		return got
	}
	if got := get(); !got.TLS || got.Leaf != "" {
		t.Errorf("without a certificate the leader got %+v", got)
	}
	transport.CloseIdleConnections()
	// Not verified by the follower: it does not count.
	transport.TLSClientConfig.Certificates = issued(t, signer, "a", time.Now())
	if got := get(); !got.TLS || got.Leaf != "" {
		t.Errorf("with a certificate that nobody verified the leader got %+v", got)
	}
	leaf := issued(t, signer, "a", time.Now())[0].Leaf
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	w := httptest.NewRecorder()
	if got := b.Pass(w, r.WithContext(t.Context())); got.Status != http.StatusTeapot || !strings.Contains(w.Body.String(), `"Leaf":"codeq node"`) {
		t.Errorf("with a verified one the answer was %+v %s", got, w.Body)
	}
}

func TestWhatTheLeaderWritesArrivesAtOnce(t *testing.T) {
	next := make(chan struct{})
	_, _, b := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "8")
		}
		for i := range 4 {
			_, _ = fmt.Fprintf(w, "%d\n", i) // the client sees it
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	s := public(t, b, false)
	for _, path := range []string{"/known", "/unknown"} {
		response, err := s.Client().Get(s.URL + path)
		must(t, err)
		lines := bufio.NewScanner(response.Body)
		for i := range 4 {
			if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
				t.Fatalf("%s: part %d is %q", path, i, lines.Text())
			}
			next <- struct{}{}
		}
		must(t, response.Body.Close())
	}
}

func TestABodyIsReadOnlyIfTheLeaderWantsIt(t *testing.T) {
	_, _, b := pair(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		tell(w, r)
	})
	s := public(t, b, false)
	for path, want := range map[string]string{"/no": "HTTP/1.1 403", "/yes": "HTTP/1.1 100"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		must(t, err)
		_, err = io.WriteString(conn, "PUT "+path+" HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
		must(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, %v", path, line, err)
		}
		must(t, conn.Close())
	}
}

func TestWithoutALeaderNothingIsDone(t *testing.T) {
	l, a, b := pair(t, tell)
	s := public(t, b, false)
	l.lead(Member{})
	until(t, "no leader is known", func() bool { return b.leader.Load().address == "" })
	mustSay(t, s, "has no leader")
	// A node does not pass to itself: it may have lost the lead a moment ago.
	l.lead(b.Self())
	until(t, "it leads itself", func() bool { return b.leader.Load().node == b.Self().Node })
	mustSay(t, s, "has no leader")
	l.lead(Member{Node: a.Self().Node, Address: "127.0.0.1:1"})
	until(t, "another leader is known", func() bool { return b.leader.Load().address == "127.0.0.1:1" })
	mustSay(t, s, "cannot be reached")
	// Another node at the address gets nothing.
	l.lead(Member{Node: strings.Repeat("ab", 16), Address: a.Self().Address})
	until(t, "another leader is known", func() bool { return b.leader.Load().node == strings.Repeat("ab", 16) })
	mustSay(t, s, "cannot be reached")
}

// A request that could not be sent can be passed again, and reaches the next leader whole. One that
// another node has passed goes no further, and a node that stops sends clients to others.
func TestWhatCannotBeSentCanBePassedAgain(t *testing.T) {
	const body = "a body of some length"
	l, a, b := pair(t, tell)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	w := httptest.NewRecorder()
	for _, next := range []Member{{Node: strings.Repeat("ab", 16), Address: "127.0.0.1:1"}, {}, b.Self()} {
		l.lead(next)
		until(t, "the next one is known", func() bool { return b.leader.Load().node == next.Node })
		if got := b.Pass(w, r); !got.Unsent || got.Refusal == nil || got.Refusal.Code != wire.CodeNotLeader {
			t.Errorf("%+v leads: %+v", next, got)
		}
		passed := r.WithContext(context.WithValue(r.Context(), againKey{}, true))
		if got := b.Pass(w, passed); got.Unsent || got.Refusal != errNoLeader {
			t.Errorf("%+v leads, passed once more: %+v", next, got)
		}
	}
	l.lead(a.Self())
	until(t, "it is known", func() bool { return b.leader.Load().node == a.Self().Node })
	if got := b.Pass(w, r); got.Refusal != nil || got.Unsent || !strings.Contains(w.Body.String(), body) {
		t.Errorf("%+v, the next leader got %s", got, w.Body)
	}
	stops := newTarget("", "")
	stops.forEver = true
	b.leader.Store(stops)
	if got := b.Pass(w, r); got.Unsent || got.Refusal == nil || got.Refusal.Code != wire.CodeDraining {
		t.Errorf("a node that stops: %+v", got)
	}
}

// mustSay gets a page, which must be the refusal not_leader.
func mustSay(t *testing.T, s *httptest.Server, want string) {
	t.Helper()
	response, err := s.Client().Get(s.URL)
	must(t, err)
	defer func() { _ = response.Body.Close() }() // it is read
	body, err := io.ReadAll(response.Body)
	must(t, err)
	refusal, err := wire.ParseError(body)
	if err != nil || refusal.Code != wire.CodeNotLeader || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(refusal.Sentence, want) {
		t.Errorf("%d %s, want %s", response.StatusCode, body, want)
	}
}

func TestARequestOverALostLeaderIsInDoubt(t *testing.T) {
	come, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l, _, b := pair(t, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(come) })
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	})
	defer close(leave)
	s := public(t, b, false)
	go func() {
		<-come
		l.lead(Member{})
	}()
	mustSay(t, s, "may or may not")
}

// What the other nodes pass leaves files for the clients of this one.
func TestTheConnectionsForWhatIsPassedAreBounded(t *testing.T) {
	come, leave := make(chan struct{}), make(chan struct{})
	_, a, b := pair(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			close(come)
			<-leave
		}
	})
	a.mu.Lock()
	a.mostPassed = 1
	a.mu.Unlock()
	s := public(t, b, false)
	get := func(path string) int {
		response, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close() // the status is what counts
		return response.StatusCode
	}
	var waits sync.WaitGroup
	waits.Go(func() {
		if got := get("/waits"); got != http.StatusOK {
			t.Errorf("the first one is answered %d", got)
		}
	})
	<-come
	mustSay(t, s, "may or may not")
	close(leave)
	waits.Wait()
	until(t, "there is room again", func() bool { return get("/") == http.StatusOK })
	a.Cut(b.Self().Node)
	b.transport.CloseIdleConnections()
	until(t, "they are counted down", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.lines) == 0 && a.passing.lines == 0
	})
}

func TestAnAnswerThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	_, _, b := pair(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half") // the client sees it
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	s := public(t, b, false)
	response, err := s.Client().Get(s.URL)
	must(t, err)
	defer func() { _ = response.Body.Close() }() // it is read
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("got %q as a whole answer", body)
	}
}

// echo is a server of sockets without frames of its own: it answers what comes, and ends with
// the byte q, in the middle of a frame with the byte m, after a close frame with c.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }() // it may be closed already
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCodeq-Leader: here\r\n\r\n")
	for {
		b, err := rw.ReadByte()
		switch {
		case err != nil || b == 'q':
			return
		case b == 'm':
			_, _ = conn.Write([]byte{0x81, 5, 'a'})
			return
		case b == 'c':
			_, _ = conn.Write([]byte{0x88, 2, 0x03, 0xe8})
			return
		}
		_, _ = conn.Write([]byte{0x81, 1, b})
	}
}

// upgrade opens a socket, and sends early with the request.
func upgrade(t *testing.T, s *httptest.Server, early string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	must(t, conn.SetDeadline(time.Now().Add(wait)))
	_, err = io.WriteString(conn, "GET /s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"+early)
	must(t, err)
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	must(t, err)
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Codeq-Leader") != "here" {
		t.Fatalf("answered %v", response)
	}
	return conn, in
}

const goodbye = "\x88\x33\x03\xf4" + farewellText

func TestSocketsPassTheFollower(t *testing.T) {
	_, _, b := pair(t, echo)
	s := public(t, b, false)
	for _, c := range []struct{ name, early, send, want string }{
		{"bytes both ways", "", "xyq", "\x81\x01x\x81\x01y" + goodbye},
		{"bytes with the request", "xy", "q", "\x81\x01x\x81\x01y" + goodbye},
		{"a close frame of the leader", "", "c", "\x88\x02\x03\xe8"},
		{"half a frame", "", "m", "\x81\x05a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, in := upgrade(t, s, c.early)
			_, err := io.WriteString(conn, c.send)
			must(t, err)
			if got, err := io.ReadAll(in); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	t.Run("the client leaves", func(t *testing.T) {
		conn, _ := upgrade(t, s, "")
		must(t, conn.Close())
	})
}

func TestASocketEndsWith1012WhenTheLeaderIsLost(t *testing.T) {
	l, _, b := pair(t, echo)
	_, in := upgrade(t, public(t, b, false), "")
	l.lead(Member{})
	if got, err := io.ReadAll(in); err != nil || string(got) != goodbye {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestANodeThatIsNoMemberPassesNothing(t *testing.T) {
	l, _, b := pair(t, tell)
	l.remove(b.Self().Node)
	s := public(t, b, false)
	response, err := s.Client().Get(s.URL)
	must(t, err)
	defer func() { _ = response.Body.Close() }() // it is read
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode == http.StatusTeapot || strings.Contains(string(body), "Host") {
		t.Errorf("got %d %s, %v", response.StatusCode, body, err)
	}
}

func TestSocketsEndWith1012WhenTheNodeStops(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, http.HandlerFunc(echo))
	b, _ := join(t, a, nil, nil)
	stop := b.Serve(http.NotFoundHandler(), l)
	until(t, "both are members", func() bool { return len(l.Members()) == 2 })
	knowsLeader(t, b, a)
	_, in := upgrade(t, public(t, b, false), "")
	must(t, stop(t.Context()))
	if got, err := io.ReadAll(in); err != nil || string(got) != goodbye {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestABadPassedRequestIsRefused(t *testing.T) {
	_, a, b := pair(t, tell)
	conn, err := b.dial(t.Context(), overHTTP, a.Self().Address, "")
	must(t, err)
	defer func() { _ = conn.Close() }() // nothing is lost on it
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	must(t, err)
	if got, _ := io.ReadAll(conn); !strings.HasPrefix(string(got), "HTTP/1.1 400") {
		t.Errorf("got %q", got)
	}
}

func FuzzBelieved(f *testing.F) {
	signer, err := newAuthority(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("10.0.0.1:80", "1", base64.StdEncoding.EncodeToString(signer.certificate.Raw))
	f.Add("[::1]:1", "", "")
	f.Fuzz(func(t *testing.T, remote, secure, certificate string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(headerRemote, remote)
		r.Header.Set(headerTLS, secure)
		r.Header.Set(headerCertificate, certificate)
		got, err := believed(r)
		if err != nil {
			return
		}
		if _, _, err := net.SplitHostPort(got.RemoteAddr); err != nil || len(got.Header) > 0 || (got.TLS != nil) != (secure != "") {
			t.Errorf("believed %q, %v", got.RemoteAddr, got.Header)
		}
		back := httptest.NewRequest("GET", "/", nil)
		passed := &passage{to: newTarget("a", "b:1")}
		got = got.WithContext(context.WithValue(got.Context(), passageKey{}, passed))
		rewrite(&httputil.ProxyRequest{In: got, Out: back})
		if back.Header.Get(headerRemote) != got.RemoteAddr {
			t.Errorf("passed on as %q", back.Header.Get(headerRemote))
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x81\x01x\x88\x02\x03\xe8"), 1)
	f.Add([]byte("\x82\x7e\x01\x00"), 3)
	f.Add([]byte("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x81"), 5)
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		var whole, parts frames
		whole.pass(p)
		cut = min(max(cut, 0), len(p))
		parts.pass(p[:cut])
		for _, b := range p[cut:] {
			parts.pass([]byte{b})
		}
		if whole != parts {
			t.Errorf("%q cut at %d: %+v and %+v", p, cut, whole, parts)
		}
	})
}

func TestWhereFramesEnd(t *testing.T) {
	for _, c := range []struct {
		bytes   string
		between bool
	}{
		{"", true}, {"\x81", false}, {"\x81\x00", true}, {"\x81\x02a", false}, {"\x81\x02ab", true}, {"\x81\x7e\x00\x01", false},
		{"\x81\x7e\x00\x01a", true}, {"\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01a", true}, {"\x88\x00", false}, {"\x81\x81mask" + "a", true},
	} {
		var f frames
		f.pass([]byte(c.bytes))
		if f.between() != c.between {
			t.Errorf("%q: %v", c.bytes, f.between())
		}
	}
}
