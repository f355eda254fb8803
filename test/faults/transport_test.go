package faults

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
)

// transport is a server that speaks TLS, and what its clients need.
type transport struct {
	*site
	authority *blackbox.Authority
	cert, key string
	// admin is a token for all tenants, worker a file with a client certificate and its key.
	admin, worker string
}

func newTransport(t *testing.T) *transport {
	t.Helper()
	x := &transport{authority: blackbox.NewAuthority(t)}
	x.cert, x.key = x.authority.Issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	san := url.URL{Scheme: "spiffe", Host: "acme.example", Path: "/renderer"}
	cert, key := x.authority.Issue("worker", &x509.Certificate{URIs: []*url.URL{&san}})
	x.worker = joined(t, cert, key)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	out := x.codeq(t, 0, "token", "new", "--name", "admin", "--tenant", "ops", "--scope", "operator,producer", "--command", "*", "--file", tokens)
	x.admin = strings.Fields(out)[0]
	entry := "- {name: renderer, certificate: \"" + san.String() + "\", tenant: acme, subject: renderer, scopes: [worker, producer, \"codeq:read\"], commands: [\"*\"]}\n"
	text, err := os.ReadFile(tokens)
	if err := errors.Join(err, os.WriteFile(tokens, append(text, entry...), 0o600)); err != nil {
		t.Fatal(err)
	}
	x.site = newSite(t, "--tls-cert", x.cert, "--tls-key", x.key, "--tls-client-ca", x.authority.File, "--tokens", tokens)
	return x
}

// joined is one file with the text of several.
func joined(t *testing.T, files ...string) string {
	t.Helper()
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	file := filepath.Join(t.TempDir(), "joined.pem")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// codeq runs the program, which must end with an exit code, and returns all that it said.
func (x *transport) codeq(t *testing.T, code int, args ...string) string {
	t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("codeq %s: %v, want exit code %d; it said:\n%s", strings.Join(args, " "), err, code, said.String())
	}
	return said.String()
}

// The built server speaks TLS, and every kind of command does: requests, sessions, events, a bench.
// A worker is known by its certificate, and the administrator of all tenants acts for its tenant.
func TestTheBuiltProgramSpeaksTLS(t *testing.T) {
	x := newTransport(t)
	secure := []string{"--url", "https://" + x.server.Addr, "--ca", x.authority.File}
	byCert := append([]string{"--client-cert", x.worker}, secure...)
	byToken := append([]string{"--token", x.admin}, secure...)
	run := func(code int, with []string, args ...string) string {
		t.Helper()
		return x.codeq(t, code, append(args, with...)...)
	}
	id := strings.TrimSpace(run(0, byCert, "enqueue", "render", `{"n":1}`))
	worker := x.inBackgroundRun(t, append([]string{"work", "render"}, append(byCert, "--", "cat")...)...)
	if out := run(0, byCert, "result", "--wait", "20s", id); !strings.Contains(out, `{"n":1}`) {
		t.Errorf("the result: %s", out)
	}
	worker()
	if out := run(0, append([]string{"--tenant", "acme"}, byToken...), "task", id); !strings.Contains(out, "COMPLETED") {
		t.Errorf("the task for an administrator of all tenants: %s", out)
	}
	run(3, byToken, "task", id)
	run(0, byToken, "enqueue", "other", "1")
	if out := run(0, byToken, "queues"); !strings.Contains(out, "other") || strings.Contains(out, "render") {
		t.Errorf("the queues of its own tenant: %s", out)
	}
	run(0, secure, "health")
	run(0, byCert, "bench", "--seconds", "0.2", "--warm-up", "0.1", "--http")
	run(0, byCert, "bench", "--seconds", "0.2", "--warm-up", "0.1", "--watchers", "1")
	if out := run(1, secure, "queues"); !strings.Contains(out, "unauthenticated") {
		t.Errorf("without a credential: %s", out)
	}
	if out := x.codeq(t, 1, "queues", "--url", "https://"+x.server.Addr); !strings.Contains(out, "name its issuer with --ca") {
		t.Errorf("without the issuer: %s", out)
	}
	if out := x.codeq(t, 1, "queues", "--url", "http://"+x.server.Addr); !strings.Contains(out, "wants TLS: write https://") {
		t.Errorf("without TLS: %s", out)
	}
	stranger := blackbox.NewAuthority(t)
	cert, key := stranger.Issue("stranger", &x509.Certificate{DNSNames: []string{"x"}})
	for range 20 { // the alert races with the request
		if out := run(1, append([]string{"--client-cert", joined(t, cert, key)}, secure...), "queues"); !strings.Contains(out, "refuses the certificate of this client") {
			t.Fatalf("a certificate of another issuer: %s", out)
		}
	}
	if said := x.server.Log(); strings.Contains(said, x.admin) || strings.Contains(said, "PRIVATE KEY") {
		t.Errorf("the log has a secret: %s", said)
	}
}

// inBackgroundRun runs the program until the returned function ends it.
func (x *transport) inBackgroundRun(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // a program that has ended is reported by Wait
		if err := cmd.Wait(); err != nil {
			t.Errorf("codeq %s: %v", args[0], err)
		}
	}
}

// A new certificate counts without a restart; one that does not fit its key changes nothing.
func TestTheBuiltServerReadsItsCertificateAgain(t *testing.T) {
	x := newTransport(t)
	was, err := os.ReadFile(x.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.key, []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	logged := func(what string) func() bool { return func() bool { return strings.Contains(x.server.Log(), what) } }
	x.eventually(time.Minute, "a bad key is told", logged("the file of certificates cannot be read"))
	secure := []string{"health", "--url", "https://" + x.server.Addr, "--ca", x.authority.File}
	x.codeq(t, 0, secure...)
	if err := os.WriteFile(x.key, was, 0o600); err != nil {
		t.Fatal(err)
	}
	x.authority.Issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	x.eventually(time.Minute, "the new certificate is told", logged("certificates read again"))
	x.codeq(t, 0, secure...)
	if strings.Contains(x.server.Log(), "CANARY") {
		t.Errorf("the log has the key: %s", x.server.Log())
	}
}

// Mistakes in the settings of TLS end a start with exit code 2 and a sentence.
func TestMistakesInTheSettingsOfTLSAreTold(t *testing.T) {
	t.Parallel()
	x := &transport{authority: blackbox.NewAuthority(t)}
	cert, key := x.authority.Issue("one", &x509.Certificate{})
	_, other := x.authority.Issue("two", &x509.Certificate{})
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"tls-key (--tls-key) needs tls-cert":                    {"--tls-key", key},
		"tls-cert (--tls-cert) needs tls-key":                   {"--tls-cert", cert},
		"tls-client-ca (--tls-client-ca) needs tls-cert":        {"--tls-client-ca", cert},
		"tls-client-ca (--tls-client-ca) needs tokens":          {"--tls-client-ca", cert, "--tls-cert", cert, "--tls-key", key},
		"tls-cert (--tls-cert): " + cert + " is no certificate": {"--tls-cert", cert, "--tls-key", other},
		"tls-cert (--tls-cert): read certificate: open file: ":  {"--tls-cert", cert + "x", "--tls-key", key},
		key + " has no certificate of an issuer in PEM":         {"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key, "--tokens", tokens},
		`--tls-min must be one of "1.2","1.3" but got "1.1"`:    {"--tls-cert", cert, "--tls-key", key, "--tls-min", "1.1"},
	} {
		if out := x.codeq(t, 2, append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%v: %s, want %s", args, out, want)
		}
	}
}
