package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
)

// UnreachableError means that nothing was sent, so the server has done nothing: there was
// no connection to the address, or none that can be trusted.
type UnreachableError struct {
	// URL is the address of the server.
	URL string
	// Err is the error of the network or of TLS.
	Err error
}

// errPlainToTLS is the cause if the client spoke http to a port of https.
var errPlainToTLS = errors.New("the client spoke http to a port of https")

// Error is a sentence with the cause and the remedy.
func (e *UnreachableError) Error() string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var host *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no codeq server answers at %s: start one with \"codeq serve\", or give another address (--url)", e.URL)
	case errors.As(e.Err, &unknown):
		return fmt.Sprintf("the certificate of %s is not trusted (%v): name its issuer with --ca, or add it to the certificates that this machine trusts", e.URL, unknown)
	case errors.As(e.Err, &name):
		return fmt.Sprintf("the certificate of %s is for another name (%v): give an address (--url) with a name of the certificate", e.URL, name)
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is not valid now (%v): the server needs a new one, or a clock is wrong", e.URL, invalid)
	case refusesCertificate(e.Err):
		return fmt.Sprintf("%s refuses the certificate of this client, or wants one (%v): give one of an issuer that the server trusts (--client-cert)", e.URL, e.Err)
	case errors.Is(e.Err, errPlainToTLS):
		return fmt.Sprintf("%s wants TLS: write https:// in the address (--url)", e.URL)
	case isPlain(e.Err):
		return fmt.Sprintf("%s does not speak TLS: write http:// in the address (--url)", e.URL)
	case isTLS(e.Err):
		return fmt.Sprintf("no TLS connection to %s: %v", e.URL, e.Err)
	case errors.As(e.Err, &host):
		return fmt.Sprintf("the name in %s was not found (%v): give another address (--url), or check the name server", e.URL, host)
	case errors.As(e.Err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("%s did not accept a connection in time (%v): check the address, and firewalls on the way", e.URL, e.Err)
	}
	return fmt.Sprintf("nothing could be sent to %s: %v", e.URL, e.Err)
}

// Unwrap is the error of the network or of TLS.
func (e *UnreachableError) Unwrap() error { return e.Err }

// isPlain reports the error of a TLS handshake with a peer that does not speak TLS.
func isPlain(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)
}

// isTLS reports an error that the TLS handshake itself found, and not the network.
func isTLS(err error) bool { return strings.Contains(err.Error(), "tls: ") }

// refusesCertificate reports that the handshake failed at the certificate of the client. With TLS
// 1.3 the client hears so in place of an answer; the server has not read a request then.
func refusesCertificate(err error) bool {
	said := err.Error()
	return strings.Contains(said, "remote error: tls: ") && strings.Contains(said, "certificate")
}

// speaksTLS reports the answer of a TLS server to plain HTTP: a sentence of its own, or an
// alert, which is not HTTP.
func speaksTLS(said string) bool {
	for _, part := range []string{
		"HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port",
		"speaking plain HTTP to an SSL-enabled server", `malformed HTTP response "\x15\x03`,
	} {
		if strings.Contains(said, part) {
			return true
		}
	}
	return false
}

func mistrust(at string, err error) error {
	return &failed{error: &UnreachableError{URL: at, Err: err}, how: mistrusted}
}

// noAnswer is the error of a request that got no whole answer; how is unreached, broken or
// cutShort. If the caller's context has ended, its cause is the reason.
func noAnswer(ctx context.Context, at string, how fate, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errMute) && how != unreached:
		err = fmt.Errorf("%s took the request: %w", at, cause)
	case cause != nil && !errors.Is(cause, errMute):
		err = fmt.Errorf("ask %s: %w", at, cause)
	case speaksTLS(err.Error()):
		return mistrust(at, errPlainToTLS)
	case refusesCertificate(err):
		return mistrust(at, err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		err = fmt.Errorf("%s did not answer in HTTP (%w): is it a codeq server?", at, err)
	case how == broken:
		err = fmt.Errorf("the connection to %s ended before the answer came: %w", at, err)
	case how == cutShort:
		err = fmt.Errorf("the answer of %s broke off: %w", at, err)
	case isTLS(err):
		return mistrust(at, err)
	default:
		err = &UnreachableError{URL: at, Err: err}
	}
	return &failed{error: err, how: how}
}

// watch learns over which connection a request goes, whether any byte of it was sent, and
// whether any byte of the answer came.
type watch struct {
	conn     *line
	before   int64
	began    atomic.Bool
	patience *patience
}

// on is the context of the request to watch.
func (w *watch) on(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			conn := got.Conn
			if secured, ok := conn.(*tls.Conn); ok {
				conn = secured.NetConn()
			}
			if w.conn, _ = conn.(*line); w.conn != nil {
				w.before = w.conn.pace.Written()
			}
			w.patience.sends()
		},
		WroteRequest: func(httptrace.WroteRequestInfo) {
			if !w.began.Load() {
				w.patience.awaits()
			}
		},
		GotFirstResponseByte: func() {
			w.began.Store(true)
			w.patience.comes()
		},
	})
}

// fate is how a request without an answer ended. A request that ctx ended may still be
// written after that, so it counts as sent.
func (w *watch) fate(ctx context.Context) fate {
	switch {
	case w.began.Load():
		return cutShort
	case w.conn != nil && (ctx.Err() != nil || w.conn.pace.Written() > w.before):
		return broken
	}
	return unreached
}
