package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeq/test/blackbox"
)

func TestU10HealthIsReadyOrAFailureInOneLine(t *testing.T) {
	h := newHouse(t)
	out := h.fine("health")
	has(t, out, "ready: http://", "4 shards, durability fsync, disk ok")
	if strings.Count(out, "\n") != 0 {
		t.Errorf("it says %q", out)
	}
	has(t, h.fine("health", "--json"), `{"status":"ready"`)
	code, out, errs := codeq("", "health", "--url", nowhere)
	if code != exitAgain || out != "" {
		t.Errorf("without a server: exit code %d, output %q", code, out)
	}
	oneSentence(t, errs, "not ready: no codeq server answers")
	if code, _, _ := codeq("", "health", "--wait=-1s"); code != exitWrong {
		t.Errorf("a wait below nothing: exit code %d", code)
	}
}

func TestU10HealthWaitsForAServerThatComes(t *testing.T) {
	address := blackbox.Address(t)
	waits := start(t, "--url", "http://"+address, "health", "--wait", "1m")
	waits.err.await(t, "no codeq server answers")
	serve(t, filepath.Join(t.TempDir(), "data"), address)
	if code := waits.exit(); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, waits.err)
	}
	has(t, waits.out.String(), "ready: ")
}

// What a server says it was started with is what --print-config says of the same
// command line, environment and file.
func TestU10ConfigShowIsWhatTheServerWasStartedWith(t *testing.T) {
	dir := t.TempDir()
	file := fileWith(t, "codeq.yaml", "retention: 36h\nlog-level: warn\n")
	args := []string{"serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--config", file}
	printed := prepare(t, append(args, "--print-config")...)
	printed.cmd.Env = append(printed.cmd.Env, "CODEQ_PING_SECONDS=7")
	printed.begin()
	if code := printed.exit(); code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, printed.err)
	}
	server := prepare(t, append(args, "--json")...)
	server.cmd.Env = append(server.cmd.Env, "CODEQ_PING_SECONDS=7")
	server.begin()
	h := &outputHouse{t, saysItServes(t, server).URL}
	shown := h.fine("config", "show")
	if want := strings.TrimSpace(printed.out.String()); shown != want {
		t.Errorf("config show says\n%s\nserve --print-config\n%s", shown, want)
	}
	has(t, shown, "# --data", "ping-seconds: 7", "# CODEQ_PING_SECONDS", "retention: 36h", "# "+file+":1", "# default", "# not set")
	server.signal(os.Interrupt)
	if code := server.exit(); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, server.err)
	}
}

// Settings are those of the whole server, so an admin of one tenant does not see them.
func TestU10ConfigShowIsForOperators(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	tokens := map[string]string{}
	for _, scope := range []string{"operator", "admin"} {
		code, out, errs := codeq("", "token", "new", "--name", scope, "--scope", scope, "--file", file)
		if code != exitFine {
			t.Fatalf("exit code %d, errors %q", code, errs)
		}
		tokens[scope] = strings.TrimSpace(out)
	}
	server := start(t, "serve", "--json", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--tokens", file)
	url := saysItServes(t, server).URL
	code, out, errs := command(t, url, "config", "show", "--token", tokens["operator"])
	if code != exitFine || !strings.Contains(out, "tokens: "+file) || strings.Contains(out, tokens["operator"]) {
		t.Errorf("the operator: exit code %d, %s%s", code, out, errs)
	}
	code, out, errs = command(t, url, "config", "show", "--token", tokens["admin"])
	if code != exitFailed || out != "" {
		t.Errorf("the admin: exit code %d, output %q", code, out)
	}
	oneSentence(t, errs, "lacks the scope codeq:admin:all (forbidden)")
	if code, out, errs := command(t, url, "health"); code != exitFine {
		t.Errorf("health without a token: exit code %d, %s%s", code, out, errs)
	}
}
