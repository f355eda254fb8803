package server

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/store"
	"codeq/wire"
)

// mustNotOpen checks that the refusal to start is one sentence with all parts.
func mustNotOpen(t *testing.T, o Options, parts ...string) error {
	t.Helper()
	o.Log = zerolog.Nop()
	s, err := Open(o)
	if err == nil {
		newSite(t, s).close()
		t.Fatalf("opened %+v", o)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	return err
}

func TestOpenRefusesAnAddressThatStrangersReach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mustNotOpen(t, Options{DataDir: dir, Listen: "0.0.0.0:0"}, "0.0.0.0:0", "--insecure-no-auth")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
	s, err := Open(Options{DataDir: dir, Listen: "0.0.0.0:0", InsecureNoAuth: true, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	newSite(t, s).close()
}

func TestOpenRefusesAPortInUseBeforeItTouchesTheDirectory(t *testing.T) {
	x := openSite(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "data")
	mustNotOpen(t, Options{DataDir: dir, Listen: x.server.Addr()}, x.server.Addr(), "in use", "--listen")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
	x.post(okTask)
}

func TestOpenRefusesAnAddressOfAnotherMachine(t *testing.T) {
	mustNotOpen(t, Options{DataDir: t.TempDir(), Listen: "192.0.2.1:0", InsecureNoAuth: true}, "192.0.2.1:0", "--listen")
}

func TestN14OpenRefusesAnAddressThatIsNone(t *testing.T) {
	for listen, says := range map[string]string{
		"nosuchname.invalid:0": "cannot resolve",
		"127.0.0.1:99999":      "no port from 0 to 65535",
		"127.0.0.1:nosuchport": "no port from 0 to 65535",
	} {
		mustNotOpen(t, Options{DataDir: t.TempDir(), Listen: listen, InsecureNoAuth: true}, listen, says, "--listen")
	}
}

func TestOpenRefusesADirectoryThatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	x := openSite(t, dir)
	task := x.post(okTask)
	o := Options{DataDir: dir, Listen: "127.0.0.1:0"}
	mustBeRefused(t, o, "in use")
	x.post(okTask)
	x.close()

	manifest := filepath.Join(dir, "codeq.json")
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	mustBeRefused(t, Options{DataDir: dir, Listen: "127.0.0.1:0", Shards: 8}, "8")
	mustBeRefused(t, Options{DataDir: dir, Listen: "127.0.0.1:0", Shards: 33}, "33")
	replace(t, manifest, whole[:len(whole)/2])
	mustBeRefused(t, o, "codeq.json")
	replace(t, manifest, []byte(strings.Replace(string(whole), `"version":5`, `"version":9`, 1)))
	mustBeRefused(t, o, "codeq.json")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	mustBeRefused(t, o, "codeq.json")
	replace(t, manifest, whole)

	x = openSite(t, dir)
	if read := x.read(task.ID); string(read.Payload) != `{"n":1}` {
		t.Errorf("after all that the task is %+v", read)
	}
}

func mustBeRefused(t *testing.T, o Options, parts ...string) {
	t.Helper()
	var refused *store.RefusedError
	if err := mustNotOpen(t, o, append(parts, o.DataDir)...); !errors.As(err, &refused) {
		t.Errorf("%v is no refusal of the store", err)
	}
}

func replace(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An Open that fails at its last step, as at one before, gives the directory back. The
// goroutine of a port that it kept would be found when all tests are over.
func TestOpenThatFailsLeavesNothingRunning(t *testing.T) {
	file := newTokenFile(t)
	file.addAll("acme")
	tokens, err := auth.OpenTokens(file.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(file.path)); err != nil {
		t.Fatal(err)
	}
	const listen = "127.0.0.1:0"
	dir := t.TempDir()
	mustNotOpen(t, Options{DataDir: dir, Listen: listen, Tokens: tokens}, "watch")
	mustNotOpen(t, Options{DataDir: dir, Listen: listen, Shards: 33}, "33")
	s, err := Open(Options{DataDir: dir, Listen: listen, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	newSite(t, s).post(okTask)
}

func TestServerThatRecoversIsAliveAndNotReady(t *testing.T) {
	s, err := takePort(Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, server: s, http: &http.Client{Transport: &http.Transport{}}}
	if a := x.ask("GET", "/healthz", ""); a.status != http.StatusOK {
		t.Errorf("healthz: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/readyz", "/v1/codeq/admin/queues", "/v1/codeq/session"} {
		if a := x.ask("GET", path, ""); a.code() != wire.CodeDraining || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s %v", path, a.status, a.body, a.header)
		}
	}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	if a := x.ask("GET", "/readyz", ""); a.status != http.StatusOK {
		t.Errorf("readyz: %d %s", a.status, a.body)
	}
	x.post(okTask)
}

func TestListenerSpeaksOldHTTPOnly(t *testing.T) {
	x := openSite(t, t.TempDir())
	conn, err := net.Dial("tcp", x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 9)
	if _, err := conn.Read(head); err != nil || string(head) != "HTTP/1.1 " {
		t.Errorf("answered %q, %v", head, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
