package peer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// raftOf dials the log of a node and reports whether it takes a byte.
func raftOf(t *testing.T, from, to *Peers) error {
	t.Helper()
	conn, err := from.Raft().Dial(to.Self().Address, wait)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it may be closed already
	return heard(t, conn, to)
}

// heard writes a byte and awaits it at the log of a node.
func heard(t *testing.T, conn net.Conn, to *Peers) error {
	t.Helper()
	got := make(chan error, 1)
	go func() {
		in, err := to.Raft().Accept()
		if err == nil {
			_, err = io.ReadFull(in, make([]byte, 1))
			_, _ = in.Write([]byte("x")) // the read below sees it
			_ = in.Close()
		}
		got <- err
	}()
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	must(t, conn.SetReadDeadline(time.Now().Add(wait)))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	return <-got
}

func TestNodesTalkAndStrangersDoNot(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	b, _ := join(t, a, l, nil)
	other, _ := first(t, &log{}, nil)
	until(t, "both are members", func() bool { return len(l.Members()) == 2 })
	must(t, raftOf(t, b, a))
	must(t, raftOf(t, a, b))

	pair := func(p *Peers) []tls.Certificate { return []tls.Certificate{*p.directory.certificate()} }
	old := issued(t, a.directory.authority, b.Self().Node, time.Now().Add(-2*certificateFor))
	nameless := issued(t, a.directory.authority, "localhost", time.Now())
	for name, config := range map[string]*tls.Config{
		"no certificate":                   {NextProtos: []string{overRaft}},
		"a certificate of another cluster": {NextProtos: []string{overRaft}, Certificates: pair(other)},
		"an expired certificate":           {NextProtos: []string{overRaft}, Certificates: old},
		"a certificate of no node":         {NextProtos: []string{overRaft}, Certificates: nameless},
		"no protocol":                      {Certificates: pair(b)},
		"another protocol":                 {NextProtos: []string{"h2"}, Certificates: pair(b)},
		"a machine that joins, at the log": {NextProtos: []string{overJoin, overRaft}},
		"TLS 1.2":                          {NextProtos: []string{overRaft}, Certificates: pair(b), MaxVersion: tls.VersionTLS12},
		"its own certificate":              {NextProtos: []string{overRaft}, Certificates: pair(a)},
	} {
		t.Run(name, func(t *testing.T) {
			config.InsecureSkipVerify = true
			mustBeRefused(t, a, config)
		})
	}
	t.Run("no TLS", func(t *testing.T) {
		conn, err := net.Dial("tcp", a.Self().Address)
		must(t, err)
		defer func() { _ = conn.Close() }() // it is closed by the other side
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(wait)))
		if got, _ := io.ReadAll(conn); strings.Contains(string(got), "HTTP/1.1 200") {
			t.Errorf("got %q", got)
		}
	})
	must(t, raftOf(t, b, a))
}

// issued is a certificate for any name, as of a time.
func issued(t *testing.T, by *authority, name string, at time.Time) []tls.Certificate {
	t.Helper()
	key, keyPEM, err := newKey()
	must(t, err)
	text, err := by.issue(name, key.Public(), at)
	must(t, err)
	pair, err := tls.X509KeyPair([]byte(text), []byte(keyPEM))
	must(t, err)
	return []tls.Certificate{pair}
}

// mustBeRefused dials with a configuration, and gets no answer.
func mustBeRefused(t *testing.T, p *Peers, config *tls.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", p.Self().Address)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // it is closed by the other side
	must(t, conn.SetReadDeadline(time.Now().Add(wait)))
	_, _ = conn.Write([]byte("POST /members HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")) // the read tells
	if got, err := io.ReadAll(conn); len(got) > 0 || err == nil {
		t.Errorf("answered %q, %v", got, err)
	}
}

func TestARemovedNodeIsRefusedAndCut(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	b, _ := join(t, a, l, nil)
	until(t, "both are members", func() bool { return len(l.Members()) == 2 && !a.votes(b.Self().Node) }) // a has seen it
	conn, err := b.Raft().Dial(a.Self().Address, wait)
	must(t, err)
	defer func() { _ = conn.Close() }() // it is closed by the other side
	l.remove(b.Self().Node)
	a.Cut(b.Self().Node)
	must(t, conn.SetReadDeadline(time.Now().Add(wait)))
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("an open connection: %v", err)
	}
	if a.hold(&line{port: a, node: b.Self().Node}) {
		t.Error("a connection whose handshake ended before the node was removed stays open")
	}
	if err := raftOf(t, a, b); err == nil || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("the leader talks to it: %v", err)
	}
	mustBeRefused(t, a, &tls.Config{NextProtos: []string{overNodes}, InsecureSkipVerify: true, Certificates: []tls.Certificate{*b.directory.certificate()}})
}

func TestANodeThatIsNotKnownYetIsAdmitted(t *testing.T) {
	behind, ahead := &log{}, &log{}
	a, _ := first(t, behind, nil)
	ahead.members, ahead.leader = behind.members, behind.leader
	b, _ := join(t, a, ahead, nil) // a does not hear of it
	must(t, raftOf(t, b, a))
}

func TestACopyOfADirectoryIsRefused(t *testing.T) {
	l := &log{}
	a, dir := first(t, l, nil)
	other := t.TempDir()
	must(t, os.CopyFS(other, os.DirFS(dir)))
	copied := open(t, other, port(t), nil, nil)
	if err := raftOf(t, copied, a); err == nil || !strings.Contains(err.Error(), "is a copy of the other") {
		t.Errorf("got %v", err)
	}
}

func TestAnotherNodeAtTheAddressIsNotTaken(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	b, _ := join(t, a, l, nil)
	if _, err := a.dial(t.Context(), overHTTP, b.Self().Address, strings.Repeat("ab", 16)); err == nil || !strings.Contains(err.Error(), "and not abab") {
		t.Errorf("got %v", err)
	}
}

func TestCertificatesAreMadeAnew(t *testing.T) {
	l := &log{}
	a, dir := first(t, l, nil)
	b, _ := join(t, a, l, nil)
	before := a.directory.certificate()
	next, err := a.directory.renew(time.Now())
	must(t, err)
	if a.directory.certificate() != before || time.Until(next) < renewAfter-time.Hour {
		t.Error("a new certificate was made anew")
	}
	a.directory.renewAt = time.Now()
	_, err = a.directory.renew(time.Now())
	must(t, err)
	after := a.directory.certificate()
	if slices.Equal(after.Certificate[0], before.Certificate[0]) || slices.Equal(after.Leaf.RawSubjectPublicKeyInfo, before.Leaf.RawSubjectPublicKeyInfo) {
		t.Fatal("an old certificate was not made anew, with a new key")
	}
	again, err := openDirectory(dir)
	must(t, err)
	if !slices.Equal(again.certificate().Certificate[0], after.Certificate[0]) {
		t.Error("the new certificate is not in the file")
	}
	must(t, raftOf(t, a, b))
	must(t, raftOf(t, b, a))
}

func TestAGivenAuthoritySigns(t *testing.T) {
	given, err := newAuthority(time.Now())
	must(t, err)
	dir, on := t.TempDir(), port(t)
	must(t, Found(dir, &Founding{
		Node: strings.Repeat("ab", 16), Address: on.Addr().String(), Authority: given.pem, AuthorityKey: given.keyPEM, Now: time.Now(),
	}))
	a := open(t, dir, on, &log{}, nil)
	b, _ := join(t, a, nil, nil)
	must(t, raftOf(t, b, a))
	leaf := issued(t, given, strings.Repeat("cd", 16), time.Now())
	key, err := keyToPEM(given.key)
	must(t, err)
	if _, err := parseAuthority(toPEM(certificateBlock, leaf[0].Certificate[0]), key); err == nil {
		t.Error("the certificate of a node is an authority")
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	_, dir := first(t, &log{}, nil)
	path := filepath.Join(dir, directoryName, fileName)
	text, err := os.ReadFile(path)
	must(t, err)
	for name, damaged := range map[string]string{
		"cut":          string(text[:len(text)/2]),
		"another node": strings.Replace(string(text), "00000001", "00000002", 1),
		"no key":       strings.Replace(string(text), "PRIVATE KEY", "PUBLIC KEY", 2),
		"empty":        "",
	} {
		must(t, os.WriteFile(path, []byte(damaged), 0o600))
		if _, err := openDirectory(dir); err == nil || !strings.Contains(err.Error(), "node.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
