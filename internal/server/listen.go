package server

import (
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// Timeouts and sizes of the HTTP server. It has no read or write timeout for a whole
// request: both would end sessions. httpapi sets timeouts for each request.
const (
	readHeaderFor  = 5 * time.Second
	idleFor        = 120 * time.Second
	maxHeaderBytes = 16 << 10
	// maxStreams bounds the requests at a time on one connection of HTTP/2.
	maxStreams = 100
)

// listen listens on the address. The error is one sentence with the reason and the remedy.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	var name *net.DNSError
	var spelling *net.AddrError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen address %s is in use: stop the program that holds it, or choose another with --listen: %w", addr, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen address %s is not allowed to this user: choose a port above 1023 with --listen: %w", addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen address %s is none of this machine: choose one that is with --listen: %w", addr, err)
	case errors.As(err, &spelling), errors.As(err, &name) && name.Err == "unknown port":
		return nil, fmt.Errorf("listen address %s has no port from 0 to 65535: choose one with --listen: %w", addr, err)
	case errors.As(err, &name):
		return nil, fmt.Errorf("listen address %s has a name that this machine cannot resolve: choose an address of this machine with --listen: %w", addr, err)
	}
	return nil, fmt.Errorf("listen on %s: %w", addr, err)
}

// newHTTPServer speaks HTTP/1.1, and HTTP/2 to those clients that choose it by TLS. Sessions
// are on HTTP/1.1.
func newHTTPServer(handler http.Handler, open *conns, log zerolog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderFor,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnContext:       withConn,
		ConnState: func(conn net.Conn, state http.ConnState) {
			open.setState(conn, state)
			putIdle(conn, state)
		},
		// Strangers cause its lines, such as those about handshakes.
		ErrorLog: stdlog.New(warnings{atMost(log, refusedAtOnce, time.Second)}, "", 0),
		// "OPTIONS *" is answered like every other unknown path.
		DisableGeneralOptionsHandler: true,
	}
}

// warnings writes the log lines of net/http into the log of the server.
type warnings struct{ log zerolog.Logger }

// Write implements io.Writer.
func (w warnings) Write(line []byte) (int, error) {
	w.log.Warn().Str("from", "net/http").Bytes("line", line).Msg("http server")
	return len(line), nil
}
