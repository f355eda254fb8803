package socket

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"

	"github.com/lxzan/gws"
)

// headerKey and headerProtocol are headers of an upgrade, as net/http writes them.
const (
	headerKey      = "Sec-Websocket-Key"
	headerProtocol = "Sec-Websocket-Protocol"
	// headerLeader is a header of the answer that the caller may have set.
	headerLeader = "Codeq-Leader"
)

// Protocol is what a server speaks over a socket.
type Protocol struct {
	// Name is the subprotocol.
	Name string
	// MaxRead and MaxWrite bound messages, in bytes.
	MaxRead, MaxWrite int
}

// Take takes the connection of a request over. The caller closes it.
func Take(w http.ResponseWriter) (*Socket, *bufio.Reader, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over a connection: %w", err)
	}
	s := New(conn)
	s.leader = w.Header()[headerLeader]
	s.readsFor(buffered.Reader)
	return s, buffered.Reader, nil
}

// Upgrade answers an upgrade whose headers the caller has checked.
func (s *Socket) Upgrade(buffered *bufio.Reader, req *http.Request, handler gws.Event, p Protocol) (*gws.Conn, error) {
	var protocols []string // the one of the answer; none if the client named none
	if strings.Contains(strings.Join(req.Header.Values(headerProtocol), ","), p.Name) {
		protocols = []string{p.Name}
	}
	answers := http.Header{}
	if len(s.leader) > 0 {
		answers[headerLeader] = s.leader
	}
	upgrader := gws.NewUpgrader(handler, &gws.ServerOption{
		ReadMaxPayloadSize: p.MaxRead, WriteMaxPayloadSize: p.MaxWrite, SubProtocols: protocols, Logger: quiet{}, ResponseHeader: answers,
	})
	// A new request, because gws would keep req, and reads header lines in fewer spellings than
	// RFC 6455 allows.
	conn, err := upgrader.UpgradeFromConn(s, buffered, &http.Request{
		Method: http.MethodGet,
		Header: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			headerKey: {req.Header.Get(headerKey)}, headerProtocol: protocols,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("upgrade a connection: %w", err)
	}
	return conn, nil
}

// ReadLoop runs gws until the socket ends. It recovers from a panic of gws, which a hostile frame
// header can cause, calls broken with it and closes the socket with CloseProtocol, as gws does for
// a frame that it refuses. While a handler of the caller runs, inHandler is true, and a panic of the
// handler ends the process.
func (s *Socket) ReadLoop(conn *gws.Conn, inHandler *bool, broken func(p any)) {
	defer func() {
		if *inHandler {
			return
		}
		if p := recover(); p != nil {
			broken(p)
			if conn.WriteClose(CloseProtocol, []byte("a frame cannot be read")) != nil {
				s.Cut()
			}
		}
	}()
	conn.ReadLoop()
}

// quiet drops the log lines of gws, which would go to standard error. gws logs only for a
// Recovery function, and there is none.
type quiet struct{}

// Error implements gws.Logger.
func (quiet) Error(...any) {}
