package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/wire"
)

// TestMain fails over goroutines that the tests have left behind. They have as long to end as a test
// waits for anything: goleak by itself gives them half a second, in which a busy machine ends none,
// and the run fails without the name of a test.
func TestMain(m *testing.M) {
	code := m.Run()
	left := goleak.Find()
	for until := time.Now().Add(patience); left != nil && time.Now().Before(until); left = goleak.Find() {
	}
	if left != nil && code == 0 {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// patience is how long a test waits for something that must come.
const patience = 20 * time.Second

// site is a running server and a client of it.
type site struct {
	t      *testing.T
	server *Server
	http   *http.Client
	// token goes along with every request and hello; "" is none.
	token string
	// via is the address of a node that passes requests to the server; "" is the server itself.
	via string
	// stale asks for what the node has by itself.
	stale bool
	// killed says that the server was stopped without time for anybody.
	killed bool
}

// as is the same site for another credential.
func (x *site) as(token string) *site {
	y := *x
	y.token = token
	return &y
}

func openSite(t *testing.T, dir string) *site {
	t.Helper()
	s, err := Open(Options{DataDir: dir, Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, s)
}

func newSite(t *testing.T, s *Server) *site {
	x := &site{t: t, server: s, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(x.close)
	return x
}

// close shuts the server down; a second call finds it done.
func (x *site) close() {
	x.t.Helper()
	x.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil && !(x.killed && errors.Is(err, context.Canceled)) {
		x.t.Error(err)
	}
	if err := x.server.Serve(); err != nil {
		x.t.Error(err)
	}
}

// kill stops the server as a process that ends would: nobody gets time. A
// connection that the server has not yet seen idle is cut, and Shutdown says so.
func (x *site) kill() {
	x.t.Helper()
	x.killed = true
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := x.server.Shutdown(now); err != nil && !errors.Is(err, context.Canceled) {
		x.t.Fatal(err)
	}
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// code is the code of a refusal, "" for any other answer.
func (a answer) code() wire.Code {
	var e struct{ Code wire.Code }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		return wire.Code("no JSON: " + a.body)
	}
	return e.Code
}

func (x *site) ask(method, path, body string) answer {
	x.t.Helper()
	r, err := http.NewRequest(method, "http://"+cmp.Or(x.via, x.server.Addr())+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	if x.token != "" {
		r.Header.Set("Authorization", "Bearer "+x.token)
	}
	if x.stale {
		r.Header.Set("Codeq-Read", "stale")
	}
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(data)}
}

const okTask = `{"command":"c","payload":{"n":1}}`

// post makes a task that must be accepted.
func (x *site) post(body string) *wire.Task {
	x.t.Helper()
	a := x.ask("POST", "/v1/codeq/tasks", body)
	task, err := wire.ParseTask([]byte(a.body))
	if a.status != http.StatusAccepted || err != nil {
		x.t.Fatalf("post %.100s: %d %s", body, a.status, a.body)
	}
	return task
}

func (x *site) read(id wire.TaskID) *wire.Task {
	x.t.Helper()
	a := x.ask("GET", "/v1/codeq/tasks/"+id.String(), "")
	task, err := wire.ParseTask([]byte(a.body))
	if a.status != http.StatusOK || err != nil {
		x.t.Fatalf("read %v: %d %s", id, a.status, a.body)
	}
	return task
}

// socket is a session spoken by hand.
type socket struct {
	gws.BuiltinEventHandler
	t      *testing.T
	conn   *gws.Conn
	frames chan wire.ServerFrame
	// early holds frames that came before one that was waited for: the server
	// may push a task before it answers the last shard's part of a subscribe.
	early []wire.ServerFrame
	// closed is closed at the end of the connection; code is set before.
	closed chan struct{}
	code   uint16
}

// OnPing implements gws.Event.
func (k *socket) OnPing(conn *gws.Conn, payload []byte) {
	// A failed pong means a closed socket, which OnClose tells.
	_ = conn.WritePong(payload)
}

// OnMessage implements gws.Event.
func (k *socket) OnMessage(_ *gws.Conn, message *gws.Message) {
	frames, err := wire.ParseServerMessage(append([]byte(nil), message.Bytes()...))
	if err != nil {
		k.t.Errorf("server said %s: %v", message.Bytes(), err)
	}
	if err := message.Close(); err != nil {
		k.t.Error(err)
	}
	for _, f := range frames {
		k.frames <- f
	}
}

// OnClose implements gws.Event.
func (k *socket) OnClose(_ *gws.Conn, err error) {
	var end *gws.CloseError
	if errors.As(err, &end) {
		k.code = end.Code
	}
	close(k.closed)
}

// dial opens a session and says hello.
func (x *site) dial() *socket {
	x.t.Helper()
	k := x.connect()
	hear[*wire.Welcome](k)
	return k
}

// connect says hello and does not wait for the answer.
func (x *site) connect() *socket {
	x.t.Helper()
	return x.say(`{"type":"hello","token":"` + x.token + `"}`)
}

// say opens a session with that hello and does not wait for the answer.
func (x *site) say(hello string) *socket {
	x.t.Helper()
	k := &socket{t: x.t, frames: make(chan wire.ServerFrame, 1000), closed: make(chan struct{})}
	conn, _, err := gws.NewClient(k, &gws.ClientOption{Addr: "ws://" + cmp.Or(x.via, x.server.Addr()) + "/v1/codeq/session"})
	if err != nil {
		x.t.Fatal(err)
	}
	k.conn = conn
	go conn.ReadLoop()
	x.t.Cleanup(k.hangUp)
	k.say(hello)
	return k
}

// hangUp closes the connection and waits until gws has noticed.
func (k *socket) hangUp() {
	_ = k.conn.NetConn().Close() // it may be closed already
	<-k.closed
}

func (k *socket) say(message string) {
	k.t.Helper()
	if err := k.conn.WriteMessage(gws.OpcodeText, []byte(message)); err != nil {
		k.t.Fatal(err)
	}
}

// hear waits for the next frame of one type and keeps what else comes. An
// error that was not waited for ends the test.
func hear[F wire.ServerFrame](k *socket) F {
	k.t.Helper()
	for i, f := range k.early {
		if want, ok := f.(F); ok {
			k.early = append(k.early[:i], k.early[i+1:]...)
			return want
		}
	}
	for {
		f := k.next()
		if want, ok := f.(F); ok {
			return want
		}
		if e, ok := f.(*wire.ErrorFrame); ok {
			k.t.Fatalf("heard %v", e.Err)
		}
		k.early = append(k.early, f)
	}
}

func (k *socket) next() wire.ServerFrame {
	k.t.Helper()
	select {
	case f := <-k.frames:
		return f
	case <-k.closed:
	case <-time.After(patience):
		k.t.Fatal("the server says nothing")
	}
	select {
	case f := <-k.frames: // it came before the end
		return f
	default:
		k.t.Fatalf("the session was closed with %d", k.code)
		return nil
	}
}

// closeCode waits until the server closes the session.
func (k *socket) closeCode() uint16 {
	k.t.Helper()
	select {
	case <-k.closed:
		return k.code
	case <-time.After(patience):
		k.t.Fatal("the session is not closed")
		return 0
	}
}
