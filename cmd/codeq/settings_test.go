package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/config"
	"codeq/internal/auth"
	"codeq/internal/server"
)

// fileWith writes a file for one test.
func fileWith(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeWithBadSettingsSaysWhereAndStartsNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	tokens := fileWith(t, "tokens.yaml", "- name: a\n  sha256: cq_oops\n")
	for content, want := range map[string]string{
		"# mine\nshards: 40\n":                `F:2: shards must be from 1 to 32, got "40"`,
		"listn: 1.2.3.4:5\n":                  `F:1: listn is not known; did you mean listen?`,
		"listen: [\n":                         "F:1: not YAML: sequence end token ']' not found",
		"\n\nlog-level: loud\nmemory: 1MiB\n": "F:4: memory must be from 128MiB to 1TiB, got \"1MiB\"; F:3: log-level must be one of debug, info, warn, error, got \"loud\"",
		"shards: 32\n":                        "shards of 32 (F:1) need a memory of at least 768MiB, but memory is 512MiB (default)",
		"tokens: x\ninsecure-no-auth: true\n": "tokens (F:1) and insecure-no-auth (F:2) contradict each other",
		"listen: 0.0.0.0:8080\n":              `listen (F:1): listen address "0.0.0.0:8080" reaches 0.0.0.0`,
		"tokens: " + tokens + "\n":            "tokens (F:1): read tokens: " + tokens + ":2: sha256 holds a token itself",
		"tokens: /nowhere/tokens.yaml\n":      "tokens (F:1): read tokens: open file: open /nowhere/tokens.yaml: no such file",
	} {
		path := fileWith(t, "codeq.yaml", content)
		code, out, err := codeq("", "serve", "--data", data, "--config", path)
		if code != exitWrong || out != "" || !strings.HasPrefix(strings.ReplaceAll(err, path, "F"), "codeq: "+want) {
			t.Errorf("%q: exit code %d, output %q\n got %s\nwant %s", content, code, out, err, want)
		}
	}
	t.Setenv("CODEQ_MAX_SESSIONS", "many")
	code, _, err := codeq("", "serve", "--data", data)
	if code != exitWrong || !strings.Contains(err, `CODEQ_MAX_SESSIONS must be a whole number, got "many"`) {
		t.Errorf("a bad variable: exit code %d, %s", code, err)
	}
	t.Setenv("CODEQ_MAX_SESSIONS", "")
	t.Setenv("CODEQ_SERVICE_HOST", "10.0.0.1")
	t.Setenv("CODEQ_MAXSESSIONS", "10")
	code, _, err = codeq("", "serve", "--data", data)
	if code != exitWrong || err != "codeq: variable CODEQ_MAXSESSIONS is not known; did you mean CODEQ_MAX_SESSIONS?\n" {
		t.Errorf("an unknown variable: exit code %d, %q", code, err)
	}
	code, _, err = codeq("", "serve", "--data", data, "--config", "/nowhere/codeq.yaml")
	if code != exitWrong || !strings.Contains(err, "/nowhere/codeq.yaml") {
		t.Errorf("no file: exit code %d, %s", code, err)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a refused server made its data directory: %v", err)
	}
}

func TestPrintConfigShowsWhatHoldsAndWhy(t *testing.T) {
	path := fileWith(t, "codeq.yaml", "shards: 4\nmemory: 1GiB\ndata: from-file\n")
	t.Setenv("CODEQ_SHARDS", "6")
	t.Setenv("CODEQ_DATA", "from-env")
	code, out, err := codeq("", "serve", "--config", path, "--data", "from-flag", "--print-config")
	for _, want := range []string{"data: from-flag", "# --data\n", "shards: 6", "# CODEQ_SHARDS\n", "memory: 1GiB", "# " + path + ":2\n", "# default\n"} {
		if code != exitFine || err != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, errors %q, %q is not in\n%s", code, err, want, out)
		}
	}
	t.Setenv("CODEQ_CONFIG", path)
	_, out, _ = codeq("", "serve", "--json", "--print-config", "--insecure-no-auth=false")
	var shown struct {
		Settings []struct{ Name, Value, Origin string }
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	got := map[string]string{}
	for _, s := range shown.Settings {
		got[s.Name] = s.Value + " " + s.Origin
	}
	for name, want := range map[string]string{
		"memory": "1GiB " + path + ":2", "data": "from-env CODEQ_DATA", "insecure-no-auth": "false --insecure-no-auth", "tokens": " not set",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestHelpOfServeNamesDefaultsAndVariables(t *testing.T) {
	_, out, _ := codeq("", "serve", "--help")
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"(default 127.0.0.1:8080; $CODEQ_LISTEN).", "$CODEQ_SHARDS).", "--print-config", "$CODEQ_CONFIG)."} {
		if !strings.Contains(flat, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}

// Every setting reaches the server, or is one that this command acts on itself.
func TestEverySettingReachesTheServer(t *testing.T) {
	s := &serveCmd{Serve: config.Serve{
		Listen: "127.0.0.1:1", Data: "dir", Shards: 3, Tokens: "tokens.yaml", Providers: "providers.yaml", InsecureNoAuth: true,
		TLSCert: "tls.crt", TLSKey: "tls.key", TLSMin: "1.2", TLSClientCA: "ca.crt",
		PublicHost: config.Hosts{"queue.example"}, AllowOrigin: config.Origins{"https://app.example"},
		PublicURL: "https://queue.example", WebhookAllow: config.Networks{"10.0.0.0/8"},
		ArtifactsDir: "files", ArtifactsS3: "s3://files", ArtifactMaxBytes: 29 << 20, ArtifactsRedirect: true, ArtifactsShared: true,
		MaxSessions: 5, PingSeconds: 7, Retention: 11 * time.Hour, DLQRetention: 13 * time.Hour, Memory: 17 << 20, EventsMemory: 23 << 20,
		RequireToken: true, ShutdownGrace: 19 * time.Second, LogLevel: "warn", LogFormat: "json", OTLPEndpoint: "http://127.0.0.1:4318",
		PeerListen: "127.0.0.1:2", NodeURL: "http://a.example",
	}}
	o, files := s.options(), s.tlsFiles()
	reached := map[string]any{
		"listen": o.Listen, "data": o.DataDir, "shards": o.Shards, "insecure-no-auth": o.InsecureNoAuth,
		"public-host": config.Hosts(o.PublicHosts), "allow-origin": config.Origins(o.AllowOrigins),
		"artifacts-dir": o.Artifacts.Dir, "artifacts-s3": o.Artifacts.S3, "artifact-max-bytes": config.Bytes(o.Artifacts.MaxBytes),
		"artifacts-redirect": o.Artifacts.Redirect, "artifacts-shared": o.Artifacts.Shared,
		"public-url": o.PublicURL, "webhook-allow": config.Networks(o.WebhookAllow),
		"max-sessions": o.MaxSessions, "ping-seconds": o.PingSeconds, "retention": o.RetentionFor,
		"dlq-retention": o.DLQRetentionFor, "memory": config.Bytes(o.MemoryBytes), "events-memory": config.Bytes(o.EventsBytes),
		"tls-cert": files.Certificate, "tls-key": files.Key, "tls-client-ca": files.ClientCA,
		"tls-min":             strings.TrimPrefix(tls.VersionName(files.Least), "TLS "),
		"require-lease-token": o.RequireLeaseToken, "otlp-endpoint": o.OTLPEndpoint,
		"node-url": o.NodeURL,
		// Run looks whether the directory is that of a node; TestThreeProcessesAreACluster starts some.
		"peer-listen": s.PeerListen,
		// Run opens the files, waits for the grace and makes the log.
		"tokens": s.Tokens, "providers": s.Providers, "shutdown-grace": s.ShutdownGrace, "log-level": s.LogLevel, "log-format": s.LogFormat,
	}
	rows := config.Table(&s.Serve)
	for i := range rows {
		set := reflect.ValueOf(rows[i].Target()).Elem()
		if set.IsZero() {
			t.Errorf("this test leaves %s out", rows[i].Name)
		}
		if got := reached[rows[i].Name]; !reflect.DeepEqual(got, set.Interface()) {
			t.Errorf("%s: the server gets %v, want %v", rows[i].Name, got, set)
		}
	}
}

// A variable that is empty counts as not set, whichever it is.
func TestN15EmptyVariableIsNone(t *testing.T) {
	for _, name := range append([]string{"CODEQ_LISTEN", "CODEQ_SHARDS"}, besideSettings...) {
		t.Setenv(name, "")
	}
	code, out, errs := codeq("", "version")
	if code != exitFine || !strings.Contains(out, "server at http://127.0.0.1:8080: ") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	code, out, errs = codeq("", "serve", "--print-config")
	if code != exitFine || !strings.Contains(out, "listen: 127.0.0.1:8080      # default") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

func TestTokenNewMakesATokenThatTheServerTakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	code, out, err := codeq("", "token", "new", "--name", "ci", "--tenant", "acme", "--scope", "producer,admin", "--command", "a", "--file", file)
	token := strings.TrimSpace(out)
	if code != exitFine || !strings.HasPrefix(token, auth.TokenPrefix) || !strings.Contains(err, file) {
		t.Fatalf("exit code %d, output %q, errors %q", code, out, err)
	}
	tt := newTerminal("")
	ended := make(chan int)
	go func() {
		ended <- run([]string{"serve", "--json", "--listen", "0.0.0.0:0", "--data", t.TempDir(), "--tokens", file, "--shutdown-grace", "1s"}, tt.app)
	}()
	tt.out.await(t, "\n")
	var said struct{ URL, Address, Authentication string }
	if err := json.Unmarshal([]byte(tt.out.String()), &said); err != nil || said.Authentication != "tokens" {
		t.Fatalf("the server says %s: %v", tt.out, err)
	}
	_, port, _ := strings.Cut(said.Address, "]:")
	if port == "" {
		_, port, _ = strings.Cut(said.Address, ":")
	}
	url := "http://127.0.0.1:" + port
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code, out, err := codeq("", "enqueue", "a", "1", "--url", url, "--token", token); code != exitFine {
		t.Errorf("enqueue with the token: %d, %s%s", code, out, err)
	}
	if code, out, err := codeq("", "queues", "--url", url, "--token", token); code != exitFine || !strings.Contains(out, "a") {
		t.Errorf("queues with the token: %d, %s%s", code, out, err)
	}
	for _, args := range [][]string{{"a", "1"}, {"b", "1", "--token", token}, {"a", "1", "--token", token + "x"}} {
		if code, out, err := codeq("", append([]string{"enqueue", "--url", url}, args...)...); code != exitFailed {
			t.Errorf("enqueue %q: %d, %s%s", args, code, out, err)
		}
	}
	tt.stops <- os.Interrupt
	if code := <-ended; code != exitFine {
		t.Errorf("the server ended with %d: %s", code, tt.err)
	}
	if strings.Contains(tt.err.String(), token) {
		t.Errorf("the server logs the token: %s", tt.err)
	}
}

func TestTokenNewShowsTheEntryToPaste(t *testing.T) {
	code, out, err := codeq("", "token", "new", "--name", "ann", "--expires-in", "24h", "--scope", "read")
	if code != exitFine || err != "" {
		t.Fatalf("exit code %d, errors %q", code, err)
	}
	head, entry, _ := strings.Cut(out, "- name:")
	entries, parseErr := auth.ParseEntries("printed", []byte("- name:"+entry))
	if parseErr != nil || len(entries) != 1 || entries[0].Subject != "ann" || entries[0].ExpiresAtMs == 0 {
		t.Fatalf("%+v, %v in\n%s", entries, parseErr, out)
	}
	_, token, _ := strings.Cut(head, "\n\n  ")
	if token, _, _ = strings.Cut(token, "\n"); auth.HashToken(token) != entries[0].SHA256 {
		t.Errorf("the entry is of another token than %q", token)
	}
	_, out, _ = codeq("", "token", "new", "--name", "bob", "--json")
	var said struct{ Token, Name, SHA256, Entry string }
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Name != "bob" || auth.HashToken(said.Token) != said.SHA256 ||
		!strings.Contains(said.Entry, said.SHA256) || strings.Contains(said.Entry, said.Token) {
		t.Errorf("%s: %v", out, err)
	}
}

func TestTokenNewRefusesWhatWouldBeNoEntry(t *testing.T) {
	bad := fileWith(t, "tokens.yaml", "- nothing\n")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitWrong, "--name", nil},
		{exitWrong, `scopes must be among producer, worker, admin, operator, codeq:claim, codeq:subscribe, codeq:heartbeat, codeq:result, codeq:nack, codeq:abandon, codeq:produce, codeq:read, codeq:admin, codeq:admin:all, read, got "root"`, []string{"--name", "a", "--scope", "root"}},
		{exitWrong, "command may hold only", []string{"--name", "a", "--command", "a b"}},
		{exitWrong, "tenant must not be empty", []string{"--name", "a", "--tenant", ""}},
		{exitWrong, "--expires-in must be a time like", []string{"--name", "a", "--expires-in=-1h"}},
		{exitWrong, "--expires-in must be at least 1ms, got 0s", []string{"--name", "a", "--expires-in", "0s"}},
		{exitFailed, bad + ":1: a token must be a map", []string{"--name", "a", "--file", bad}},
		{exitFailed, "no such file", []string{"--name", "a", "--file", "/nowhere/t.yaml"}},
	} {
		code, out, err := codeq("", append([]string{"token", "new"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(err, c.want) {
			t.Errorf("%q: exit code %d, output %q, errors %q", c.args, code, out, err)
		}
	}
}

// A server that was told to stop while its start was stuck at a full disk went on.
func TestServerThatIsStuckAtItsStartIsStopped(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	stops := make(chan os.Signal, 1)
	stops <- os.Interrupt
	_, err := unlessStopped(stops, func() (*server.Server, error) {
		<-stuck
		return nil, nil
	})
	if !errors.Is(err, errStoppedEarly) {
		t.Errorf("it ends with %v", err)
	}
	refused := errors.New("refused")
	if _, err := unlessStopped(make(chan os.Signal), func() (*server.Server, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("a start that fails ends with %v", err)
	}
}
