package session

import (
	"net/http"

	"codeq/internal/auth"
	"codeq/internal/socket"
	"codeq/wire"
)

// Upgrade makes the connection of a request a session, which outlives the request. The caller
// has checked the headers of the upgrade and the credential; with a nil principal the hello
// has the credential. A credential of a hello acts for the tenant that the upgrade names. After a refusal the caller answers the request. Any goroutine.
func (r *Registry) Upgrade(w http.ResponseWriter, req *http.Request, principal *auth.Principal) *wire.Error {
	if refusal := r.reserve(); refusal != nil {
		return refusal
	}
	conn, buffered, err := socket.Take(w)
	if err != nil {
		r.unreserve()
		r.o.Log.Debug().Err(err).Msg("session: the connection cannot be taken over")
		return wire.Refuse(wire.CodeInternal, "the connection cannot be upgraded")
	}
	s := newSession(r, conn, principal)
	s.tenant = req.Header.Get(auth.HeaderTenant)
	s.conn, err = conn.Upgrade(buffered, req, s, socket.Protocol{
		Name: wire.Subprotocol, MaxRead: wire.MaxClientMessageBytes, MaxWrite: maxWriteBytes,
	})
	if err != nil {
		s.cancel()
		s.socket.Cut()
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
