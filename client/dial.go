package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lxzan/gws"

	"codeq/internal/paced"
	"codeq/wire"
)

// connect makes one link: dial, upgrade, hello, welcome. The end of ctx ends it. The error
// is an *UnreachableError, a *wire.Error, or a sentence.
func (c *Client) connect(ctx context.Context, d *dialect, hello *wire.Hello) (l *link, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout+helloTimeout, errMute)
	defer cancel()
	err = c.nodes.each(ctx, notDone, func(base *url.URL) (err error) {
		for moves := 0; ; moves++ {
			if l, err = c.linkTo(ctx, d, base); err != nil || moves == maxHops || !c.nodes.leads(base, l.leader) {
				break
			}
			l.close()
			base = c.nodes.current()
		}
		if err == nil {
			err = l.greet(ctx, hello)
		}
		c.nodes.lost(base, err)
		if err != nil && l != nil {
			l.close()
			l = nil
		}
		return err
	})
	return l, err
}

// linkTo opens a socket at one of the addresses, which has said nothing yet.
func (c *Client) linkTo(ctx context.Context, d *dialect, base *url.URL) (*link, error) {
	at, err := url.Parse(base.String() + d.path)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	l := newLink(d)
	for hops := 0; l.conn == nil; hops++ {
		socket, next, err := c.upgrade(ctx, at, hops, l)
		if err != nil {
			return nil, err
		}
		if socket != nil {
			l.start(socket)
		}
		at = next
	}
	return l, nil
}

// adopt sets the limit of a server that states none.
func (l *link) adopt() {
	if l.welcome.MaxUnanswered <= 0 {
		l.welcome.MaxUnanswered = wire.MaxUnansweredRequests
	}
}

// line is the connection of a session or of requests, below TLS, because TLS does not
// survive a write that timed out. A write goes on while the server takes any of it, and
// each piece that comes is a sign of life.
type line struct {
	net.Conn
	pace *paced.Writer
	// heard is called for each piece once a session is open.
	heard func()
	open  atomic.Bool
}

// over puts the line over a connection.
func (l *line) over(raw net.Conn) {
	l.Conn, l.pace = raw, paced.NewWriter(raw)
	l.pace.Window = writeWindow
}

// Read implements net.Conn.
func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 && l.open.Load() {
		l.heard()
	}
	return n, err
}

// Write implements net.Conn.
func (l *line) Write(p []byte) (int, error) { return l.pace.Write(p) }

// dialSocket makes the connection below l, and TLS over it for https.
func (c *Client) dialSocket(ctx context.Context, at *url.URL, l *line) (net.Conn, error) {
	raw, err := c.reach(ctx, "tcp", hostPort(at))
	if err != nil {
		return nil, err
	}
	l.over(raw)
	if at.Scheme != "https" {
		return l, nil
	}
	config := c.tls.Clone()
	config.NextProtos = []string{"http/1.1"} // an upgrade is not possible over HTTP/2
	if config.ServerName == "" {
		config.ServerName = at.Hostname()
	}
	secured := tls.Client(l, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = l.Close() // the handshake's error is the one that counts
		return nil, err
	}
	return secured, nil
}

// alert is why a server closed a connection of TLS before it answered: the alert that refuses
// the certificate of this client comes after the handshake, and is lost when the request is
// written to the closed socket. It asks once more and waits for the alert alone. It returns
// err if there is none.
func (c *Client) alert(ctx context.Context, at *url.URL, err error) error {
	if at.Scheme != "https" || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	conn, dialErr := c.dialSocket(ctx, at, &line{})
	if dialErr != nil {
		return err
	}
	defer func() {
		_ = conn.Close() // nothing was sent on it
	}()
	if deadlineErr := conn.SetReadDeadline(time.Now().Add(alertTimeout)); deadlineErr != nil {
		return err
	}
	if _, said := conn.Read(make([]byte, 1)); said != nil && refusesCertificate(said) {
		return said
	}
	return err
}

// alertTimeout is for how long alert waits.
const alertTimeout = 500 * time.Millisecond

// heldConn keeps a connection open until free is set: gws closes it when an upgrade is
// refused, before the client has read why.
type heldConn struct {
	net.Conn
	free atomic.Bool
}

// Close does nothing until free is set.
func (h *heldConn) Close() error {
	if !h.free.Load() {
		return nil
	}
	return h.Conn.Close()
}

// upgrade opens a WebSocket at an address, or returns the address of a redirect.
func (c *Client) upgrade(ctx context.Context, at *url.URL, hops int, l *link) (*gws.Conn, *url.URL, error) {
	header := http.Header{}
	header.Set("Sec-Websocket-Protocol", l.subprotocol)
	if err := c.authorize(ctx, header, at); err != nil {
		return nil, nil, err
	}
	below := &line{heard: l.expectSign}
	conn, err := c.dialSocket(ctx, at, below)
	if err != nil {
		return nil, nil, noAnswer(ctx, baseOf(at, l.path), unreached, err)
	}
	held := &heldConn{Conn: conn}
	// The end of ctx closes the connection. gws's own timer is set beyond it,
	// because it leaves a goroutine behind when it fires.
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Close() // makes the handshake fail, which reports it
	})
	defer stop()
	socket, response, err := gws.NewClientFromConn(l, &gws.ClientOption{
		Addr:               socketURL(at),
		RequestHeader:      header,
		HandshakeTimeout:   time.Hour,
		ReadMaxPayloadSize: maxServerMessageBytes,
	}, held)
	held.free.Store(true)
	if err == nil {
		below.open.Store(true)
		l.leader = response.Header.Get(leaderHeader)
		return socket, nil, nil
	}
	defer func() {
		_ = conn.Close() // nothing can be lost on it
	}()
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols || ctx.Err() != nil {
		return nil, nil, noAnswer(ctx, baseOf(at, l.path), broken, fmt.Errorf("open session: %w", c.alert(ctx, at, err)))
	}
	next, err := c.sentOn(at, response, l.path, hops)
	if next == nil && err == nil {
		err = blameTheWay(c.refusal(at, l.path, response))
	}
	return nil, next, err
}

// blameTheWay adds a remedy if the request for a session was refused for its form, which
// is right when it leaves this client.
func blameTheWay(err error) error {
	var refusal *wire.Error
	if errors.As(err, &refusal) && refusal.Code == wire.CodeInvalidArgument || fateOf(err) == foreign {
		return fmt.Errorf("%w; this client has asked for a WebSocket in the right form, so a proxy on the way may have removed part of it: "+
			"have the proxy pass WebSockets, with the headers Connection and Upgrade", err)
	}
	return err
}
