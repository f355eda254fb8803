package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

// maxRefusalBytes bounds what is read of an answer that refuses an upgrade.
const maxRefusalBytes = 64 << 10

// connect makes one link: dial, upgrade, hello, welcome. It ends early with
// ctx. The error is an *UnreachableError, a *wire.Error, or a sentence.
func (c *Client) connect(ctx context.Context, hello *wire.Hello) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+helloTimeout)
	defer cancel()
	conn, err := c.dialSocket(ctx)
	if err != nil {
		return nil, c.notReached(ctx, err)
	}
	l := newLink()
	socket, err := c.upgrade(ctx, conn, l)
	if err != nil {
		return nil, err
	}
	l.start(socket)
	if err := l.greet(ctx, hello); err != nil {
		l.close()
		return nil, err
	}
	l.adopt()
	return l, nil
}

// adopt takes over what the welcome says about the connection.
func (l *link) adopt() {
	if l.welcome.MaxUnanswered <= 0 {
		l.welcome.MaxUnanswered = wire.MaxUnansweredRequests
	}
}

func (c *Client) dialSocket(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx, "tcp", hostPort(c.base))
	if err != nil || c.base.Scheme != "https" {
		return conn, err
	}
	config := c.tls.Clone()
	config.NextProtos = []string{"http/1.1"} // an upgrade is not possible over HTTP/2
	if config.ServerName == "" {
		config.ServerName = c.base.Hostname()
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error is the one that counts
		return nil, err
	}
	return secured, nil
}

// heldConn keeps a connection open until it is let go: gws closes it when an
// upgrade is refused, before anybody could read why.
type heldConn struct {
	net.Conn
	free atomic.Bool
}

// Close closes nothing until the connection was let go.
func (h *heldConn) Close() error {
	if !h.free.Load() {
		return nil
	}
	return h.Conn.Close()
}

// upgrade makes a WebSocket of conn. When it fails, conn is closed.
func (c *Client) upgrade(ctx context.Context, conn net.Conn, events gws.Event) (*gws.Conn, error) {
	held := &heldConn{Conn: conn}
	// The end of ctx closes the connection. gws's own timer is set beyond it,
	// because it leaves a goroutine behind when it fires.
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Close() // makes the handshake fail, which reports it
	})
	defer stop()
	header := http.Header{}
	header.Set("Sec-Websocket-Protocol", wire.Subprotocol)
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	socket, response, err := gws.NewClientFromConn(events, &gws.ClientOption{
		Addr:               sessionURL(c.base),
		RequestHeader:      header,
		HandshakeTimeout:   time.Hour,
		ReadMaxPayloadSize: maxServerMessageBytes,
	}, held)
	held.free.Store(true)
	if err == nil {
		return socket, nil
	}
	err = c.upgradeRefused(ctx, response, err)
	_ = conn.Close() // nothing can be lost on it
	return nil, err
}

// upgradeRefused finds the reason in the answer to the upgrade, if one came.
func (c *Client) upgradeRefused(ctx context.Context, response *http.Response, err error) error {
	if cause := gaveUp(ctx); cause != nil {
		return cause
	}
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		return &UnreachableError{URL: c.URL(), Err: fmt.Errorf("open session: %w", err)}
	}
	body, readErr := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes))
	if readErr != nil {
		// What came of the body may still be the whole error.
		body = bytes.TrimSpace(body)
	}
	return c.refusal(call{method: http.MethodGet}, response.StatusCode, body)
}
