package loadtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lxzan/gws"

	"codeq/wire"
)

const eventsPath = "/v1/codeq/events"

// watchers are sockets that watch: all but the last one the figures of all queues, four times
// a second, and the last one events. They count what comes and look at no more of it, because
// they share the processors with the server.
type watchers struct {
	gws.BuiltinEventHandler
	fail            func(error)
	conns           []*gws.Conn
	ended           sync.WaitGroup
	closing         atomic.Bool
	messages, bytes atomic.Int64
}

// openWatchers opens n sockets that watch figures, and one that watches events.
func openWatchers(ctx context.Context, at *address, n int, fail func(error)) (*watchers, error) {
	w := &watchers{fail: fail}
	for i := range n + 1 {
		ask := &wire.WatchSubscribe{ID: "w", Kind: wire.WatchQueues, EveryMs: wire.MinWatchEveryMs}
		if i == n {
			ask = &wire.WatchSubscribe{ID: "w", Kind: wire.WatchEvents, MaxPerSecond: 200}
		}
		err := cause(ctx)
		if err == nil {
			err = w.open(at, wire.AppendWatchRequest([]byte(`[{"type":"hello"},`), ask))
		}
		if err != nil {
			w.close()
			return nil, fmt.Errorf("watch %s: %w", at.url, err)
		}
	}
	return w, nil
}

func (w *watchers) open(at *address, first []byte) error {
	header := http.Header{}
	header.Set("Sec-Websocket-Protocol", wire.WatchSubprotocol)
	if at.token != "" {
		header.Set("Authorization", "Bearer "+at.token)
	}
	conn, answer, err := gws.NewClient(w, &gws.ClientOption{
		Addr: "ws" + strings.TrimPrefix(at.url, "http") + eventsPath, RequestHeader: header, TlsConfig: at.tls,
		HandshakeTimeout: handshakeFor, ReadMaxPayloadSize: maxServerMessageBytes,
	})
	if err != nil {
		return cmp.Or(redirected(answer), err)
	}
	w.conns = append(w.conns, conn)
	w.ended.Go(conn.ReadLoop)
	return conn.WriteMessage(gws.OpcodeText, append(first, ']'))
}

// close ends the sockets and waits for their readers.
func (w *watchers) close() {
	w.closing.Store(true)
	for _, conn := range w.conns {
		_ = conn.NetConn().Close() // closed twice is no harm
	}
	w.ended.Wait()
}

// OnPing implements gws.Event.
func (w *watchers) OnPing(conn *gws.Conn, payload []byte) {
	_ = conn.WritePong(payload) // a failure ends the socket, which OnClose tells
}

// OnMessage implements gws.Event.
func (w *watchers) OnMessage(_ *gws.Conn, message *gws.Message) {
	data := message.Bytes()
	w.messages.Add(1)
	w.bytes.Add(int64(len(data)))
	if bytes.HasPrefix(data, []byte(`[{"type":"error"`)) {
		w.fail(errors.New("a watcher was refused: " + string(data)))
	}
	_ = message.Close() // gives a buffer back, never fails
}

// OnClose implements gws.Event.
func (w *watchers) OnClose(_ *gws.Conn, err error) {
	if !w.closing.Load() {
		w.fail(fmt.Errorf("the server ended a socket that watches: %w", err))
	}
}
