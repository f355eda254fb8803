package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"codeq/wire"
)

const (
	apiPath     = "/v1/codeq"
	sessionPath = apiPath + "/session"
	eventsPath  = apiPath + "/events"

	dialTimeout = 10 * time.Second
	// answerTimeout is how long a server may take until an HTTP answer begins, in
	// addition to the wait that the request itself asks for; see patience.
	answerTimeout = 30 * time.Second
)

// Client sends requests to one server. Make it with New. All methods may be called
// from any goroutine.
type Client struct {
	nodes  *nodes
	token  string
	tokens func(context.Context) (string, error)
	tenant string
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	tls    *tls.Config
	notice func(sentence string)
	http   *http.Transport
	// impatient: do not wait for a server that was never reached.
	impatient bool
	// reached: a request has been sent, so a server is or was there.
	reached atomic.Bool
}

// Option changes one thing about a Client.
type Option func(*Client)

// WithToken sends a bearer token with every request and session. White space around
// it, such as a line feed at the end of a file, is cut. The empty text is no token.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithTokens has the client ask for its token before each request and each session, for tokens that
// end, such as those of an identity provider. next is called from several goroutines, and must keep a
// token that is still good. After an error of it nothing is sent, and it is tried again as if the server
// were not there.
func WithTokens(next func(ctx context.Context) (string, error)) Option {
	return func(c *Client) { c.tokens = next }
}

// WithTenant names the tenant for which the client acts, which needs a credential with the
// scope codeq:admin:all. The empty text is the tenant of the credential.
func WithTenant(tenant string) Option { return func(c *Client) { c.tenant = tenant } }

// WithDial makes connections with dial, for HTTP and sessions. dial is called from
// several goroutines.
func WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = dial }
}

// WithTLS sets the TLS configuration for https addresses.
func WithTLS(config *tls.Config) Option { return func(c *Client) { c.tls = config } }

// WithoutWaiting returns an error at once if the server is not there at the first
// contact. Without it Work, Worker.Run, Dial, Enqueue with a Key, and every wait for a
// task or a result wait for the server, too.
func WithoutWaiting() Option { return func(c *Client) { c.impatient = true } }

// WithNotices calls notice with a sentence for people when something happens behind a
// request, a session or a worker: the server is not there, a connection is lost or made
// again, the server is full. Without it the sentences go to the default logger of
// log/slog. notice is called from several goroutines and must not block.
func WithNotices(notice func(sentence string)) Option {
	return func(c *Client) { c.notice = notice }
}

// WithLogger sends the notices to a logger, at the level Info.
func WithLogger(log *slog.Logger) Option {
	return WithNotices(func(sentence string) { log.Info(sentence, "client", "codeq") })
}

// New makes a client for the server at an address: "127.0.0.1:8080",
// "http://host:port" or "https://host/path". The nodes of a cluster are given with commas
// between: the client asks the one that leads, as soon as an answer has named it, and any
// other one if that is not there. It dials nothing; the error is about the
// address or the token. The client ignores proxies named in the environment, because
// sessions cannot use them.
func New(address string, options ...Option) (*Client, error) {
	all, err := parseNodes(address)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nodes:  all,
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
	if problem = wire.NameProblem(c.tenant, wire.MaxTenantBytes); c.tenant != "" && problem != "" {
		return nil, errors.New("the name of the tenant " + problem)
	}
	c.http = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.reach(ctx, network, address)
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

// URL is the server's address as New has read it; of several, the one that is asked now.
func (c *Client) URL() string { return c.nodes.current().String() }

// Close closes idle HTTP connections. It does not end sessions and workers.
func (c *Client) Close() { c.http.CloseIdleConnections() }
