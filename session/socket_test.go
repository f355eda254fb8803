package session

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/internal/socket"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// patience bounds what a test on real sockets waits for.
const patience = 10 * time.Second

// serve puts the registry of a bench behind a real HTTP server.
func (b *bench) serve() string {
	server := httptest.NewServer(b)
	b.t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// ServeHTTP upgrades a request as httpapi does.
func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var who *auth.Principal
	if header := r.Header.Get("Authorization"); header != "" {
		who, _ = b.registry.o.Auth.Authenticate(r.Context(), header[len("Bearer "):])
	}
	if refusal := b.registry.Upgrade(w, r, who); refusal != nil {
		w.WriteHeader(refusal.Code.HTTPStatus())
		_, _ = w.Write(wire.AppendError(nil, refusal)) // the client sees what is missing
	}
}

// rawSocket is a WebSocket client that says whatever bytes a test wants.
type rawSocket struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// upgradeRequest is a request as a client of ours sends it.
func upgradeRequest(header ...string) string {
	lines := append([]string{
		"GET /v1/codeq/session HTTP/1.1", "Host: codeq.test", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
	}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func dialRaw(t *testing.T, addr, request string) (*rawSocket, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // may be closed already
	})
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := &rawSocket{t: t, conn: conn, in: bufio.NewReader(conn)}
	r.write([]byte(request))
	response, err := http.ReadResponse(r.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, response
}

func (r *rawSocket) write(b []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// text is a masked frame; the mask is zero, so the payload is as it is.
func text(opcode byte, payload string) []byte {
	b := []byte{0x80 | opcode, 0x80}
	switch n := len(payload); {
	case n < 126:
		b[1] |= byte(n)
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b[:1], 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b[:1], 0x80|127), uint64(n))
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, payload...)
}

// read is the next frame of the server.
func (r *rawSocket) read() (opcode byte, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1])
	switch n {
	case 126:
		var b [2]byte
		_, err = io.ReadFull(r.in, b[:])
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, err = io.ReadFull(r.in, b[:])
		n = binary.BigEndian.Uint64(b[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r.in, payload)
	return head[0] & 0x0f, payload, err
}

// closeCode reads to the end and returns what the server closed with, 0 if it
// said nothing.
func (r *rawSocket) closeCode() (code uint16) {
	r.t.Helper()
	for {
		opcode, payload, err := r.read()
		if err != nil {
			return code
		}
		if opcode == 8 && len(payload) >= 2 {
			code = binary.BigEndian.Uint16(payload)
			_ = r.conn.Close() // as a client does when it is told to
			return code
		}
	}
}

func (r *rawSocket) hello() {
	r.t.Helper()
	r.write(text(1, `{"type":"hello"}`))
	if _, payload, err := r.read(); err != nil || !strings.Contains(string(payload), `"welcome"`) {
		r.t.Fatalf("got %s, %v, want welcome", payload, err)
	}
}

// tokenAuth knows one token.
type tokenAuth struct{}

func (tokenAuth) Authenticate(_ context.Context, credential string) (*auth.Principal, *wire.Error) {
	if credential != "good" {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the token is not known")
	}
	return &auth.Principal{Tenant: "acme", Subject: "bob", Commands: []string{"a"}}, nil
}

func TestUpgradeIsAcceptedInEverySpelling(t *testing.T) {
	b := newBench(t, setup{auth: tokenAuth{}})
	addr := b.serve()
	for name, c := range map[string]struct {
		request  string
		protocol string
	}{
		"plain":          {upgradeRequest(), ""},
		"subprotocol":    {upgradeRequest("Sec-WebSocket-Protocol: codeq.v1"), "codeq.v1"},
		"one of several": {upgradeRequest("Sec-WebSocket-Protocol: codeq.v9", "Sec-WebSocket-Protocol: x,codeq.v1"), "codeq.v1"},
		"keep-alive":     {strings.Replace(upgradeRequest(), "Connection: Upgrade", "Connection: keep-alive, upgrade", 1), ""},
		"two lines":      {upgradeRequest("Connection: keep-alive"), ""},
		"compression":    {upgradeRequest("Sec-WebSocket-Extensions: permessage-deflate"), ""},
		"good token":     {upgradeRequest("Authorization: bearer good"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			socket, response := dialRaw(t, addr, c.request)
			if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-Websocket-Protocol") != c.protocol {
				t.Fatalf("got %d with subprotocol %q", response.StatusCode, response.Header.Get("Sec-Websocket-Protocol"))
			}
			if extensions := response.Header.Get("Sec-Websocket-Extensions"); extensions != "" {
				t.Errorf("extensions %q, want none", extensions)
			}
			if strings.Contains(c.request, "Authorization") {
				socket.hello()
			}
		})
	}
}

func TestCredentialComesInTheHelloToo(t *testing.T) {
	b := newBench(t, setup{auth: tokenAuth{}})
	addr := b.serve()
	good, _ := dialRaw(t, addr, upgradeRequest())
	good.write(text(1, `[{"type":"hello","token":"good"},{"type":"enqueue","ref":1,"command":"b","payload":1}]`))
	_, payload, err := good.read()
	for _, want := range []string{`"tenantId":"acme"`, `"code":"forbidden"`} {
		if err != nil || !strings.Contains(string(payload), want) {
			t.Errorf("got %s, %v, want %s", payload, err, want)
		}
	}
	for _, hello := range []string{`{"type":"hello"}`, `{"type":"hello","token":"bad"}`} {
		bad, _ := dialRaw(t, addr, upgradeRequest())
		bad.write(text(1, hello))
		if _, payload, err := bad.read(); err != nil || !strings.Contains(string(payload), "unauthenticated") {
			t.Errorf("%s: got %s, %v", hello, payload, err)
		}
		if code := bad.closeCode(); code != CloseCredential {
			t.Errorf("%s: closed with %d, want %d", hello, code, CloseCredential)
		}
	}
}

func TestSocketsThatDoNotSayHelloAreLimited(t *testing.T) {
	b := newBench(t, setup{})
	addr := b.serve()
	first, _ := dialRaw(t, addr, upgradeRequest())
	for range wire.MaxSocketsNoHello - 1 {
		if _, response := dialRaw(t, addr, upgradeRequest()); response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %d below the limit", response.StatusCode)
		}
	}
	_, response := dialRaw(t, addr, upgradeRequest())
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", response.StatusCode)
	}
	first.hello()
	if _, response := dialRaw(t, addr, upgradeRequest()); response.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("got %d after one said hello", response.StatusCode)
	}
}

// One frame whose length does not fit an int panics in the reader of gws.
func TestFrameLengthThatKillsGwsEndsOnlyItsSession(t *testing.T) {
	b := newBench(t, setup{})
	addr := b.serve()
	witness, _ := dialRaw(t, addr, upgradeRequest())
	witness.hello()
	for _, length := range []uint64{0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFC, 0x8000000000000000} {
		killer, _ := dialRaw(t, addr, upgradeRequest())
		killer.hello()
		frame := binary.BigEndian.AppendUint64([]byte{0x81, 0xFF}, length)
		killer.write(append(frame, 0, 0, 0, 0))
		if code := killer.closeCode(); code != CloseProtocol {
			t.Errorf("length %x: closed with %d, want %d", length, code, CloseProtocol)
		}
	}
	witness.write(text(1, `{"type":"window","ref":1,"size":1}`))
	if _, payload, err := witness.read(); err != nil || string(payload) != `[{"type":"ok","ref":1}]` {
		t.Errorf("the witness got %s, %v", payload, err)
	}
	_ = witness.conn.Close() // so that shutdown need not wait for it
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.registry.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if n := strings.Count(b.log.String(), "cannot read"); n != 3 {
		t.Errorf("%d lines in the log about it, want 3: %s", n, b.log)
	}
}

func TestMessagesTheProtocolDoesNotKnowCloseWith4400(t *testing.T) {
	b := newBench(t, setup{})
	addr := b.serve()
	huge := strings.Repeat(" ", wire.MaxClientMessageBytes+1)
	unmasked := append([]byte{0x81, 4}, "true"...)
	for name, message := range map[string][]byte{
		"binary":            text(2, `{"type":"window","size":1}`),
		"not JSON":          text(1, `{"type":`),
		"not UTF-8":         text(1, "{\"type\":\"\xff\"}"),
		"two values":        text(1, `{} {}`),
		"too deep":          text(1, strings.Repeat("[", wire.MaxNesting+2)),
		"over the limit":    text(1, huge),
		"far over it":       text(1, huge+huge),
		"only claimed":      text(1, huge)[:14],
		"unmasked":          unmasked,
		"reserved bit":      {0xC1, 0x80, 0, 0, 0, 0},
		"unknown opcode":    {0x8B, 0x80, 0, 0, 0, 0},
		"lone continuation": {0x80, 0x80, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := dialRaw(t, addr, upgradeRequest())
			r.hello()
			// All of it can be written, though the server does not want it: else the
			// client might not come to read why.
			r.write(message)
			if code := r.closeCode(); code != CloseProtocol {
				t.Errorf("closed with %d, want %d", code, CloseProtocol)
			}
		})
	}
}

func TestMessageOfExactlyTheLimitIsRead(t *testing.T) {
	b := newBench(t, setup{})
	r, _ := dialRaw(t, b.serve(), upgradeRequest())
	r.hello()
	frame := `{"type":"window","ref":1,"size":1}`
	r.write(text(1, frame+strings.Repeat(" ", wire.MaxClientMessageBytes-len(frame))))
	if _, payload, err := r.read(); err != nil || string(payload) != `[{"type":"ok","ref":1}]` {
		t.Errorf("got %s, %v", payload, err)
	}
}

func TestFragmentsBecomeOneMessage(t *testing.T) {
	b := newBench(t, setup{})
	r, _ := dialRaw(t, b.serve(), upgradeRequest())
	r.hello()
	first := text(1, `{"type":"window",`)
	first[0] &^= 0x80
	r.write(append(first, text(0, `"ref":1,"size":1}`)...))
	if _, payload, err := r.read(); err != nil || string(payload) != `[{"type":"ok","ref":1}]` {
		t.Errorf("got %s, %v", payload, err)
	}
}

func TestBytesBehindTheUpgradeAreNotLost(t *testing.T) {
	b := newBench(t, setup{})
	r, _ := dialRaw(t, b.serve(), upgradeRequest()+string(text(1, `{"type":"hello"}`)))
	if _, payload, err := r.read(); err != nil || !strings.Contains(string(payload), `"welcome"`) {
		t.Errorf("got %s, %v", payload, err)
	}
}

func TestClosingClientGetsItsCloseBack(t *testing.T) {
	b := newBench(t, setup{})
	r, _ := dialRaw(t, b.serve(), upgradeRequest())
	r.hello()
	r.write(text(8, "\x03\xe8bye"))
	if code := r.closeCode(); code != 1000 {
		t.Errorf("closed with %d, want 1000", code)
	}
}

// faulty is an engine with a broken invariant.
type faulty struct{ Engine }

func (faulty) Shards() int                                                 { return 1 }
func (faulty) ShardOf(wire.TaskID) int                                     { panic("two owners") }
func (faulty) NewConsumer(shardactor.ConsumerOptions) *shardactor.Consumer { return nil }
func (faulty) Post(int, []shard.Message, int, mailbox.Class) mailbox.Verdict {
	return mailbox.Accepted
}

func TestPanicOfOurOwnIsNotTakenForAHostileFrame(t *testing.T) {
	b := newBench(t, setup{engine: func(*shardactor.Engine) Engine { return faulty{} }})
	near, far := net.Pipe()
	t.Cleanup(func() {
		_ = near.Close() // the test is over
	})
	s := newSession(b.registry, socket.New(far), nil)
	s.talk.principal = &auth.Principal{Tenant: "acme", Subject: "bob"}
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(upgradeRequest())))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		in := bufio.NewReader(near)
		if _, err := http.ReadResponse(in, nil); err != nil {
			t.Errorf("read response: %v", err)
		}
		frame := fmt.Sprintf(`{"type":"abandon","taskId":"%v","leaseToken":"%v"}`, testTask(1), testToken(1))
		_, _ = near.Write(text(1, frame)) // the other end shows what came of it
	}()
	s.conn, err = gws.NewUpgrader(s, &gws.ServerOption{}).UpgradeFromConn(s.socket, bufio.NewReader(far), request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != "two owners" {
			t.Errorf("recovered %v, want our own panic", p)
		}
	}()
	s.readLoop()
	t.Error("the reader went on")
}

// An upgrade that fails leaves no place taken, or so many of them would close the
// door for everybody.
func TestAnUpgradeThatFailsLeavesNoPlaceTaken(t *testing.T) {
	b := newBench(t, setup{})
	request := func() *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/v1/codeq/session", nil)
		r.Header = http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
		}
		return r
	}
	w := httptest.NewRecorder() // whose connection cannot be taken over
	if refusal := b.registry.Upgrade(w, request(), nil); refusal == nil || refusal.Code != wire.CodeInternal {
		t.Errorf("refused with %v", refusal)
	}
	near, far := net.Pipe()
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	buffer := bufio.NewReadWriter(bufio.NewReader(far), bufio.NewWriter(far))
	if refusal := b.registry.Upgrade(&hijackable{conn: far, buffer: buffer, header: make(http.Header)}, request(), nil); refusal != nil {
		t.Error(refusal)
	}
	if b.registry.greeting != 0 {
		t.Errorf("%d places are taken by nobody", b.registry.greeting)
	}
}
