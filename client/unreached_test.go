package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// secureServer is a server with a certificate for that name that holds until
// then, and who trusts it.
func secureServer(t *testing.T, name string, until time.Time) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was sent", r.Method, r.URL)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, pool
}

// neverSent asks in every way and makes sure that each says the same, and that
// nothing was sent, so nothing can be in doubt.
func neverSent(t *testing.T, address, want string, options ...Option) {
	t.Helper()
	for name := range asks {
		neverSentBy(t, name, address, want, options...)
	}
}

func neverSentBy(t *testing.T, name, address, want string, options ...Option) {
	t.Helper()
	c, err := New(address, append(options, WithToken("secret"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = asks[name](c)
	var nobody *UnreachableError
	if !errors.As(err, &nobody) || errors.Is(err, ErrOutcomeUnknown) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestX04ACertificateThatIsNotTrustedIsSaidToBe(t *testing.T) {
	good := time.Now().Add(time.Hour)
	server, pool := secureServer(t, "localhost", good)
	at := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	trusting := WithTLS(&tls.Config{RootCAs: pool})
	neverSent(t, at, "the certificate of "+at+" is not trusted (x509: certificate signed by unknown authority",
		WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}))
	neverSent(t, server.URL, "the certificate of "+server.URL+" is for another name (x509: cannot validate certificate for 127.0.0.1", trusting)
	old, pool := secureServer(t, "localhost", time.Now().Add(-time.Hour))
	at = strings.Replace(old.URL, "127.0.0.1", "localhost", 1)
	neverSent(t, at, "the certificate of "+at+" is not valid now (x509: certificate has expired or is not yet valid",
		WithTLS(&tls.Config{RootCAs: pool}))
	newer, pool := secureServer(t, "localhost", good)
	newer.TLS.MinVersion = tls.VersionTLS13
	at = strings.Replace(newer.URL, "127.0.0.1", "localhost", 1)
	neverSent(t, at, "no TLS connection to "+at+": remote error: tls: protocol version",
		WithTLS(&tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12}))
}

func TestX04TheWrongSchemeIsSaidToBe(t *testing.T) {
	secure, _ := secureServer(t, "localhost", time.Now().Add(time.Hour))
	at := strings.Replace(secure.URL, "https", "http", 1)
	for name := range asks {
		// Servers of Go know HTTP on a TLS port by its method, and DELETE they do
		// not know: they close the connection, and nobody can say why.
		if name != "delete" {
			neverSentBy(t, name, at, at+" wants TLS: write https:// in the address (--url)")
		}
	}
	plain := newPlace(t, false)
	at = strings.Replace(plain.URL, "http", "https", 1)
	neverSent(t, at, at+" does not speak TLS: write http:// in the address (--url)")
	alerting := takes(t, func(conn net.Conn) { _, _ = conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x46")) }) // the end follows
	neverSent(t, alerting, alerting+" wants TLS: write https:// in the address (--url)")
}

// takes is the address of somebody who does that with each connection, once
// something came over it, and ends it.
func takes(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			_, _ = conn.Read(make([]byte, 64<<10)) // all of a small request
			serve(conn)
			_ = conn.Close() // whatever the client does
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close() // only once
		<-done
	})
	return "http://" + listener.Addr().String()
}

func TestX04WhyThereIsNoConnectionIsSaid(t *testing.T) {
	fails := func(err error) Option {
		return WithDial(func(context.Context, string, string) (net.Conn, error) { return nil, err })
	}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		`no codeq server answers at http://queue.test: start one with "codeq serve"`:            dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"the name in http://queue.test was not found (lookup queue.test: no such host)":         dial(&net.DNSError{Err: "no such host", Name: "queue.test", IsNotFound: true}),
		"http://queue.test did not accept a connection in time (dial tcp: i/o timeout)":         dial(os.ErrDeadlineExceeded),
		"nothing could be sent to http://queue.test: dial tcp: connect: network is unreachable": dial(os.NewSyscallError("connect", syscall.ENETUNREACH)),
	} {
		neverSent(t, "queue.test", want, fails(err))
	}
}

// A connection that takes nothing has been sent nothing; one that takes a byte
// and ends leaves open what was done, and is not called unreachable.
func TestX04WhatWasSentIsKnownByItsBytes(t *testing.T) {
	full := WithDial(func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		_ = far.Close() // so that the first byte fails
		return near, nil
	})
	for name, ask := range asks {
		if name == "session" {
			continue // opening one does nothing, so nobody counts
		}
		c, err := New("queue.test", full)
		if err != nil {
			t.Fatal(err)
		}
		err = ask(c)
		var nobody *UnreachableError
		if !errors.As(err, &nobody) || errors.Is(err, ErrOutcomeUnknown) || !strings.HasPrefix(err.Error(), "nothing could be sent to http://queue.test: ") {
			t.Errorf("%s over a connection that takes nothing: %v", name, err)
		}
		c.Close()
		at := takes(t, func(net.Conn) {})
		err = ask(clientOf(t, at))
		want := "the connection to " + at + " ended before the answer came"
		if name == "post" || name == "put" || name == "delete" {
			want = ErrOutcomeUnknown.Error() + ": " + want
		}
		if errors.As(err, &nobody) || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s over a connection that ends: %v, want %q", name, err, want)
		}
	}
}

// Over a connection that is kept, what was written before does not count.
func TestX04AKeptConnectionIsCountedFromTheRequestOn(t *testing.T) {
	w := &watch{}
	near, far := net.Pipe()
	defer func() { _ = far.Close() }() // the end of the test
	go func() { _, _ = io.Copy(io.Discard, far) }()
	conn := &line{}
	conn.over(near)
	if _, err := conn.Write([]byte("earlier")); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if w.fate(ctx) != unreached {
		t.Error("without a connection something was sent")
	}
	w.conn, w.before = conn, conn.pace.Written()
	if w.fate(ctx) != unreached {
		t.Error("an earlier request counts")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if w.fate(ended) != broken {
		t.Error("a request that was given up while it was written counts as not sent")
	}
	if _, err := conn.Write([]byte("x")); err != nil || w.fate(ctx) != broken {
		t.Errorf("a byte does not count (%v)", err)
	}
	_ = near.Close() // the end of the test
}
