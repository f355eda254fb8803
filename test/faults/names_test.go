package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
)

// oddNames are what users call things, and what attackers do.
var oddNames = []string{
	":", "a:b", "a:b:c", "a:b:c:d", "/", "a/b", "a/", "%2F", "a%2Fb", "a%2fb", "%", "%%", "..", ".", "...", "a..b", "",
	" ", "a b", " a", "a ", "\x00", "a\x00b", "a\nb", "a\tb", "\x7f", "123", "0", "-1", "true", "null", "*", "?", "#", "a?b=c", "a#b",
	`"`, `\`, `a\u0041`, "'", "`", "<b>", "${x}", "{id}", "\U0001F600", "\u05d0\u05d1", "\u202ea", "\ufeffa", "\u2028",
	"caf\u00e9", "cafe\u0301", "name", "Name", "NAME", "na\u00efve", "\ufffd",
	strings.Repeat("x", 128), strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("x", 512), strings.Repeat("x", 513),
	strings.Repeat("\u00e9", 256),
}

// spelled are pairs of names that differ in how one byte is spelled: as it is and
// as storages and paths escape it. Some of each kind meet in one shard.
func spelled() (names []string) {
	for c := byte(' '); c < 0x7f; c++ {
		names = append(names, fmt.Sprintf("%c%cx", 'a'+c%16, c), fmt.Sprintf("%c%%%02Xx", 'a'+c%16, c))
	}
	return names
}

// goodCommand is the rule for commands as the protocol has it.
func goodCommand(name string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r)
	}
	return len(name) >= 1 && len(name) <= 200 && strings.Trim(name, ".") != "" &&
		strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0
}

// quoted is a text as JSON has it.
func quoted(text string) string { return string(wire.AppendQuoted(nil, text)) }

// A name that users choose is refused at once with the rule, or works wherever
// it can be said, and no two share anything.
func TestA44OddNamesAreRefusedOrWork(t *testing.T) {
	x := newSite(t)
	t.Run("commands", func(t *testing.T) { x.oddCommands(t) })
	t.Run("keys", func(t *testing.T) { x.oddKeys(t) })
	t.Run("ids", func(t *testing.T) { x.oddIDs(t) })
}

// mustCode makes sure that an error is a refusal with one of the codes.
func mustCode(t *testing.T, what string, err error, codes ...wire.Code) {
	t.Helper()
	var refusal *wire.Error
	if errors.As(err, &refusal) && refusal.Sentence != "" {
		for _, code := range codes {
			if refusal.Code == code {
				return
			}
		}
	}
	t.Errorf("%s: %v, want one of %v", what, err, codes)
}

func (x *site) oddCommands(t *testing.T) {
	tasks := make(map[string]wire.TaskID)
	for _, name := range oddNames {
		task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%s,"payload":%s}`, quoted(name), quoted(name)))
		if !goodCommand(name) {
			mustCode(t, fmt.Sprintf("post to %q", name), err, wire.CodeInvalidCommand)
			x.refusedCommand(t, name)
			continue
		}
		if err != nil {
			t.Errorf("post to %q: %v", name, err)
			continue
		}
		tasks[name] = task.ID
	}
	page, err := http.Get(x.server.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text := readAll(t, page)
	for name, id := range tasks {
		if !strings.Contains(text, fmt.Sprintf(`command="%s"`, name)) {
			t.Errorf("the figures do not show the queue %q", name)
		}
		x.workingCommand(t, name, id)
	}
}

// refusedCommand tries the other places where a bad command can be said.
func (x *site) refusedCommand(t *testing.T, name string) {
	t.Helper()
	if name != wire.AllCommands {
		_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%s]}`, quoted(name)))
		mustCode(t, fmt.Sprintf("claim of %q", name), err, wire.CodeInvalidCommand)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		_, err := x.api.Do(x.ctx, method, "/admin/queues/"+url.PathEscape(name), "{}")
		mustCode(t, fmt.Sprintf("%s of queue %q", method, name), err, wire.CodeInvalidCommand, wire.CodeNotFound, wire.CodeMethodNotAllowed)
	}
	if strings.Contains(name, "\x00") {
		return // no word of a command line can hold it
	}
	if code, out, said := x.codeq(t, "enqueue", "--", name, "1"); code == 0 || out != "" || strings.Count(said, "\n") != 1 {
		t.Errorf("codeq enqueue %q: %d %s%s", name, code, out, said)
	}
}

// workingCommand finds the one task of a queue in every way.
func (x *site) workingCommand(t *testing.T, name string, id wire.TaskID) {
	t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues/"+url.PathEscape(name), "")
	if err != nil {
		t.Fatalf("read the queue %q: %v", name, err)
	}
	if q, err := wire.ParseQueueFigures(answer.Body); err != nil || q.Command != name || q.Ready != 1 {
		t.Errorf("the queue %q is %s (%v)", name, answer.Body, err)
	}
	if code, out, said := x.codeq(t, "--json", "queue", "show", "--", name); code != 0 || !strings.Contains(out, quoted(name)) {
		t.Errorf("codeq queue show %q: %d %s%s", name, code, out, said)
	}
	answer, err = x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%s]}`, quoted(name)))
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("claim of %q: %+v, %v", name, answer, err)
	}
	task, _, err := wire.ParseClaimed(answer.Body)
	if err != nil || task.ID != id || task.Command != name || string(task.Payload) != quoted(name) {
		t.Errorf("claim of %q: %s (%v)", name, answer.Body, err)
	}
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", `{"result":{}}`); err != nil {
		t.Errorf("complete the task of %q: %v", name, err)
	}
	if code, out, said := x.codeq(t, "result", id.String()); code != 0 || !strings.Contains(out, name) {
		t.Errorf("codeq result of %q: %d %s%s", name, code, out, said)
	}
}

// codeq runs the program as somebody at a terminal does.
func (x *site) codeq(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(x.ctx, path, append([]string{"--url", x.server.URL()}, args...)...)
	var output, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &problems
	var status *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &status) {
		t.Fatalf("run codeq %q: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), output.String(), problems.String()
}

func (x *site) oddKeys(t *testing.T) {
	names := append(spelled(), oddNames...)
	made := make(map[wire.TaskID]string)
	first := make(map[string]wire.TaskID)
	for range 2 {
		for _, name := range names {
			task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":"keys","payload":1,"idempotencyKey":%s}`, quoted(name)))
			if len(name) < 1 || len(name) > 512 {
				mustCode(t, fmt.Sprintf("key %q", name), err, wire.CodeInvalidArgument)
				continue
			}
			if err != nil {
				t.Errorf("key %q: %v", name, err)
				continue
			}
			if other, taken := made[task.ID]; taken && other != name {
				t.Errorf("the keys %q and %q share a task", other, name)
			}
			if id, again := first[name]; again && id != task.ID {
				t.Errorf("the key %q has two tasks", name)
			}
			made[task.ID], first[name] = name, task.ID
		}
		x.server.Kill() // the second time they are read from the disk
		x.server.Start()
	}
	_, err := x.api.Post(x.ctx, `{"command":"keys","payload":1,"idempotencyKey":"\ud800"}`)
	mustCode(t, "half a pair as a key", err, wire.CodeInvalidArgument)
	if q := x.figures("keys"); q.Ready != int64(len(first)) {
		t.Errorf("%d keys have %d tasks", len(first), q.Ready)
	}
}

func (x *site) oddIDs(t *testing.T) {
	real := x.post("ids", 1, 0)[0].String()
	for _, name := range append([]string{
		strings.ToUpper(real), "{" + real + "}", strings.ReplaceAll(real, "-", ""), real + " ", " " + real, real + "\x00", real + "/",
		"urn:uuid:" + real, real[:35], real + "0", strings.Replace(real, "-", "%2D", 1),
	}, oddNames...) {
		for _, route := range []string{"", "/result", "/cancel", "/heartbeat"} {
			method := http.MethodGet
			if route == "/cancel" || route == "/heartbeat" {
				method = http.MethodPost
			}
			_, err := x.api.Do(x.ctx, method, "/tasks/"+url.PathEscape(name)+route, "")
			mustCode(t, fmt.Sprintf("%s of the task %q", route, name), err, wire.CodeTaskNotFound, wire.CodeNotFound, wire.CodeMethodNotAllowed)
		}
	}
	if q := x.figures("ids"); q.Ready != 1 {
		t.Errorf("after that the queue is %+v", q)
	}
}

// tenantsFile writes a file of tokens, one for each tenant, which is its number.
func tenantsFile(t *testing.T, tenants ...string) string {
	t.Helper()
	var entries []map[string]any
	for n, tenant := range tenants {
		digest := sha256.Sum256([]byte(fmt.Sprint("token-of-", n)))
		entries = append(entries, map[string]any{
			"name": fmt.Sprint("n", n), "sha256": hex.EncodeToString(digest[:]), "tenant": tenant, "subject": "s",
			"scopes": []string{"admin", "producer", "read", "worker"}, "commands": []string{"*"},
		})
	}
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// goodTenant is the rule for the names of tenants.
func goodTenant(name string) bool {
	control := func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd || r == 0xfeff }
	return len(name) >= 1 && len(name) <= 128 && strings.TrimSpace(name) == name && strings.IndexFunc(name, control) < 0
}

// The same for tenants: a file with a bad name starts no server, and two that
// differ in any way see nothing of one another.
func TestA44OddTenantsShareNothing(t *testing.T) {
	var good []string
	for _, name := range oddNames {
		if goodTenant(name) {
			good = append(good, name)
		}
	}
	good = append(good, spelled()...)
	x := newSite(t, "--tokens", tenantsFile(t, good...))
	ids := make(map[wire.TaskID]string)
	for range 2 {
		for n, name := range good {
			task, err := x.api.As(fmt.Sprint("token-of-", n)).Post(x.ctx, `{"command":"c","payload":1,"idempotencyKey":"k"}`)
			if err != nil {
				t.Fatalf("post as %q: %v", name, err)
			}
			if other, taken := ids[task.ID]; taken && other != name || task.TenantID != name {
				t.Errorf("the tenant %q has the task of %q: %+v", name, other, task)
			}
			ids[task.ID] = name
		}
		// Only when all have posted can one have lost its key to another; the second
		// time they are read from the disk.
		x.server.Kill()
		x.server.Start()
	}
	for n, name := range good {
		answer, err := x.api.As(fmt.Sprint("token-of-", n)).Do(x.ctx, http.MethodGet, "/admin/queues", "")
		if err != nil {
			t.Fatal(err)
		}
		queues, err := wire.ParseQueueList(answer.Body)
		if err != nil || len(queues) != 1 || queues[0].Ready != 1 || queues[0].TenantID != name {
			t.Errorf("the tenant %q sees %s (%v)", name, answer.Body, err)
		}
	}
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", " a", "a\x00b", "a\nb", strings.Repeat("x", 129)} {
		file := tenantsFile(t, name)
		said, err := exec.CommandContext(x.ctx, path, "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--tokens", file).CombinedOutput()
		if err == nil || !strings.Contains(string(said), "tenant") {
			t.Errorf("a server with the tenant %q: %v, %s", name, err, said)
		}
	}
}
