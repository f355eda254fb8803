package docs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/lxzan/gws"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/internal/auth"
	"codeq/internal/server"
	"codeq/test/blackbox"
	"codeq/wire"
)

// TestMain runs the tests where the pages are.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../docs"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit))
}

// patience is how long a test waits for something that must come.
const patience = 30 * time.Second

// site is a running server with its data in memory.
type site struct {
	t      *testing.T
	server *server.Server
	http   *http.Client
}

func openSite(t *testing.T, tokens *auth.Tokens) *site {
	t.Helper()
	return openSiteOn(t, vfs.NewMem(), tokens)
}

// openSiteOn serves what is on a disk.
func openSiteOn(t *testing.T, disk vfs.FS, tokens *auth.Tokens) *site {
	t.Helper()
	s, err := server.Open(server.Options{
		DataDir: "data", FS: disk, Listen: "127.0.0.1:0", Tokens: tokens, Log: zerolog.Nop(), Version: "v0.1.0",
		Settings: []byte(`{"settings":[{"name":"listen","value":"127.0.0.1:8080","origin":"--listen"},{"name":"shards","origin":"data directory"}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, server: s, http: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	t.Cleanup(func() {
		x.http.CloseIdleConnections()
		x.shutdown()
	})
	return x
}

// shutdown stops the server; a second call finds it done.
func (x *site) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil {
		x.t.Error(err)
	}
}

// newTokens makes a file of tokens with one producer, who may post only
// "sha256".
func newTokens(t *testing.T) (tokens *auth.Tokens, token string) {
	t.Helper()
	token, err := auth.NewToken(nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entry := &auth.Entry{
		Name: "example", SHA256: auth.HashToken(token), Tenant: "acme", Subject: "importer",
		Scopes: []string{auth.ScopeProduce}, Commands: []string{"sha256"},
	}
	if err := auth.AppendToFile(file, entry, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	tokens, err = auth.OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, token
}

// exchange is one request and its answer.
type exchange struct {
	method, path, sent string
	status             int
	header             http.Header
	body               string
}

func (x *site) ask(method, path, body string, header http.Header) *exchange {
	x.t.Helper()
	r, err := http.NewRequest(method, "http://"+x.server.Addr()+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	if header != nil {
		r.Header, r.Host = header, header.Get("Host")
	}
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.t.Fatal(err)
	}
	return &exchange{method, path, body, response.StatusCode, response.Header, string(data)}
}

// socket is a session spoken by hand.
type socket struct {
	gws.BuiltinEventHandler
	t      *testing.T
	conn   *gws.Conn
	status int // of the upgrade
	frames chan json.RawMessage
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
	var frames []json.RawMessage
	if err := json.Unmarshal(message.Bytes(), &frames); err != nil {
		k.t.Errorf("a message of the server is no array: %s: %v", message.Bytes(), err)
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

func (x *site) dial() *socket { return x.dialTo(sessionsPath, wire.Subprotocol) }

// The paths of sockets.
const (
	sessionsPath = "/v1/codeq/session"
	eventsPath   = "/v1/codeq/events"
)

func (x *site) dialTo(path, protocol string) *socket {
	x.t.Helper()
	k := &socket{t: x.t, frames: make(chan json.RawMessage, 1000), closed: make(chan struct{})}
	conn, response, err := gws.NewClient(k, &gws.ClientOption{
		Addr:          "ws://" + x.server.Addr() + path,
		RequestHeader: http.Header{"Sec-WebSocket-Protocol": {protocol}},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	k.conn, k.status = conn, response.StatusCode
	go conn.ReadLoop()
	x.t.Cleanup(func() {
		_ = k.conn.NetConn().Close() // it may be closed already
		<-k.closed
	})
	return k
}

func (k *socket) say(message string) {
	k.t.Helper()
	if err := k.conn.WriteMessage(gws.OpcodeText, []byte(message)); err != nil {
		k.t.Fatal(err)
	}
}

// hear returns the next frame.
func (k *socket) hear() string {
	k.t.Helper()
	select {
	case f := <-k.frames:
		return string(f)
	case <-k.closed:
	case <-time.After(patience):
		k.t.Fatal("the server says nothing")
	}
	select {
	case f := <-k.frames: // it came before the end
		return string(f)
	default:
		k.t.Fatalf("the session was closed with %d", k.code)
		return ""
	}
}

// closeCode waits until the server closes the session.
func (k *socket) closeCode() int {
	k.t.Helper()
	select {
	case <-k.closed:
		return int(k.code)
	case <-time.After(patience):
		k.t.Fatal("the session is not closed")
		return 0
	}
}
