package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"codeq/internal/paced"
)

// The protocols of the port, by their names in ALPN.
const (
	// overRaft is the replicated log.
	overRaft = "codeq-raft"
	// overHTTP are requests of clients that a node passes to the leader.
	overHTTP = "http/1.1"
	// overNodes are requests of nodes, overJoin those of machines that have no certificate yet.
	overNodes = "codeq-peer"
	overJoin  = "codeq-join"
)

const (
	dialFor      = 5 * time.Second
	handshakeFor = 5 * time.Second
	// mostHandshakes bounds the handshakes at a time, which strangers can begin.
	mostHandshakes = 128
	// acceptPause is the pause after an error of accept, which is one of the system.
	acceptPause = 50 * time.Millisecond
)

// lane is the part of the port with one protocol: a net.Listener.
type lane struct {
	port   *Peers
	in     chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *lane) Accept() (net.Conn, error) {
	select {
	case conn := <-l.in:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The port stays open for the other protocols.
func (l *lane) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *lane) Addr() net.Addr { return address(l.port.directory.self.Address) }

// address is the address of this node as others know it.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// line is a connection of the port below TLS.
type line struct {
	*net.TCPConn
	port *Peers
	node string
	// pace is set before the first write of what goes over the connection, for all but the
	// log, which has times of its own.
	pace *paced.Writer
	// passes: it is for what a node passes.
	passes bool
}

// Write implements net.Conn.
func (l *line) Write(p []byte) (int, error) {
	if l.pace == nil {
		return l.TCPConn.Write(p)
	}
	return l.pace.Write(p)
}

// Pace is the writer of the connection; a session writes by it.
func (l *line) Pace() *paced.Writer { return l.pace }

// Close implements net.Conn.
func (l *line) Close() error {
	l.port.mu.Lock()
	if l.passes && l.port.lines[l] {
		l.port.passing.lines--
	}
	delete(l.port.lines, l)
	l.port.mu.Unlock()
	return l.TCPConn.Close()
}

// hidden is a connection by TLS that net/http takes for a plain one: it would close one whose
// protocol it does not know.
type hidden struct {
	net.Conn
	node string
}

// accept is the goroutine of the port.
func (p *Peers) accept() {
	for {
		conn, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			p.log.Warn().Err(err).Msg("the port of the nodes accepts no connection for a moment")
			select {
			case <-time.After(acceptPause):
			case <-p.closing:
			}
			continue
		}
		select {
		case p.handshakes <- struct{}{}:
			p.running.Go(func() { p.greet(conn.(*net.TCPConn)) })
		case <-p.closing:
			_ = conn.Close() // nothing was sent on it
		}
	}
}

// greet does the handshake of a connection and hands it to its protocol.
func (p *Peers) greet(raw *net.TCPConn) {
	below, secured, err := p.welcome(raw)
	<-p.handshakes
	if err != nil {
		_ = raw.Close() // the error of the handshake is the one that counts
		p.refusals.Warn().Stringer("remote", raw.RemoteAddr()).Err(err).Msg("a connection of the port of the nodes was refused")
		return
	}
	conn, to := net.Conn(secured), p.raft
	switch secured.ConnectionState().NegotiatedProtocol {
	case overRaft:
	case overHTTP:
		to, below.pace, below.passes = p.passed, paced.NewWriter(raw), true
	default:
		to, below.pace = p.nodes, paced.NewWriter(raw)
		conn = &hidden{secured, below.node}
	}
	if !p.hold(below) {
		_ = raw.Close() // nothing was sent on it
		return
	}
	select {
	case to.in <- conn:
	case <-to.closed:
		_ = below.Close() // nothing was sent on it
	}
}

func (p *Peers) welcome(raw *net.TCPConn) (*line, *tls.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeFor)
	defer cancel()
	below := &line{TCPConn: raw, port: p}
	secured := tls.Server(below, p.serverTLS())
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("handshake: %w", err)
	}
	state := secured.ConnectionState()
	if state.NegotiatedProtocol == overJoin {
		return below, secured, nil
	}
	var err error
	below.node, err = p.directory.authority.nodeOf(state.PeerCertificates, time.Now())
	return below, secured, err
}

// hold keeps an open connection, so that Cut and Close reach it; false once the port is closed, if
// its node was removed since the handshake, or if there are too many.
func (p *Peers) hold(l *line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.removed(l.node) || l.passes && p.mostPassed > 0 && p.passing.lines >= p.mostPassed {
		return false
	}
	if l.passes {
		p.passing.lines++
	}
	p.lines[l] = true
	return true
}

// serverTLS is the configuration of this side of an accepted connection.
func (p *Peers) serverTLS() *tls.Config {
	nodes := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{overRaft, overHTTP, overNodes},
		ClientAuth:             tls.RequireAnyClientCert, // verified by check
		SessionTicketsDisabled: true,
		VerifyConnection:       func(state tls.ConnectionState) error { return p.check(&state, "") },
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.shown(), nil },
	}
	joins := nodes.Clone()
	joins.NextProtos, joins.ClientAuth, joins.VerifyConnection = []string{overJoin}, tls.NoClientCert, nil
	nodes.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Equal(hello.SupportedProtos, joins.NextProtos) {
			return joins, nil
		}
		return nil, nil
	}
	return nodes
}

// shown is the certificate of this node with that of its authority, which a machine that joins
// needs.
func (p *Peers) shown() *tls.Certificate {
	pair := *p.directory.certificate()
	pair.Certificate = append(slices.Clone(pair.Certificate), p.directory.authority.certificate.Raw)
	return &pair
}

// check is what a connection needs besides TLS: a protocol, and the certificate of a node that
// may talk to this one; that of want, if that is not "".
func (p *Peers) check(state *tls.ConnectionState, want string) error {
	if state.NegotiatedProtocol == "" {
		return errors.New("the other side has named no protocol of the port of the nodes")
	}
	node, err := p.directory.authority.nodeOf(state.PeerCertificates, time.Now())
	switch {
	case err != nil:
		return err
	case node == p.directory.self.Node:
		return fmt.Errorf("the other side is the node %s, as this one is: one of their directories is a copy of the other", node)
	case want != "" && node != want:
		return fmt.Errorf("the node at this address is %s, and not %s", node, want)
	}
	return p.admit(node)
}

// admit refuses nodes that were members and are not any more. One that was never seen is
// admitted: this node may be the one that has not heard of it yet.
func (p *Peers) admit(node string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed(node) {
		return fmt.Errorf("the node %s was removed from the cluster", node)
	}
	return nil
}

// removed reports whether a node was a member and is not any more. p.mu is held.
func (p *Peers) removed(node string) bool {
	return p.seen[node] && !slices.ContainsFunc(p.roster(), func(m Member) bool { return m.Node == node })
}

// roster are the members that this node knows of, nil before it knows any. p.mu is held.
func (p *Peers) roster() []Member {
	if p.node == nil {
		return nil
	}
	members := p.node.Members()
	for _, m := range members {
		p.seen[m.Node] = true
	}
	return members
}

// members are those of roster.
func (p *Peers) members() []Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roster()
}

// isMember reports whether a node is one of the members that this node knows of.
func (p *Peers) isMember(node string) bool {
	return slices.ContainsFunc(p.members(), func(m Member) bool { return m.Node == node })
}

// votes reports whether a node is one of the voters that this node knows of.
func (p *Peers) votes(node string) bool {
	return slices.ContainsFunc(p.members(), func(m Member) bool { return m.Node == node && m.Voter })
}

// Cut closes the connections of a node that was removed.
func (p *Peers) Cut(node string) {
	p.mu.Lock()
	p.seen[node] = true
	var theirs []*line
	for l := range p.lines {
		if l.node == node {
			theirs = append(theirs, l)
		}
	}
	p.mu.Unlock()
	for _, l := range theirs {
		_ = l.Close() // it was cut on purpose
	}
}

// dial makes a connection to the node want at an address, to any if want is "".
func (p *Peers) dial(ctx context.Context, protocol, at, want string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, &dialError{err}
	}
	secured := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protocol},
		// VerifyConnection verifies: a node is known by its id and not by its address.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return p.check(&state, want) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return p.directory.certificate(), nil
		},
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the error of the handshake is the one that counts
		return nil, &dialError{err}
	}
	return secured, nil
}

// dialError is the error of a connection over which nothing was sent.
type dialError struct{ error }

// Unwrap is the error of the network or of TLS.
func (e *dialError) Unwrap() error { return e.error }

// Raft is the part of the port for the replicated log: a net.Listener that also dials.
type Raft struct{ *lane }

// Dial makes a connection to the node at an address.
func (r Raft) Dial(at string, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return r.port.dial(ctx, overRaft, at, "")
}

// closeAll closes the port and its connections.
func (p *Peers) closeAll() error {
	err := p.listener.Close()
	for _, l := range []*lane{p.raft, p.passed, p.nodes} {
		_ = l.Close() // it never fails
	}
	p.mu.Lock()
	p.closed = true
	open := make([]*line, 0, len(p.lines))
	for l := range p.lines {
		open = append(open, l)
	}
	p.mu.Unlock()
	for _, l := range open {
		_ = l.Close() // what was to be sent is given up
	}
	return err
}
