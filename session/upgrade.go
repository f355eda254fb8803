package session

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lxzan/gws"

	"codeq/auth"
	"codeq/wire"
)

// Names of the headers of the upgrade, as net/http writes them.
const (
	headerConnection = "Connection"
	headerUpgrade    = "Upgrade"
	headerVersion    = "Sec-Websocket-Version"
	headerKey        = "Sec-Websocket-Key"
	headerProtocol   = "Sec-Websocket-Protocol"

	// keyBytes is the length of the random key of an upgrade, decoded.
	keyBytes = 16
	// wsVersion is the only version of WebSocket there is.
	wsVersion = "13"
)

// ServeHTTP upgrades a request to a session, which outlives it. A refusal is an
// HTTP answer with the usual error body: whoever may not in never gets a
// socket. Only a credential that is to come in the hello is judged later.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	protocols, refusal := checkUpgrade(req)
	if refusal != nil {
		w.Header().Set(headerVersion, wsVersion)
		refuse(w, refusal)
		return
	}
	principal, refusal := r.authenticate(req)
	if refusal != nil {
		r.refused(req.RemoteAddr, req.Method+" "+req.URL.EscapedPath(), refusal)
		refuse(w, refusal)
		return
	}
	if refusal := r.reserve(); refusal != nil {
		refuse(w, refusal)
		return
	}
	if err := r.upgrade(w, req, protocols, principal); err != nil {
		r.unreserve()
		r.o.Log.Debug().Err(err).Msg("session: upgrade failed")
	}
}

// refused tells of what was refused because of who sent it.
func (r *Registry) refused(remote, what string, refusal *wire.Error) {
	if r.o.Refused != nil && auth.AboutWho(refusal) {
		r.o.Refused(auth.Attempt{Remote: remote, What: what, Refusal: refusal})
	}
}

// authenticate judges the Authorization header; nil without one.
func (r *Registry) authenticate(req *http.Request) (*auth.Principal, *wire.Error) {
	header := req.Header.Get("Authorization")
	if header == "" {
		return nil, nil
	}
	scheme, credential, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the Authorization header must be: Bearer, a space, a token")
	}
	return r.o.Auth.Authenticate(req.Context(), credential)
}

// upgrade takes the connection from net/http and starts the session on it.
func (r *Registry) upgrade(
	w http.ResponseWriter, req *http.Request, protocols []string, principal *auth.Principal,
) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, wire.Refuse(wire.CodeInternal, "the connection cannot be upgraded"))
		return fmt.Errorf("take over connection: %w", err)
	}
	s := newSession(r, newSocket(conn), principal)
	upgrader := gws.NewUpgrader(s, &gws.ServerOption{
		ReadMaxPayloadSize:  wire.MaxClientMessageBytes,
		WriteMaxPayloadSize: maxWriteBytes,
		SubProtocols:        protocols,
		Logger:              quiet{},
	})
	s.socket.readsFor(buffered.Reader)
	// Not the request itself: it would be kept, and gws reads header lines in
	// fewer spellings than the check above allows.
	s.conn, err = upgrader.UpgradeFromConn(s.socket, buffered.Reader, &http.Request{
		Method: http.MethodGet,
		Header: http.Header{
			headerConnection: {headerUpgrade},
			headerUpgrade:    {"websocket"},
			headerVersion:    {wsVersion},
			headerKey:        {req.Header.Get(headerKey)},
			headerProtocol:   protocols,
		},
	})
	if err != nil {
		s.cancel()
		s.socket.cut()
		return fmt.Errorf("upgrade connection: %w", err)
	}
	r.start(s)
	return nil
}

// maxWriteBytes is above the largest frame there is, a task with a payload at
// its limit or a heartbeat's answer that has lost everything.
const maxWriteBytes = 4 << 20

// quiet drops what gws would print to standard error. It logs only what a
// Recovery function tells it, and there is none.
type quiet struct{}

// Error implements gws.Logger.
func (quiet) Error(...any) {}

// checkUpgrade looks at everything that needs no credential. It returns the
// subprotocol to answer with, in a list for gws; none when the client named
// none.
func checkUpgrade(req *http.Request) ([]string, *wire.Error) {
	if req.Method != http.MethodGet {
		return nil, wire.Refuse(wire.CodeMethodNotAllowed, "a session is opened with GET")
	}
	if refusal := checkHandshake(req); refusal != nil {
		return nil, refusal
	}
	offered := tokens(req.Header, headerProtocol)
	if len(offered) == 0 {
		return nil, nil
	}
	if !slices.Contains(offered, wire.Subprotocol) {
		return nil, wire.Refuse(wire.CodeInvalidArgument,
			"the subprotocol must be "+wire.Subprotocol+" or left out")
	}
	return []string{wire.Subprotocol}, nil
}

// checkHandshake reads the request by the rules of RFC 6455.
func checkHandshake(req *http.Request) *wire.Error {
	bad := func(sentence string) *wire.Error { return wire.Refuse(wire.CodeInvalidArgument, sentence) }
	if req.ProtoMajor != 1 || req.ProtoMinor < 1 {
		return bad("a session is a WebSocket over HTTP/1.1, got " + req.Proto)
	}
	if !containsFold(tokens(req.Header, headerConnection), headerUpgrade) ||
		!containsFold(tokens(req.Header, headerUpgrade), "websocket") {
		return bad("a session is a WebSocket: send Connection: Upgrade and Upgrade: websocket")
	}
	if req.Header.Get(headerVersion) != wsVersion {
		return bad("Sec-WebSocket-Version must be " + wsVersion)
	}
	key, err := base64.StdEncoding.DecodeString(req.Header.Get(headerKey))
	if err != nil || len(key) != keyBytes {
		return bad("Sec-WebSocket-Key must be 16 random bytes in base64")
	}
	return nil
}

// tokens splits the values of a header that is a list, whichever way it is
// spread over lines.
func tokens(h http.Header, name string) []string {
	var all []string
	for _, line := range h.Values(name) {
		for token := range strings.SplitSeq(line, ",") {
			if token = strings.TrimSpace(token); token != "" {
				all = append(all, token)
			}
		}
	}
	return all
}

func containsFold(list []string, word string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}

// refuse answers an upgrade with an error body.
func refuse(w http.ResponseWriter, e *wire.Error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.Code == wire.CodeMethodNotAllowed {
		h.Set("Allow", http.MethodGet)
	}
	if e.Code == wire.CodeUnauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfterSeconds))
	}
	w.WriteHeader(e.Code.HTTPStatus())
	_, _ = w.Write(wire.AppendError(nil, e)) // the client is gone, and it is all that there was to do
}
