package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

// stage is a server that a script plays. It upgrades each request for a session to a peer, unless
// answer says otherwise.
type stage struct {
	x     *run
	addr  string
	peers chan *peer

	mu sync.Mutex
	// answer serves a request in place of an upgrade if it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool
	seen   []seen
}

// seen is a request that came.
type seen struct {
	at     time.Time
	path   string
	header http.Header
}

// play starts a stage, which becomes the address of the driver.
func (x *run) play() *stage {
	s := x.stage()
	x.url = "http://" + s.addr
	return s
}

// stage starts a stage at a free port.
func (x *run) stage() *stage {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	x.must(err)
	s := &stage{x: x, addr: l.Addr().String(), peers: make(chan *peer, 100)}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is closed
	}()
	x.after(func() {
		_ = server.Close() // sockets are closed by their peers
		<-served
	})
	return s
}

// answers has requests answered by a function from now on; nil upgrades them.
func (s *stage) answers(answer func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// refuses answers requests with a status and a body; names and values of headers follow.
func (s *stage) refuses(status int, body string, header ...string) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // a driver that went away is seen by the script
		return true
	})
}

// requests are those that came so far, of one path.
func (s *stage) requests(path string) (all []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if strings.HasSuffix(r.path, path) {
			all = append(all, r)
		}
	}
	return all
}

// attempts are the requests for a session that came so far. A driver that cannot see how one was answered
// asks once with a plain GET; those are left out.
func (s *stage) attempts() (all []seen) {
	asked := 0
	for _, r := range s.requests("/session") {
		if r.header.Get("Upgrade") != "" {
			all = append(all, r)
		} else {
			asked++
		}
	}
	if asked > 0 && (asked > len(all) || !slices.Contains(s.x.can, "asks")) {
		s.x.fail("the driver made %d plain requests beside %d for a session", asked, len(all))
	}
	return all
}

// ServeHTTP implements http.Handler.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, seen{time.Now(), r.URL.Path, r.Header.Clone()})
	answer := s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	if r.URL.Path != "/v1/codeq/session" || r.Header.Get("Upgrade") == "" {
		refusal := `{"error":"here is nothing but a WebSocket","code":"invalid_argument","retryable":false}`
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(refusal)) // a driver that went away is seen by the script
		return
	}
	p := &peer{x: s.x, frames: make(chan event, 10_000), gone: make(chan struct{}), pongs: make(chan string, 100)}
	conn, err := gws.NewUpgrader(p, &gws.ServerOption{SubProtocols: []string{wire.Subprotocol}, ReadMaxPayloadSize: 16 << 20}).Upgrade(w, r)
	if err != nil {
		return // the driver sees how its request ended
	}
	p.conn = conn
	s.peers <- p
	conn.ReadLoop()
}

// arrives waits for the next session of the driver, and greets it.
func (s *stage) arrives(with members) *peer {
	p := s.upgraded()
	p.greet(with)
	return p
}

// upgraded waits for the next socket of the driver.
func (s *stage) upgraded() *peer {
	select {
	case p := <-s.peers:
		s.x.after(func() { _ = p.conn.NetConn().Close() }) // it may have ended
		return p
	case <-time.After(s.x.patience):
		s.x.fail("the driver opened no session within %v", s.x.patience)
		return nil
	}
}

// peer is the server's end of one socket.
type peer struct {
	gws.BuiltinEventHandler
	x    *run
	conn *gws.Conn
	// hello is the first frame of the driver.
	hello  event
	frames chan event
	early  []event
	pongs  chan string
	// longest is the size of the largest message that came, broken a message that is none.
	mu      sync.Mutex
	longest int
	broken  string
	// gone is closed at the end of the socket; code is its close code.
	gone chan struct{}
	code int
	seq  int
}

// OnMessage implements gws.Event.
func (p *peer) OnMessage(_ *gws.Conn, message *gws.Message) {
	data := slices.Clone(message.Bytes())
	_ = message.Close() // gives a buffer back; never fails
	p.mu.Lock()
	p.longest = max(p.longest, len(data))
	if len(data) > wire.MaxClientMessageBytes && p.broken == "" {
		p.broken = fmt.Sprintf("a message of %d bytes", len(data))
	}
	if _, violation := wire.ParseClientMessage(data); violation != nil && p.broken == "" {
		p.broken = violation.Sentence
	}
	p.mu.Unlock()
	var several []event
	var one event
	if json.Unmarshal(data, &several) == nil {
		for _, e := range several {
			p.frames <- e
		}
		return
	}
	if json.Unmarshal(data, &one) == nil {
		p.frames <- one
	}
}

// OnPong implements gws.Event.
func (p *peer) OnPong(_ *gws.Conn, payload []byte) { p.pongs <- string(payload) }

// OnPing implements gws.Event.
func (p *peer) OnPing(conn *gws.Conn, payload []byte) { _ = conn.WritePong(payload) } // a socket that ended is seen elsewhere

// OnClose implements gws.Event.
func (p *peer) OnClose(_ *gws.Conn, err error) {
	var closed *gws.CloseError
	if errors.As(err, &closed) {
		p.code = int(closed.Code)
	}
	close(p.gone)
}

// greet waits for the hello and says welcome.
func (p *peer) greet(with members) {
	p.hello = p.hear("hello", nil)
	welcome := members{
		"type": "welcome", "sessionId": "01a21f91-0c3d-7e42-a0b1-4f6d2c8e9a55", "resume": "the-key", "workerId": "kit", "tenantId": "default",
		"pingSeconds": 20, "resumeGraceSeconds": 15, "maxMessageBytes": 2097152, "maxUnanswered": 8192, "durability": "fsync",
		"serverTime": "2026-01-01T00:00:00.000Z", "version": "conform", "features": []string{"cancel"}, "held": []any{},
	}
	maps.Copy(welcome, with)
	p.say(welcome)
}

// say sends frames in one message.
func (p *peer) say(frames ...members) {
	message, err := json.Marshal(frames)
	p.x.must(err)
	p.sayText(string(message))
}

// sayText sends a text as it is.
func (p *peer) sayText(message string) {
	if err := p.conn.WriteMessage(gws.OpcodeText, []byte(message)); err != nil {
		p.x.fail("the driver has ended the connection: %v", err)
	}
}

// hear waits for a frame of a type with these members; what else comes is kept.
func (p *peer) hear(kind string, with members) event {
	for i, e := range p.early {
		if e.fits(ofFrame, kind, with) {
			p.early = slices.Delete(p.early, i, i+1)
			return e
		}
	}
	for late := time.After(p.x.patience); ; {
		e := p.take(late)
		if e == nil {
			p.x.fail("no frame %s came%s", inWords(ofFrame, kind, with), p.instead())
		}
		if e.fits(ofFrame, kind, with) {
			return e
		}
		p.early = append(p.early, e)
	}
}

// take is the next frame; nil when it is too late, or the socket has ended.
func (p *peer) take(late <-chan time.Time) event {
	select {
	case e := <-p.frames:
		return e
	case <-p.gone:
	case <-late:
	}
	select {
	case e := <-p.frames: // it came before the end
		return e
	default:
		return nil
	}
}

func (p *peer) instead() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := ""
	if len(p.early) > 0 {
		said = fmt.Sprintf("; instead came %.500v", p.early[max(0, len(p.early)-4):])
	}
	if p.broken != "" {
		said += "; the server refuses " + p.broken
	}
	select {
	case <-p.gone:
		said += fmt.Sprintf("; the socket has ended with %d", p.code)
	default:
	}
	return said
}

// ok answers a frame, if it wants an answer.
func (p *peer) ok(frame event, with members) {
	if frame["ref"] == nil {
		return
	}
	answer := members{"type": "ok", "ref": frame["ref"]}
	maps.Copy(answer, with)
	p.say(answer)
}

// refuse answers a frame with an error.
func (p *peer) refuse(frame event, code string, with members) {
	answer := members{"type": "error", "ref": frame["ref"], "code": code, "error": "because of the script", "retryable": false}
	maps.Copy(answer, with)
	p.say(answer)
}

// subscribed answers the subscription.
func (p *peer) subscribed() event {
	f := p.hear("subscribe", nil)
	p.ok(f, nil)
	return f
}

// token and taskID name the delivery n.
func token(n int) string  { return fmt.Sprintf("%032x", n) }
func taskID(n int) string { return fmt.Sprintf("01a21f91-0000-7000-8000-%012x", n) }

// taskFrame is a delivery.
func (p *peer) taskFrame(n int, with members) members {
	p.seq++
	f := members{"type": "task", "seq": p.seq, "leaseToken": token(n), "leaseMs": 30_000, "leaseUntil": "2026-01-01T00:00:30.000Z", "task": members{
		"id": taskID(n), "command": "a", "payload": members{"n": n}, "priority": 0, "status": "IN_PROGRESS", "lastKnownLocation": "INPROG_SET",
		"attempts": 0, "maxAttempts": 5, "deliveries": 1, "workerId": "kit", "tenantId": "default",
		"createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
	}}
	maps.Copy(f, with)
	return f
}

// push delivers task n and waits until its handler runs.
func (p *peer) push(n int) {
	p.say(p.taskFrame(n, nil))
	p.x.want("delivery", members{"task": taskID(n)})
}

// cut ends the socket as a crash does.
func (p *peer) cut() { _ = p.conn.NetConn().Close() } // it may have ended

// close ends the socket with a code.
func (p *peer) close(code uint16) { _ = p.conn.WriteClose(code, nil) } // likewise

// ended waits for the end of the socket by the driver, and returns its code.
func (p *peer) ended() int {
	select {
	case <-p.gone:
		return p.code
	case <-time.After(p.x.patience):
		p.x.fail("the driver kept the connection for %v", p.x.patience)
		return 0
	}
}

// keptTheRules fails if the driver sent what is no message of a client.
func (p *peer) keptTheRules() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != "" {
		p.x.fail("the driver sent what the server refuses: %s", p.broken)
	}
}
