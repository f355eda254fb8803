package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeq/client"
	"codeq/internal/auth"
	"codeq/test/blackbox"
	"codeq/wire"
)

// sink is a standard output that takes nothing, and what the system says.
type sink struct {
	open func(t *testing.T) *os.File
	says string
}

var sinks = map[string]*sink{
	"a full disk": {func(t *testing.T) *os.File {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return full
	}, "no space left on device"},
	"a reader that went away": {func(t *testing.T) *os.File {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		return writer
	}, "broken pipe"},
}

// toSink runs codeq with that standard output and returns how it ended.
func toSink(t *testing.T, sink *os.File, url string, args ...string) (code int, errs string) {
	t.Helper()
	var said strings.Builder
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL="+url)
	cmd.Stdout, cmd.Stderr = sink, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

// toSinkHere is toSink without a process of its own.
func toSinkHere(sink *os.File, url string, args ...string) (code int, errs string) {
	tt := newTerminal("")
	tt.app.out = sink
	if len(args) > 0 {
		args = toServer(url, args)
	}
	return run(args, tt.app), tt.err.String()
}

// outputHouse is a server with one of everything that a command can print.
type outputHouse struct {
	t   *testing.T
	url string
}

// fine runs a command that must succeed.
func (h *outputHouse) fine(args ...string) string {
	h.t.Helper()
	code, out, errs := codeq("", toServer(h.url, args)...)
	if code != exitFine {
		h.t.Fatalf("%q: exit code %d, errors %q", args, code, errs)
	}
	return strings.TrimSpace(out)
}

// held makes a task of a queue of its own and takes it.
func (h *outputHouse) held(verb string, args ...string) []string {
	h.t.Helper()
	h.fine("enqueue", "held-"+verb, "1", "--max-attempts", "1")
	words := strings.Fields(h.fine("claim", "held-"+verb))
	return append([]string{"--json", verb, words[0], words[1]}, args...)
}

// allLines are those of lines, and of webhooks.
func (h *outputHouse) allLines() map[string][]string {
	h.t.Helper()
	for _, name := range []string{"w", "spare"} {
		h.fine("webhooks", "set", name, "--to", "http://127.0.0.1:1/")
	}
	lines := h.lines()
	callbacks := strings.Fields(h.fine("-q", "find", "--label", "endpoint=w", "--command", "codeq.webhook"))
	maps.Copy(lines, map[string][]string{
		"webhooks":        {"--json", "webhooks", "list"},
		"webhooks set":    {"webhooks", "set", "w", "--status", "FAILED"},
		"webhooks rotate": {"webhooks", "rotate", "w"},
		"webhooks enable": {"webhooks", "enable", "w"},
		"webhooks test":   {"webhooks", "test", "w"},
		"redeliver":       {"--json", "webhooks", "redeliver", callbacks[0]},
		"webhooks remove": {"--json", "webhooks", "remove", "spare"},
	})
	return lines
}

// newOutputNode is a server that is the only node of a cluster.
func newOutputNode(t *testing.T) *outputHouse {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node")
	if code, _, errs := codeq("", "cluster", "init", "--data", dir, "--address", blackbox.Address(t)); code != exitFine {
		t.Fatal(errs)
	}
	_, said := serve(t, dir, "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	for until := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		code, _, errs := codeq("", toServer(h.url, []string{"cluster", "status"})...)
		if code == exitFine {
			return h
		}
		if time.Now().After(until) {
			t.Fatalf("the node does not lead in time: %s", errs)
		}
	}
}

// clusterLines is lines for the commands of a cluster.
func (h *outputHouse) clusterLines() map[string][]string {
	h.t.Helper()
	dir := h.t.TempDir()
	return map[string][]string{
		"cluster init":   {"cluster", "init", "--data", filepath.Join(dir, "first"), "--address", blackbox.Address(h.t)},
		"cluster join":   {"--json", "cluster", "join", h.fine("-q", "cluster", "token"), "--data", filepath.Join(dir, "second"), "--address", blackbox.Address(h.t)},
		"cluster token":  {"cluster", "token"},
		"cluster status": {"--json", "cluster", "status"},
	}
}

// lines is one command line for each command that prints. A server that serves is
// none: what it says at its start may be lost (TestN13).
func (h *outputHouse) lines() map[string][]string {
	h.t.Helper()
	id := h.fine("enqueue", "a", "1")
	dead := h.held("nack")
	h.fine(dead...)
	h.fine("pause", "spare", "--create")
	dir := h.t.TempDir()
	return map[string][]string{
		"help":         {"enqueue", "--help"},
		"no words":     {},
		"serve config": {"serve", "--print-config"},
		"token new":    {"token", "new", "--name", "ada"},
		"token mint":   {"token", "mint", "--key", filepath.Join(dir, "key"), "--subject", "ada"},
		"token file":   {"token", "new", "--name", "ada", "--file", filepath.Join(dir, "tokens.yaml")},
		"enqueue":      {"enqueue", "a", "1"},
		"enqueue json": {"--json", "enqueue", "a", "1"},
		"enqueue file": {"enqueue", "a", "--file", fileOf(h.t, "1\n")},
		"json file":    {"--json", "enqueue", "a", "--file", fileOf(h.t, "1\n")},
		"result":       {"result", dead[2]},
		"artifacts":    {"--json", "artifacts", dead[2]},
		"task files":   {"--json", "task", "artifacts", dead[2]},
		"task":         {"task", id},
		"task json":    {"--json", "task", id},
		"task watch":   {"task", "watch", dead[2]},
		"watch":        {"--json", "watch", dead[2]},
		"claim":        {"claim", "a"},
		"complete":     h.held("complete", "{}"),
		"nack":         h.held("nack"),
		"release":      h.held("release"),
		"heartbeat":    h.held("heartbeat"),
		"cancel":       {"cancel", h.fine("enqueue", "b", "1")},
		"task retry":   {"--json", "task", "retry", "b"},
		"task run":     {"--json", "task", "run", "b", "--all"},
		"task move":    {"--json", "task", "move", "b", "--to", "1", "--all"},
		"tasks":        {"tasks", "a"},
		"find":         {"find", "--command", "a"},
		"queues":       {"queues"},
		"queue top":    {"queue", "top", "--once"},
		"top":          {"--json", "top"},
		"dlq list":     {"dlq", "list", "held-nack"},
		"dlq sheets":   {"dlq", "list", "held-nack", "--history"},
		"dlq reasons":  {"dlq", "reasons", "held-nack"},
		"dlq replay":   {"--json", "dlq", "replay", "b"},
		"dlq purge":    {"--json", "dlq", "purge", "b"},
		"queue show":   {"queue", "show", "a"},
		"queue set":    {"queue", "set", "b", "--create", "--max-attempts", "3"},
		"queue delete": {"--json", "queue", "delete", "spare"},
		"pause":        {"pause", "b", "--create"},
		"resume":       {"resume", "b"},
		"sessions":     {"sessions"},
		"limits list":  {"--json", "limits", "list"},
		"limits show":  {"limits", "show", "acme"},
		"limits set":   {"limits", "set", "acme", "--weight", "2"},
		"limits clear": {"limits", "clear", "acme"},
		"drain":        {"session", "drain", h.session()},
		"disconnect":   {"session", "disconnect", h.session()},
		"take back":    {"--json", "task", "take-back", h.held("x")[2]},
		"backup":       {"--json", "backup", filepath.Join(dir, "copy")},
		"restore":      {"--json", "restore", h.backup(), filepath.Join(dir, "restored")},
		"doctor":       {"--json", "doctor", h.stopped()},
		"bench":        {"bench", "--seconds", "0.1", "--warm-up", "0", "--producers", "1", "--url", h.url},
		"demo":         {"--json", "demo", "--seconds", "0.2", "--url", h.url},
		"test server":  {"test-server", "--until-eof"}, "conform": {"--json", "conform", "--list"},
		"config show": {"config", "show"},
		"a secret":    {"config", "webhook-secret"},
		"health":      {"health"},
		"version":     {"version"}, "completion": {"completion", "bash"},
		"exit codes": {"help", "exit-codes"}, "documents": {"--json", "docs", "--write", filepath.Join(dir, "docs")},
	}
}

// session opens a session that ends with the test, and is its id.
func (h *outputHouse) session() string {
	h.t.Helper()
	p, err := blackbox.Dial(h.t.Context(), strings.TrimPrefix(h.url, "http://"), &wire.Hello{WorkerID: "w"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(p.Close)
	return p.Welcome.SessionID.String()
}

// backup is a backup of the server.
func (h *outputHouse) backup() string {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), "backup")
	h.fine("backup", dir)
	return dir
}

// stopped is the data directory of a server that does not run.
func (h *outputHouse) stopped() string {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), "data")
	p, _ := serve(h.t, dir, "127.0.0.1:0")
	p.signal(os.Interrupt)
	p.exit()
	return dir
}

// An answer that does not reach standard output is said, and no command ends as
// if it had been read. Every command is tried in this process. One that shows help, one
// that prints an answer and one that prints lines are tried in processes, too, because
// the system ends a process that writes into a closed pipe unless main prevents that.
func TestN02AnswerThatIsLostFailsEveryCommand(t *testing.T) {
	for name, sink := range sinks {
		t.Run(name, func(t *testing.T) {
			_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
			h := &outputHouse{t, said.URL}
			c, err := client.New(said.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			session, err := c.Dial(t.Context(), client.SessionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			out := sink.open(t)
			defer func() { _ = out.Close() }() // nothing could be written to it
			lines, node := h.allLines(), newOutputNode(t)
			ofNode := node.clusterLines()
			triesAll(t, slices.Concat(slices.Collect(maps.Values(lines)), slices.Collect(maps.Values(ofNode))))
			for what, args := range ofNode {
				code, errs := toSinkHere(out, node.url, args...)
				sink.check(t, what, code, errs)
			}
			for what, args := range lines {
				code, errs := toSinkHere(out, said.URL, args...)
				sink.check(t, what, code, errs)
				if what == "help" || what == "task json" || what == "json file" {
					code, errs = toSink(t, out, said.URL, args...)
					sink.check(t, what+" in a process", code, errs)
				}
			}
		})
	}
}

// check checks how a command line ended whose answer was lost.
func (s *sink) check(t *testing.T, what string, code int, errs string) {
	t.Helper()
	if helps := strings.HasPrefix(what, "help") || what == "no words" || what == "exit codes"; helps && s.says == "broken pipe" {
		if code != exitFine || errs != "" {
			t.Errorf("%s into a pipe that is closed: exit code %d, errors %q", what, code, errs)
		}
		return
	}
	if code != exitFailed || !strings.Contains(errs, "standard output") || !strings.Contains(errs, s.says) {
		t.Errorf("%s: exit code %d, errors %q", what, code, errs)
	}
}

// triesAll checks that every command is among the lines, or prints nothing.
func triesAll(t *testing.T, lines [][]string) {
	t.Helper()
	tried := map[string]bool{
		"work": true, "task show": true, // as "task" is; prints nothing on standard output
		"cluster transfer": true, "cluster remove": true, // need further nodes, and print as "cluster status" does
	}
	for _, args := range lines {
		args = slices.DeleteFunc(slices.Clone(args), func(word string) bool { return strings.HasPrefix(word, "-") })
		tried[strings.Join(args[:min(1, len(args))], " ")] = true
		tried[strings.Join(args[:min(2, len(args))], " ")] = true
	}
	leaves := grammar().Leaves(false)
	for _, leaf := range leaves {
		if tried[leaf.Name] { // a short form stands for its verb
			tried[leaf.Tag.Get("for")] = true
		}
	}
	for _, leaf := range leaves {
		if path := leaf.Path(); !tried[path] {
			t.Errorf("%s is not tried, of %q", path, slices.Sorted(maps.Keys(tried)))
		}
	}
}

// A claim that can not be printed is given back at once, and counts no attempt.
func TestN02ClaimThatIsNotPrintedIsGivenBack(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	id := h.fine("enqueue", "a", "1")
	for name, sink := range sinks {
		out := sink.open(t)
		code, errs := toSink(t, out, said.URL, "claim", "a", "--lease", "1h")
		oneSentence(t, errs, "task "+id+" is handed back")
		if err := out.Close(); err != nil || code != exitFailed {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
		has(t, h.fine("task", id), "PENDING", "0 of 5")
	}
	has(t, h.fine("claim", "a"), id)
}

// What is the only record is not made where it would be lost for certain.
func TestN02ClosedOutputIsRefusedBeforeAnythingIsDone(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	id := h.fine("enqueue", "a", "1")
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	for _, to := range []string{">&-", ">/dev/null"} {
		for _, words := range []string{"claim a --lease 1h", "token new --name ada --file " + file} {
			cmd := exec.Command("sh", "-c", `"$0" `+words+" "+to, os.Args[0])
			cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL="+said.URL)
			errs, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != exitFailed {
				t.Errorf("%s %s: exit code %d, %v", words, to, code, err)
			}
			oneSentence(t, string(errs), "nothing is done")
		}
	}
	has(t, h.fine("task", id), "PENDING", "deliveries  0")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file of tokens: %v", err)
	}
	// Everything else takes the null device as it is meant.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }() // nothing is in it
	if code, errs := toSink(t, null, said.URL, "enqueue", "a", "1"); code != exitFine || errs != "" {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
}

// A token that nobody has got is in no file, and the file stays as it was.
func TestN02TokenThatIsNotPrintedHasNoEntry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	h := &outputHouse{t, nowhere}
	h.fine("token", "new", "--name", "first", "--file", file)
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range sinks {
		out := sink.open(t)
		code, errs := toSink(t, out, nowhere, "token", "new", "--name", "ada", "--file", file)
		oneSentence(t, errs, "is not changed")
		if err := out.Close(); err != nil || code != exitFailed {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
	}
	is, err := os.ReadFile(file)
	if err != nil || string(is) != string(was) {
		t.Errorf("the file became %q, %v", is, err)
	}
	if entries, err := auth.ParseEntries(file, is); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// A task whose id could not be printed is named on standard error.
func TestN02TaskWhoseIdIsNotPrintedIsNamed(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	for name, sink := range sinks {
		out, queue := sink.open(t), strings.ReplaceAll(name, " ", "-")
		code, errs := toSink(t, out, said.URL, "enqueue", queue, "1")
		if err := out.Close(); err != nil || code != exitFailed {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
		var page struct{ Tasks []struct{ ID string } }
		if err := json.Unmarshal([]byte(h.fine("tasks", queue, "--json")), &page); err != nil || len(page.Tasks) != 1 {
			t.Fatalf("tasks %+v, %v", page, err)
		}
		oneSentence(t, errs, "task "+page.Tasks[0].ID)
	}
}
