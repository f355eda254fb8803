package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"github.com/rs/zerolog"

	"codeq/client"
	"codeq/internal/auth"
	"codeq/test/blackbox"
	"codeq/wire"
)

// secured is a server that speaks TLS, and its issuer.
type secured struct {
	*site
	authority *blackbox.Authority
	files     TLSFiles
	log       *lockedBuffer
}

// openSecured opens a server whose certificate is for 127.0.0.1, with a token file and certificates
// of clients if f is not nil.
func openSecured(t *testing.T, f *tokenFile, least uint16) *secured {
	t.Helper()
	x := &secured{authority: blackbox.NewAuthority(t), log: &lockedBuffer{}}
	x.files.Least = least
	x.files.Certificate, x.files.Key = x.issue(1)
	log := zerolog.New(x.log).Level(zerolog.DebugLevel)
	o := Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Version: "test", Log: log, Names: Names{AllowOrigins: []string{"https://app.example"}}}
	var err error
	if f != nil {
		x.files.ClientCA = x.authority.File
		if o.Tokens, err = auth.OpenTokens(f.path); err != nil {
			t.Fatal(err)
		}
	}
	if o.Certificate, err = OpenCertificate(x.files, log); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x.site = newSite(t, s)
	x.speak(x.authority.Client("", ""))
	return x
}

// issue writes a certificate of the server that is good for so many hours.
func (x *secured) issue(hours int) (certificate, key string) {
	return x.authority.Issue("server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Duration(hours) * time.Hour),
	})
}

// speak has later requests made as a browser makes them: over HTTP/2.
func (x *secured) speak(config *tls.Config) {
	x.http.CloseIdleConnections()
	x.http = &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	x.t.Cleanup(x.http.CloseIdleConnections)
}

// over makes a request with headers; the error is that of the connection.
func (x *secured) over(method, path, body string, headers ...string) (*http.Response, string, error) {
	x.t.Helper()
	r, err := http.NewRequest(method, "https://"+x.server.Addr()+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := x.http.Do(r)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.t.Fatal(err)
	}
	return response, string(text), nil
}

// shake makes a handshake and returns what the server shows.
func (x *secured) shake(config *tls.Config) (tls.ConnectionState, error) {
	conn, err := tls.Dial("tcp", x.server.Addr(), config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	return conn.ConnectionState(), conn.Close()
}

// A browser speaks HTTP/2 for requests and HTTP/1.1 for sockets, both to one address.
func TestOverTLSRequestsAreOnHTTP2AndSocketsOnHTTP1(t *testing.T) {
	x := openSecured(t, nil, tls.VersionTLS13)
	response, body, err := x.over("POST", "/v1/codeq/tasks", `{"command":"c","payload":1}`)
	if err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusAccepted || response.TLS.Version != tls.VersionTLS13 {
		t.Fatalf("post: %+v %s %v", response, body, err)
	}
	if response, body, err = x.over("GET", "/ui/", ""); err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusOK {
		t.Errorf("the pages: %+v %s %v", response, body, err)
	}
	if response, body, err = x.over("GET", "/v1/codeq/session", ""); err != nil || response.StatusCode != http.StatusBadRequest ||
		!strings.Contains(body, "a session is a WebSocket over HTTP/1.1, got HTTP/2.0") {
		t.Errorf("a session over HTTP/2: %+v %s %v", response, body, err)
	}
	k := &socket{t: t, frames: make(chan wire.ServerFrame, 1000), closed: make(chan struct{})}
	config := x.authority.Client("", "")
	config.NextProtos = []string{"http/1.1"}
	k.conn, _, err = gws.NewClient(k, &gws.ClientOption{Addr: "wss://" + x.server.Addr() + "/v1/codeq/session", TlsConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	go k.conn.ReadLoop()
	t.Cleanup(k.hangUp)
	k.say(`{"type":"hello"}`)
	hear[*wire.Welcome](k)
	k.say(`{"type":"subscribe","ref":1,"commands":["c"],"window":1}`)
	held := hear[*wire.TaskFrame](k)
	k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","status":"COMPLETED","result":{}}`, held.Task.ID, held.Token))
	hear[*wire.OK](k)
	x.close()
	hear[*wire.Draining](k)
	if code := k.closeCode(); code != 1012 {
		t.Errorf("the session is closed with %d", code)
	}
}

// The SDK does everything over TLS: requests, a session, a worker, events.
func TestTheClientWorksOverTLS(t *testing.T) {
	x := openSecured(t, nil, tls.VersionTLS13)
	c, err := client.New("https://"+x.server.Addr(), client.WithTLS(x.authority.Client("", "")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	big := strings.Repeat("x", 1<<19)
	made, err := c.Enqueue(ctx, "c", big)
	if err != nil {
		t.Fatal(err)
	}
	work, stop := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() {
		if err := client.Work(work, c, "c", func(_ context.Context, payload string) (map[string]int, error) {
			return map[string]int{"bytes": len(payload)}, nil
		}); err != nil {
			t.Error(err)
		}
	})
	if result, err := client.ResultOf[map[string]int](ctx, c, made.TaskID); err != nil || result["bytes"] != len(big) {
		t.Errorf("the result is %v, %v", result, err)
	}
	stop()
	worker.Wait()
	plain, err := client.New("http://"+x.server.Addr(), client.WithoutWaiting())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Queues(ctx); err == nil || !strings.Contains(err.Error(), "wants TLS") {
		t.Errorf("a client without TLS hears %v", err)
	}
}

func TestTheLeastVersionOfTLSIsASetting(t *testing.T) {
	for least, want := range map[uint16]bool{tls.VersionTLS13: false, tls.VersionTLS12: true} {
		x := openSecured(t, nil, least)
		config := x.authority.Client("", "")
		config.MaxVersion = tls.VersionTLS12
		if _, err := x.shake(config); (err == nil) != want {
			t.Errorf("TLS 1.2 where %s is the least: %v", tls.VersionName(least), err)
		}
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		if _, err := x.shake(config); err == nil {
			t.Errorf("TLS 1.1 where %s is the least", tls.VersionName(least))
		}
	}
}

// New files count within a second; bad ones leave the old certificate, and the log and a figure say so.
func TestACertificateIsReadAgain(t *testing.T) {
	x := openSecured(t, nil, tls.VersionTLS13)
	leaf := func() string {
		t.Helper()
		state, err := x.shake(x.authority.Client("", ""))
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	metric := func(want string) bool {
		_, body, err := x.over("GET", "/metrics", "")
		return err == nil && strings.Contains(body, "\ncodeq_tls_files_bad "+want+"\n") && strings.Contains(body, "\ncodeq_tls_certificate_end_seconds 1")
	}
	first := leaf()
	x.issue(2)
	await(t, "the new certificate", func() bool { return leaf() != first })
	second := leaf()
	good, err := os.ReadFile(x.files.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{[]byte("no key"), nil} {
		if err := os.WriteFile(x.files.Key, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		await(t, "the figure of a bad file", func() bool { return metric("1") })
		if leaf() != second {
			t.Error("a bad key took the certificate away")
		}
	}
	if said := x.log.text(); !strings.Contains(said, "the file of certificates cannot be read; the certificates stay as they were") ||
		strings.Contains(said, "no key") {
		t.Errorf("the log: %s", said)
	}
	if err := os.WriteFile(x.files.Key, good, 0o640); err != nil {
		t.Fatal(err)
	}
	await(t, "the figure of good files", func() bool { return metric("0") })
	x.issue(-0)
	await(t, "a warning about an old certificate", func() bool { return strings.Contains(x.log.text(), "is not valid now") })
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); {
		if time.Now().After(until) {
			t.Fatalf("%s does not come", what)
		}
		time.Sleep(10 * time.Millisecond) // the file system and the server decide when
	}
}

func TestFilesOfTLSThatAreWrongAreRefused(t *testing.T) {
	a, b := blackbox.NewAuthority(t), blackbox.NewAuthority(t)
	cert, key := a.Issue("one", &x509.Certificate{})
	_, other := b.Issue("two", &x509.Certificate{})
	log := &bytes.Buffer{}
	for _, c := range []struct {
		files TLSFiles
		want  string
	}{
		{TLSFiles{Certificate: cert, Key: other}, "private key does not match public key"},
		{TLSFiles{Certificate: key, Key: cert}, "is no certificate for the key in"},
		{TLSFiles{Certificate: cert + "x", Key: key}, "no such file"},
		{TLSFiles{Certificate: cert, Key: key + "x"}, "no such file"},
		{TLSFiles{Certificate: cert, Key: key, ClientCA: key}, "has no certificate of an issuer"},
	} {
		if _, err := OpenCertificate(c.files, zerolog.New(log)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.files, err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCertificate(TLSFiles{Certificate: cert, Key: key}, zerolog.New(log)); err != nil || !strings.Contains(log.String(), "may read the private key") {
		t.Errorf("a key that others may read: %v, logged %s", err, log)
	}
}

// A client that makes a handshake and reads nothing does not hold up the end of the server.
func TestShutdownDoesNotWaitForTheLastWordsOfTLS(t *testing.T) {
	x := openSecured(t, nil, tls.VersionTLS13)
	conn, err := tls.Dial("tcp", x.server.Addr(), x.authority.Client("", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/codeq/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	x.kill()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
