package session

import (
	"net/http"
	"strings"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/wire"
)

// headerKey and headerProtocol are headers of an upgrade, as net/http writes them.
const (
	headerKey      = "Sec-Websocket-Key"
	headerProtocol = "Sec-Websocket-Protocol"
)

// Upgrade makes the connection of a request a session, which outlives the request. The caller
// has checked the headers of the upgrade and the credential; with a nil principal the hello
// has the credential. After a refusal the caller answers the request. Any goroutine.
func (r *Registry) Upgrade(w http.ResponseWriter, req *http.Request, principal *auth.Principal) *wire.Error {
	if refusal := r.reserve(); refusal != nil {
		return refusal
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		r.unreserve()
		r.o.Log.Debug().Err(err).Msg("session: the connection cannot be taken over")
		return wire.Refuse(wire.CodeInternal, "the connection cannot be upgraded")
	}
	s := newSession(r, newSocket(conn), principal)
	s.socket.readsFor(buffered.Reader)
	var protocols []string // the one of the answer; none if the client named none
	if strings.Contains(strings.Join(req.Header.Values(headerProtocol), ","), wire.Subprotocol) {
		protocols = []string{wire.Subprotocol}
	}
	upgrader := gws.NewUpgrader(s, &gws.ServerOption{
		ReadMaxPayloadSize:  wire.MaxClientMessageBytes,
		WriteMaxPayloadSize: maxWriteBytes,
		SubProtocols:        protocols,
		Logger:              quiet{},
	})
	// A new request, because gws would keep req, and reads header lines in fewer spellings than
	// RFC 6455 allows.
	s.conn, err = upgrader.UpgradeFromConn(s.socket, buffered.Reader, &http.Request{
		Method: http.MethodGet,
		Header: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			headerKey: {req.Header.Get(headerKey)}, headerProtocol: protocols,
		},
	})
	if err != nil {
		s.cancel()
		s.socket.cut()
		r.unreserve()
		r.o.Log.Debug().Err(err).Msg("session: upgrade failed")
		return nil // nobody reads an answer on this connection
	}
	r.start(s)
	return nil
}

// maxWriteBytes is more than the largest frame: a task with the largest payload, or the answer
// to a heartbeat that has lost every task.
const maxWriteBytes = 4 << 20

// quiet drops the log lines of gws, which would go to standard error. gws logs only for a
// Recovery function, and there is none.
type quiet struct{}

// Error implements gws.Logger.
func (quiet) Error(...any) {}
