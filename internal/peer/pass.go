package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"time"

	"codeq/wire"
)

// The headers by which a node tells the leader about the connection of a client.
const (
	headerPrefix = "Codeq-Peer-"
	// headerRemote is its address.
	headerRemote = headerPrefix + "Remote"
	// headerTLS says that it is by TLS, headerCertificate which verified certificate the client
	// has shown: DER in base64.
	headerTLS         = headerPrefix + "Tls"
	headerCertificate = headerPrefix + "Certificate"
	// headerAsks says that the node asks clients for credentials.
	headerAsks = headerPrefix + "Asks"
	// headerAgain says that a node has passed it to this one that had it from another one.
	headerAgain = headerPrefix + "Again"
)

const (
	idleAtMost = 30 * time.Second // less than that of the server, so that no request meets its end
	// lostFor is how long requests to a leader may go on after another one is known: one that
	// still runs answers them itself.
	lostFor = time.Second
)

// target is the leader as this node knows it; "" for none. ended ends when it is no longer, and
// leaving when this node stops, for sockets. replaced is closed when another target is known.
type target struct {
	node, address string
	replaced      chan struct{}
	// forEver says that no other target will be known.
	forEver        bool
	ended, leaving context.Context
	end, leave     context.CancelFunc
}

func newTarget(node, address string) *target {
	t := &target{node: node, address: address, replaced: make(chan struct{})}
	t.ended, t.end = context.WithCancel(context.Background())
	t.leaving, t.leave = context.WithCancel(t.ended)
	return t
}

// follow keeps the leader until stop is closed.
func (p *Peers) follow(node Node, stop <-chan struct{}) {
	changes, unsubscribe := node.Changes()
	defer unsubscribe()
	for {
		last := p.leader.Load()
		if id, address := node.Leader(); id != last.node || address != last.address {
			p.leader.Store(newTarget(id, address))
			close(last.replaced)
			time.AfterFunc(lostFor, last.end)
		}
		select {
		case <-changes:
		case <-stop:
			none := newTarget("", "")
			none.forEver = true
			last := p.leader.Swap(none)
			close(last.replaced)
			last.leave()
			time.AfterFunc(lostFor, last.end)
			return
		}
	}
}

// Passage is what became of a request that was to be passed.
type Passage struct {
	// Status is that of the answer of the leader, which the client has got; 0 if none came.
	Status int
	// Refusal is what the client must be answered; nil if it has an answer, or part of one.
	Refusal *wire.Error
	// Unsent says that nothing was sent, and that it can be passed again once the leader is another
	// one.
	Unsent bool
	// Broken says that the answer broke off: the connection of the client must be closed.
	Broken bool
}

// Refusals of requests that were not answered by the leader. Nobody changes them.
var (
	errNoLeader = wire.Refuse(wire.CodeNotLeader, "the cluster has no leader at this moment, and nothing was done; try again in a second")
	errNotSent  = wire.Refuse(wire.CodeNotLeader, "the leader of the cluster cannot be reached from this node, and nothing was done; try again in a second")
	errLeaving  = wire.Refuse(wire.CodeDraining, "this node of the cluster stops, and nothing was done; ask another one")
	errLost     = wire.Refuse(wire.CodeNotLeader, "the leader of the cluster was lost before it answered: it may or may not have done what was asked; "+
		"look whether it is done, or send it again if a second time does no harm")
)

// errOpen is answered to requests of a node that asks clients for credentials, by a leader that asks
// for none: whoever reaches the one would be let in by the other.
var errOpen = wire.Refuse(wire.CodeAuthUnavailable, "the leader of the cluster runs without authentication and this node with it, so nothing is passed; "+
	"start all nodes with the same tokens and providers")

type passageKey struct{}

// againKey is for requests that a node has passed: whether that had it from another one.
type againKey struct{}

// passage is one request on its way; cancel ends it, and stay keeps a socket that has ended from
// the end of this node.
type passage struct {
	Passage
	to     *target
	cancel context.CancelFunc
	stay   func() bool
}

// passing counts the requests on their way to the leader, and the connections for those of other
// nodes. Peers.mu is held.
type passing struct {
	underway, lines int
	// idle is closed when none is left; nil until somebody waits.
	idle chan struct{}
}

// passes adds n to the requests on their way.
func (p *Peers) passes(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passing.underway += n; p.passing.underway == 0 && p.passing.idle != nil {
		close(p.passing.idle)
		p.passing.idle = nil
	}
}

// awaitPassed waits until no request is on its way; they are given up by then.
func (p *Peers) awaitPassed(ctx context.Context) {
	p.mu.Lock()
	if p.passing.underway == 0 {
		p.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	p.passing.idle = idle
	p.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(lostFor + lingerFor):
	case <-ctx.Done():
	}
}

// unclosed is a body that is still there after a try in which nothing was sent. net/http closes it
// after the handler.
type unclosed struct{ io.Reader }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

// Pass passes a request to the leader and its answer to the client, sockets included.
func (p *Peers) Pass(w http.ResponseWriter, r *http.Request) (result Passage) {
	to := p.leader.Load()
	at := &passage{to: to, stay: func() bool { return false }}
	again, _ := r.Context().Value(againKey{}).(bool)
	switch {
	case to.forEver:
		return Passage{Refusal: errLeaving}
	case again, to.address == "", to.node == p.directory.self.Node:
		return Passage{Refusal: errNoLeader, Unsent: !again}
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passageKey{}, at))
	defer cancel()
	at.cancel = cancel
	p.passes(1)
	defer p.passes(-1)
	defer func() { at.stay() }()
	defer context.AfterFunc(at.to.ended, cancel)()
	defer func() {
		if failure := recover(); failure != nil {
			if err, ok := failure.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(failure)
			}
			at.Broken = true
		}
		result = at.Passage
	}()
	if r = r.WithContext(ctx); r.Body != nil && r.Body != http.NoBody {
		r.Body = unclosed{r.Body}
	}
	p.proxy.ServeHTTP(upgradable{w}, r)
	return at.Passage
}

// newProxy makes what Pass needs.
func (p *Peers) newProxy() {
	p.transport = &http.Transport{
		DialTLSContext: func(ctx context.Context, _, at string) (net.Conn, error) {
			to := p.leader.Load()
			if to.address != at {
				return nil, &dialError{errors.New("the leader has changed")}
			}
			return p.dial(ctx, overHTTP, at, to.node)
		},
		DisableCompression:    true, // answers leave as they come
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       idleAtMost,
		ExpectContinueTimeout: time.Second, // what is refused is refused before its body
	}
	p.proxy = &httputil.ReverseProxy{
		Transport:     p.transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			rewrite(r)
			if !p.open {
				r.Out.Header.Set(headerAsks, "1")
			}
		},
		ModifyResponse: func(response *http.Response) error {
			at, _ := response.Request.Context().Value(passageKey{}).(*passage)
			at.Status = response.StatusCode
			if body, ok := response.Body.(readWriteCloser); ok && response.StatusCode == http.StatusSwitchingProtocols {
				response.Body = &farewell{readWriteCloser: body}
				at.stay = context.AfterFunc(at.to.leaving, at.cancel)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			at, _ := r.Context().Value(passageKey{}).(*passage)
			var unsent *dialError
			if at.Refusal = errLost; errors.As(err, &unsent) {
				at.Refusal, at.Unsent = errNotSent, true
			}
			if at.Status == http.StatusSwitchingProtocols { // the connection is no longer one of HTTP
				at.Passage = Passage{Status: at.Status, Broken: true}
			}
		},
		// What fails here the client is told.
		ErrorLog: stdlog.New(&discard{}, "", 0),
	}
}

type discard struct{}

// Write implements io.Writer.
func (*discard) Write(line []byte) (int, error) { return len(line), nil }

// rewrite makes the request for the leader of that of a client.
func rewrite(r *httputil.ProxyRequest) {
	at, _ := r.In.Context().Value(passageKey{}).(*passage)
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", at.to.address, r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // the leader says what is wrong with it
	h := r.Out.Header
	for name := range h {
		if strings.HasPrefix(name, headerPrefix) {
			delete(h, name)
		}
	}
	// Another protocol would open a way past the checks of each request.
	if upgrade := h.Get("Upgrade"); upgrade != "" && !strings.EqualFold(upgrade, "websocket") {
		h.Del("Upgrade")
		h.Del("Connection")
	}
	h.Set(headerRemote, r.In.RemoteAddr)
	if _, passed := r.In.Context().Value(againKey{}).(bool); passed {
		h.Set(headerAgain, "1")
	}
	if r.In.TLS == nil {
		return
	}
	h.Set(headerTLS, "1")
	if len(r.In.TLS.VerifiedChains) > 0 {
		h.Set(headerCertificate, base64.StdEncoding.EncodeToString(r.In.TLS.VerifiedChains[0][0].Raw))
	}
}

// believed is a request that a node has passed, as its client sent it to that node.
func believed(r *http.Request) (*http.Request, error) {
	remote, err := netip.ParseAddrPort(r.Header.Get(headerRemote))
	if err != nil {
		return nil, errors.New("a passed request must have the address of its client in " + headerRemote)
	}
	passed := r.Clone(context.WithValue(r.Context(), againKey{}, r.Header.Get(headerAgain) != ""))
	passed.RemoteAddr, passed.TLS = remote.String(), nil
	if r.Header.Get(headerTLS) != "" {
		passed.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	if text := r.Header.Get(headerCertificate); text != "" {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil || passed.TLS == nil {
			return nil, errors.New("a passed request has a certificate that is none")
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errors.New("a passed request has a certificate that is none")
		}
		passed.TLS.PeerCertificates = []*x509.Certificate{leaf}
		passed.TLS.VerifiedChains = [][]*x509.Certificate{{leaf}}
	}
	for name := range passed.Header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(passed.Header, name)
		}
	}
	return passed, nil
}

// KnowsLeader reports whether requests can be passed.
func (p *Peers) KnowsLeader() bool {
	known, _ := p.LeaderKnown()
	return known
}

// LeaderKnown is KnowsLeader, and closes changed when it may be otherwise; changed is nil if it
// never will be.
func (p *Peers) LeaderKnown() (known bool, changed <-chan struct{}) {
	to := p.leader.Load()
	if to.forEver {
		return false, nil
	}
	return to.address != "" && to.node != p.directory.self.Node, to.replaced
}
