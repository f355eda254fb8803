package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"codeq/wire"
)

const (
	apiPath     = "/v1/codeq"
	sessionPath = apiPath + "/session"

	dialTimeout = 10 * time.Second
	// answerTimeout is how long a server may take until an HTTP answer begins,
	// beyond the waiting that the request itself asked for; see patience.
	answerTimeout = 30 * time.Second
)

// Client knows one server and how to speak to it. New makes it; all methods
// may be called from any goroutine.
type Client struct {
	base   *url.URL
	token  string
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	tls    *tls.Config
	notice func(sentence string)
	http   *http.Transport
	// impatient: there is no waiting for a server that was not reached yet.
	impatient bool
	// reached: a request has been sent, so somebody is or was there.
	reached atomic.Bool
}

// Option changes one thing about a Client.
type Option func(*Client)

// WithToken sends a bearer token with every request and session. White space
// around it, as at the end of a file, is cut; "" is none.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithDial replaces the way connections are made, for HTTP and sessions.
func WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = dial }
}

// WithTLS sets the TLS configuration for https addresses.
func WithTLS(config *tls.Config) Option { return func(c *Client) { c.tls = config } }

// WithoutWaiting makes an error at once of a server that is not there, the first
// time. Without it Work, a Worker, Dial, Enqueue with a Key, and whatever waits for
// a task or a result, wait for the server, too.
func WithoutWaiting() Option { return func(c *Client) { c.impatient = true } }

// WithNotices passes sentences for people about what goes on behind a request, a
// session or a worker: a server that is not there, a connection lost and found
// again, a server that is full. Without it they go to the default logger of
// log/slog. It is called from the goroutine concerned, by Work also from that of a
// handler, and must not block.
func WithNotices(notice func(sentence string)) Option {
	return func(c *Client) { c.notice = notice }
}

// New makes a client of the server at that address: "127.0.0.1:8080",
// "http://host:port" or "https://host/path". Nothing is dialled yet; the error
// is a sentence about the address or the token. Proxies named in the environment are not
// used, because sessions could not follow them.
func New(address string, options ...Option) (*Client, error) {
	base, err := parseBase(address)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base:   base,
		dial:   (&net.Dialer{Timeout: dialTimeout}).DialContext,
		tls:    &tls.Config{},
		notice: func(sentence string) { slog.Info(sentence, "client", "codeq") },
	}
	for _, option := range options {
		option(c)
	}
	var problem string
	if c.token, problem = wire.ParseCredential(c.token); problem != "" {
		return nil, errors.New("the token " + problem)
	}
	c.http = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l := &line{}
			l.over(conn)
			return l, nil
		},
		TLSClientConfig:     c.tls.Clone(),
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}
	return c, nil
}

// URL is the server's address as the client understood it.
func (c *Client) URL() string { return c.base.String() }

// Close lets go of idle HTTP connections. Sessions and workers end by
// themselves.
func (c *Client) Close() { c.http.CloseIdleConnections() }
