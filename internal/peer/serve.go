package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"codeq/wire"
)

const (
	readHeaderFor = 5 * time.Second
	idleFor       = 120 * time.Second
	// A passed request has the headers of its client, and a certificate.
	maxHeaderBytes = 64 << 10
)

// Serve begins to serve requests that other nodes pass, with h, to follow the leader, and to
// answer nodes and machines that join. It returns what ends that.
func (p *Peers) Serve(h http.Handler, node Node) (stop func(context.Context) error) {
	p.mu.Lock()
	p.node = node
	p.mu.Unlock()
	stopped := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	passed := p.newServer(p.fromNode(h))
	nodes := p.newServer(p.fromPeers())
	nodes.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, nodeKey{}, conn.(*hidden).node)
	}
	p.running.Go(func() { p.serve(passed, p.passed) })
	p.running.Go(func() { p.serve(nodes, p.nodes) })
	p.running.Go(func() { p.follow(node, stopped) })
	p.running.Go(func() { p.look(node, stopped) })
	p.running.Go(func() { p.askToBeMember(ctx, node) })
	return func(within context.Context) error {
		close(stopped)
		cancel()
		err := errors.Join(passed.Shutdown(within), nodes.Shutdown(within))
		p.awaitPassed(within)
		return err
	}
}

func (p *Peers) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderFor, IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: stdlog.New(lineLog{p}, "", 0), DisableGeneralOptionsHandler: true,
	}
}

func (p *Peers) serve(s *http.Server, on *lane) {
	if err := s.Serve(on); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		p.log.Error().Err(err).Msg("requests of other nodes are not served any more")
	}
}

// lineLog writes the lines of net/http into the log.
type lineLog struct{ p *Peers }

// Write implements io.Writer.
func (l lineLog) Write(line []byte) (int, error) {
	l.p.refusals.Warn().Str("from", "net/http").Bytes("line", line).Msg("port of the nodes")
	return len(line), nil
}

// fromNode serves requests that a member has passed.
func (p *Peers) fromNode(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.open && r.Header.Get(headerAsks) != "" {
			answerJSON(w, http.StatusServiceUnavailable, wire.AppendError(nil, errOpen))
			return
		}
		passed, err := believed(r)
		if node := r.TLS.PeerCertificates[0].DNSNames[0]; !p.isMember(node) {
			err = fmt.Errorf("the node %s is no member of the cluster, and passes no requests", node)
		}
		if err != nil {
			p.refusals.Warn().Err(err).Msg("a request that a node has passed was refused")
			answerJSON(w, http.StatusBadRequest, wire.AppendError(nil, wire.Refuse(wire.CodeInvalidArgument, err.Error())))
			return
		}
		h.ServeHTTP(w, passed)
	})
}

type nodeKey struct{}

// fromPeers answers nodes, and machines that join.
func (p *Peers) fromPeers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		node, _ := r.Context().Value(nodeKey{}).(string)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err != nil {
			return // nobody waits for an answer
		}
		answer, err := p.answer(r, node, body)
		status := http.StatusOK
		if err != nil {
			status = http.StatusConflict
			said := refused{Error: err.Error()}
			var full *refusedError
			if errors.As(err, &full) {
				said = full.refused
			}
			answer = said
			level := zerolog.DebugLevel // the node that asks has a line, too
			if node == "" {
				level = zerolog.WarnLevel
			}
			p.refusals.WithLevel(level).Str("remote", r.RemoteAddr).Str("node", node).Str("path", r.URL.Path).Err(err).Msg("a request of a node was refused")
		}
		text, err := json.Marshal(answer)
		if err != nil {
			panic(fmt.Sprintf("peer: write an answer: %v", err))
		}
		answerJSON(w, status, text)
	})
}

// answer answers a request of a node, or of a machine that joins, which is no node.
func (p *Peers) answer(r *http.Request, node string, body []byte) (any, error) {
	switch {
	case r.URL.Path == "/join" && node == "":
		return p.grant(body)
	case r.URL.Path == "/status" && node != "":
		asked := question{}
		if err := json.Unmarshal(body, &asked); err != nil {
			return nil, errors.New("the request for the status is not in its form")
		}
		p.isAsked(node, asked)
		said := p.node.About()
		said.NowMs, said.Form, said.Asks = p.looks.nowMs(), p.form, !p.open
		return said, nil
	case r.URL.Path == "/members" && node != "":
		asked := &member{}
		if err := json.Unmarshal(body, asked); err != nil {
			return nil, errors.New("the request to be a member is not in its form")
		}
		return struct{}{}, p.addMember(r.Context(), node, asked)
	}
	return nil, errors.New("the port of the nodes has nothing at this path")
}

func answerJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that has left misses nothing
}

// askToBeMember asks until this node is a voter; the first node of a cluster is one.
func (p *Peers) askToBeMember(ctx context.Context, node Node) {
	self := p.Self()
	client := p.client("")
	said := ""
	for i := 0; len(p.directory.others) > 0 && !p.votes(self.Node); i++ {
		at := p.directory.others[i%len(p.directory.others)]
		asks := member{self.Address, node.LastLog()}
		err := post(ctx, client, at+"/members", asks, &struct{}{})
		var full *refusedError
		if errors.As(err, &full) && full.Leader != "" {
			at = full.Leader
			err = post(ctx, client, at+"/members", asks, &struct{}{})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			p.log.Warn().Str("asked", at).Err(err).Msg("this node does not vote in the cluster yet; it asks again")
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return
		}
	}
}
