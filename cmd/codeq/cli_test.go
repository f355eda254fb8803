package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"codeq/client"
	"codeq/wire"
)

// nowhere is an address where nobody listens: port 1 of this machine.
const nowhere = "127.0.0.1:1"

// heldID and heldToken name a delivery that there is not.
const (
	heldID    = "01890a5d-ac96-774b-bcce-b302099a8057"
	heldToken = "0123456789abcdef0123456789abcdef"
)

// wrongLines are mistakes that are found without a server.
var wrongLines = []struct {
	args  []string
	input string
	want  string
}{
	{args: []string{"bogus"}, want: `"codeq --help"`},
	{args: []string{"--json"}, want: `"codeq --help"`},
	{args: []string{"task", "shwo", "x"}, want: `"shwo" is no verb of task, did you mean "show"?; "codeq task --help"`},
	{args: []string{"-q", "task", "shwo"}, want: `"shwo" is no verb of task, did you mean "show"?`},
	{args: []string{"help", "exitcodes"}, want: `did you mean "codeq help exit-codes"?`},
	{args: []string{"work", "a", "--windwo", "3", "--", "cat"}, want: `unknown flag --windwo, did you mean "--window"?; put the program after --; "codeq work --help"`},
	{args: []string{"work", "a", "--nosuch=1", "--", "cat"}, want: "unknown flag --nosuch; put the program after --"},
	{args: []string{"tasks", "a", "--all", "-n", "3"}, want: "either --all or --limit"},
	{args: []string{"tasks", "a", "--state", "done", "--status", "failed"}, want: "no task in --state done is FAILED: leave --state out, or give --state dlq"},
	{args: []string{"tasks", "a", "--state", "dlq", "--status", "PENDING"}, want: "or give --state ready or delayed"},
	{args: []string{"tasks", "a", "--state", "lost"}, want: `--state must be ready, delayed, inProgress, dlq or done, got "lost"`},
	{args: []string{"enqueue", "--nosuch"}, want: `unknown flag --nosuch; "codeq enqueue --help"`},
	{args: []string{"enqueue"}, want: `"codeq enqueue --help"`},
	{args: []string{"enqueue", "a/b", "1"}, want: "command"},
	{args: []string{"enqueue", "..", "1"}, want: "command"},
	{args: []string{"enqueue", strings.Repeat("a", 201), "1"}, want: "command"},
	{args: []string{"enqueue", "a", "hello"}, want: `'"hello"'`},
	{args: []string{"enqueue", "a", "{}{}"}, want: "not JSON"},
	{args: []string{"enqueue", "a", "1e400x"}, want: "not JSON"},
	{args: []string{"enqueue", "a", "\"\xff\""}, want: "UTF-8"},
	{args: []string{"enqueue", "a", strings.Repeat("[", wire.MaxNesting+1) + strings.Repeat("]", wire.MaxNesting+1)}, want: "64"},
	{args: []string{"enqueue", "a", ""}, want: "payload is empty"},
	{args: []string{"enqueue", "a"}, want: "standard input: the payload is empty"},
	{args: []string{"enqueue", "a", "-"}, want: "standard input: the payload is empty"},
	{args: []string{"cluster", "transfer", ""}, want: "the node must not be empty"},
	{args: []string{"cluster", "remove", ""}, want: "the node must not be empty"},
	{args: []string{"cluster", "init", "--data", "/dev/null/d", "--address", "127.0.0.1:99999"}, want: "a port from 1 to 65535"},
	{args: []string{"enqueue", "a"}, input: "1\n2\n", want: "--file -"},
	{args: []string{"enqueue", "a"}, input: `"` + strings.Repeat("x", wire.MaxPayloadBytes) + `"`, want: "the limit is 1048576"},
	{args: []string{"enqueue", "a", "1", "--priority", "10"}, want: "priority must be an integer from 0 to 9, got 10"},
	{args: []string{"enqueue", "a", "1", "--priority=-1"}, want: "priority"},
	{args: []string{"enqueue", "a", "1", "--priority", "high"}, want: "--priority"},
	{args: []string{"enqueue", "a", "1", "--max-attempts", "0"}, want: "from 1 to 1000"},
	{args: []string{"enqueue", "a", "1", "--max-attempts", "1001"}, want: "1000"},
	{args: []string{"enqueue", "a", "1", "--key", ""}, want: "--key must not be empty"},
	{args: []string{"enqueue", "a", "1", "--key", strings.Repeat("k", 513)}, want: "512"},
	{args: []string{"enqueue", "a", "1", "--delay", "1500ms"}, want: "whole seconds"},
	{args: []string{"enqueue", "a", "1", "--delay", "-1s"}, want: `--delay must be a time like 30s, 1m30s, 2h or 7d, or a number of seconds, got "-1s"`},
	{args: []string{"enqueue", "a", "1", "--delay=-1s"}, want: `--delay must be a time like 30s, 1m30s, 2h or 7d, or a number of seconds, got "-1s"`},
	{args: []string{"enqueue", "a", "1", "--delay"}, want: "--delay: its value is missing; "},
	{args: []string{"enqueue", "a", "1", "--delay", "--wait", "3s"}, want: `--delay: its value is missing, because "--wait" after it is a flag; `},
	{args: []string{"enqueue", "a", "1", "--priority", "-1"}, want: "priority must be an integer from 0 to 9, got -1"},
	{args: []string{"enqueue", "a", "1", "--key", "-k"}, want: `"-k" after it is a flag; write a value that begins with - with =, as in --key=-k; "codeq`},
	{args: []string{"enqueue", "a", "--file", "-x"}, want: "as in --file=-x"},
	{args: []string{"enqueue", "a", "-5"}, want: `there is no flag -5; put a payload or another argument that begins with - at the end, after --, as in -- -5; "codeq`},
	{args: []string{"enqueue", "a", "-500", "--priority", "3"}, want: "after --, as in -- -500;"},
	{args: []string{"enqueue", "a", "--5"}, want: `unknown flag --5; "codeq enqueue --help"`},
	{args: []string{"enqueue", "a", "1", "--prioritty", "5"}, want: `unknown flag --prioritty, did you mean "--priority"?`},
	{args: []string{"complete", heldID, heldToken, "-foo"}, want: "there is no flag -foo; "},
	{args: []string{"token", "new", "--name", "a", "--scope", "-x"}, want: "--scope"},
	{args: []string{"queues", "--url", ""}, want: "must look like http://127.0.0.1:8080"},
	{args: []string{"enqueue", "a", "1", "--delay", "999999h"}, want: "--delay must be"},
	{args: []string{"enqueue", "a", "1", "--run-at", "tomorrow"}, want: "2030-01-02T15:04:05Z"},
	{args: []string{"enqueue", "a", "1", "--run-at", "2030-01-02T15:04:05Z", "--delay", "1s"}, want: "not both"},
	{args: []string{"enqueue", "a", "1", "--expires-at", "2030-01-02T15:04:05Z", "--ttl", "1s"}, want: "not both"},
	{args: []string{"enqueue", "a", "1", "--expires-at", "soon"}, want: "--expires-at must be a time like"},
	{args: []string{"enqueue", "a", "1", "--timeout", "1500ms"}, want: "--timeout must be whole seconds"},
	{args: []string{"enqueue", "a", "1", "--timeout", "721h"}, want: "--timeout must be"},
	{args: []string{"enqueue", "a", "1", "--ttl", "-1s"}, want: "--ttl must be a time like"},
	{args: []string{"enqueue", "a", "1", "--wait", "-1s"}, want: "--wait"},
	{args: []string{"enqueue", "a", "1", "--no-key"}, want: "--no-key needs --file"},
	{args: []string{"enqueue", "a", "1", "--file", "-"}, want: "not both"},
	{args: []string{"enqueue", "a", "--file", "-", "--key", "k"}, want: "--key is for one task"},
	{args: []string{"enqueue", "a", "1", "--run", "r"}, want: "--run needs --file"},
	{args: []string{"enqueue", "a", "--file", "-", "--run", "r", "--no-key"}, want: "either --run or --no-key"},
	{args: []string{"enqueue", "a", "--file", "-", "--run", ""}, want: "--run must have 1 to 100"},
	{args: []string{"enqueue", "a", "--file", "-", "--run", "a b"}, want: "--run must have 1 to 100"},
	{args: []string{"enqueue", "a", "--file", "no-such-file"}, want: "no-such-file"},
	{args: []string{"enqueue", "a", "--file", "."}, want: "is a directory"},
	{args: []string{"enqueue", "a", "1", "--url", "ftp://host"}, want: "http://127.0.0.1:8080"},
	{args: []string{"result", "abc"}, want: `"abc" is not the id of a task`},
	{args: []string{"result", "01890A5D-AC96-774B-BCCE-B302099A8057"}, want: "is not the id of a task"},
	{args: []string{"result", "01890a5d-ac96-774b-bcce-b302099a8057", "--wait", "long"}, want: "--wait"},
	{args: []string{"task", "abc"}, want: "is not the id of a task"},
	{args: []string{"cancel", "abc"}, want: "no flag selects tasks of abc: select some, like --match customer=42, or give --all"},
	{args: []string{"claim"}, want: `"codeq claim --help"`},
	{args: []string{"claim", "a/b"}, want: "commands[0] may hold only"},
	{args: []string{"claim", "a", "--lease", "1500ms"}, want: "--lease must be whole seconds"},
	{args: []string{"claim", "a", "--lease", "13h"}, want: "--lease must be whole seconds"},
	{args: []string{"claim", "a", "--wait", "-1s"}, want: "--wait must be a time like"},
	{args: []string{"claim", "a", "--wait=-1s"}, want: "--wait must be a time like"},
	{args: []string{"claim", "a", "--name", strings.Repeat("n", 201)}, want: "--name must be at most 200"},
	{args: []string{"complete", heldID}, want: `"codeq complete --help"`},
	{args: []string{"complete", "abc", heldToken, "{}"}, want: "is not the id of a task"},
	{args: []string{"complete", heldID, "abc", "{}"}, want: "is not a lease token"},
	{args: []string{"complete", heldID, strings.ToUpper(heldToken), "{}"}, want: "is not a lease token"},
	{args: []string{"complete", heldID, heldToken}, want: "either a result"},
	{args: []string{"complete", heldID, heldToken, "{}", "--error", "no"}, want: "either a result"},
	{args: []string{"complete", heldID, heldToken, "--error", ""}, want: "--error must not be empty"},
	{args: []string{"complete", heldID, heldToken, "1"}, want: "the result is JSON, but not an object"},
	{args: []string{"complete", heldID, heldToken, "{"}, want: "the result is not JSON"},
	{args: []string{"complete", heldID, heldToken, ""}, want: "the result is not JSON"},
	{args: []string{"complete", heldID, heldToken, "-"}, input: "{}{}", want: "the result is not JSON"},
	{args: []string{"complete", heldID, heldToken, "-"}, input: `{"a":"` + strings.Repeat("x", wire.MaxResultBytes) + `"}`, want: "the limit is 1048576"},
	{args: []string{"nack", heldID, "abc"}, want: "is not a lease token"},
	{args: []string{"nack", heldID, heldToken, "--delay", "1500ms"}, want: "--delay must be whole seconds"},
	{args: []string{"nack", heldID, heldToken, "--delay=-1s"}, want: "--delay must be a time like"},
	{args: []string{"nack", heldID, heldToken, "--delay", "24h1s"}, want: "--delay must be whole seconds from 0s to 24h0m0s, got 24h0m1s"},
	{args: []string{"release", "abc", heldToken}, want: "is not the id of a task"},
	{args: []string{"heartbeat", heldID, "abc"}, want: "is not a lease token"},
	{args: []string{"heartbeat", heldID, heldToken, "--extend", "13h"}, want: "--extend must be whole seconds"},
	{args: []string{"heartbeat", heldID, heldToken, "--extend", "0s"}, want: "--extend must be whole seconds from 1s"},
	{args: []string{"enqueue", "a", "1", "--delay", "87601h"}, want: "--delay must be"},
	{args: []string{"pause", "a/b"}, want: "command"},
	{args: []string{"queue", "set", "a", "--lease", "1500ms"}, want: "--lease must be whole seconds"},
	{args: []string{"work", "a"}, want: `"codeq work --help"`},
	{args: []string{"work", "a", "--"}, want: "no program after --"},
	{args: []string{"work", "a", "--", "no-such-program"}, want: "cannot run"},
	{args: []string{"work", "a b", "--", "cat"}, want: "command"},
	{args: []string{"work", "a", "--window", "0", "--", "cat"}, want: "window must be from 1 to 10000"},
	{args: []string{"work", "a", "--window", "10001", "--", "cat"}, want: "window must be from 1 to 10000"},
	{args: []string{"work", "a", "--lease", "1ms", "--", "cat"}, want: "lease must be whole seconds"},
	{args: []string{"work", "a", "--lease", "0s", "--", "cat"}, want: "lease must be whole seconds"},
	{args: []string{"work", "a", "--lease", "13h", "--", "cat"}, want: "lease must be whole seconds"},
	{args: []string{"queue", "set", "a"}, want: `nothing is changed: give a setting, like --lease 5m; "codeq queue show a" shows`},
	{args: []string{"queue", "set", "0"}, want: "nothing is changed"},
	{args: []string{"queue", "set", "a", "--lease", "5x"}, want: "--lease must be a time like 30s"},
	{args: []string{"tasks", "a", "--status", "bogus"}, want: `--status must be PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED, got "bogus"`},
	{args: []string{"task", "list", "a", "--state", "bogus"}, want: `--state must be ready, delayed, inProgress, dlq or done, got`},
	{args: []string{"nack", heldID, heldToken, "--exit-code", "-1"}, want: "--exit-code must be from 0 to 4294967295, got -1"},
	{args: []string{"work", "a", "--timeout", "0s", "--", "cat"}, want: "--timeout must be at least 1ms, got 0s"},
	{args: []string{"tasks", "a", "-n", "0"}, want: "--limit must be at least 1, got 0"},
	{args: []string{"task", "move", "a", "--to", "10", "--all"}, want: "--to must be from 0 to 9, got 10"},
	{args: []string{"nack", heldID, heldToken, "--exit-code", "1", "--signal", "SIGKILL"}, want: "give either --exit-code or --signal, not both"},
	{args: []string{"nack", heldID, heldToken, "--signal", strings.Repeat("S", 33)}, want: "--signal must be at most 32 bytes"},
	{args: []string{"complete", heldID, heldToken, "{}", "--exit-code", "0"}, want: "--exit-code and --signal need --error"},
	{args: []string{"task"}, want: `"codeq task --help"`},
	{args: []string{"task", "enqueue", "a"}, want: `"codeq task --help"`},
	{args: []string{"completion", "tcsh"}, want: `"bash","zsh","fish"`},
	{args: []string{"serve", "--shards", "33"}, want: "from 1 to 32"},
	{args: []string{"serve", "--shards=-1"}, want: "from 1 to 32"},
}

func TestWrongCommandLinesAreOneSentenceAndExitCodeTwo(t *testing.T) {
	for _, c := range wrongLines {
		code, out, err := codeq(c.input, c.args...)
		if code != exitWrong || out != "" {
			t.Errorf("%.60q: exit code %d and output %q, want 2 and none", c.args, code, out)
		}
		oneSentence(t, err, c.want)
	}
}

func TestPayloadThatBeginsWithAHyphenGoesBehindTwo(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "a", "--priority", "3", "--key=-k", "--", "-5")
	has(t, h.fine("task", id), "payload", "-5")
}

// oneSentence checks what a failed command says.
func oneSentence(t *testing.T, said, want string) {
	t.Helper()
	if !strings.HasPrefix(said, "codeq: ") || strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
		t.Errorf("it says %q, want one sentence with %q", said, want)
	}
}

func TestNoServerIsOneSentenceAndExitCode75(t *testing.T) {
	want := `no codeq server answers at http://127.0.0.1:1: start one with "codeq serve", or give another address (--url)`
	for _, args := range [][]string{
		{"enqueue", "a", "1"},
		{"enqueue", "a", "--file", fileOf(t, "1\n"), "--once"},
		{"result", "01890a5d-ac96-774b-bcce-b302099a8057", "--wait", "30s", "--once"},
		{"task", "01890a5d-ac96-774b-bcce-b302099a8057"},
		{"cancel", "01890a5d-ac96-774b-bcce-b302099a8057"},
		{"claim", "a", "--wait", "30s", "--once"},
		{"complete", heldID, heldToken, "{}"},
		{"nack", heldID, heldToken},
		{"release", heldID, heldToken},
		{"heartbeat", heldID, heldToken},
		{"queues"},
		{"sessions"},
		{"webhooks", "list"},
		{"webhooks", "set", "a", "--to", "https://example.com/"},
		{"limits", "list"},
		{"limits", "set", "a", "--weight", "1"},
		{"dlq", "replay", "a"},
		{"dlq", "purge", "a"},
		{"dlq", "reasons", "a"},
		{"dlq", "list", "a"},
		{"backup", filepath.Join(t.TempDir(), "copy")},
		{"tasks", "a"},
		{"pause", "a"},
		{"resume", "a"},
		{"queue", "show", "a"},
		{"queue", "set", "a", "--max-attempts", "1"},
		{"work", "a", "--once", "--", "cat"},
	} {
		code, out, err := codeq("", append([]string{"--url", nowhere}, args...)...)
		if code != exitAgain || out != "" {
			t.Errorf("%q: exit code %d and output %q, want 75 and none", args, code, out)
		}
		oneSentence(t, err, want)
	}
}

// The value of a flag in the help is the name of its kind, and a default is said to
// be one. A value like 10m where nothing is the default would be taken for it.
func TestU09HelpNamesKindsAndDefaults(t *testing.T) {
	var c cli
	parser := c.parser(newTerminal("").app, nil, func(int) {})
	kinds := regexp.MustCompile(`^[A-Z][A-Z:=-]*(,\.\.\.)?$`)
	help := settingHelp(&c.Serve.Serve)
	seen := 0
	err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		flag, ok := node.(*kong.Flag)
		if !ok || flag.IsBool() {
			return next(nil)
		}
		seen++
		shown := flag.FormatPlaceHolder()
		if !kinds.MatchString(shown) || strings.Contains(flag.Target.Type().String(), "time.Duration") != (shown == "DURATION") {
			t.Errorf("--%s shows %s", flag.Name, shown)
		}
		if flag.Default != "" && !strings.Contains(help(flag.Value), "(default "+flag.Default) {
			t.Errorf("--%s has the default %s, and says %q", flag.Name, flag.Default, help(flag.Value))
		}
		return next(nil)
	})
	if err != nil || seen < 40 {
		t.Errorf("%d flags, %v", seen, err)
	}
}

func TestHelpIsShownForItAndForNothing(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"-h"}, {"work", "--help"}, {"enqueue", "-h"}, {"serve", "--help"}} {
		code, out, err := codeq("", args...)
		if code != exitFine || !strings.HasPrefix(out, "Usage: codeq") || err != "" {
			t.Errorf("%q: exit code %d, output %.30q, errors %q", args, code, out, err)
		}
	}
}

func TestVersionNamesTheProgramAlsoWithoutAServer(t *testing.T) {
	code, out, err := codeq("", "version", "--url", nowhere)
	if code != exitFine || !strings.HasPrefix(out, "codeq unknown, commit unknown, go1") ||
		!strings.Contains(out, "none answers") || err != "" {
		t.Errorf("exit code %d, output %q, errors %q", code, out, err)
	}
	code, out, _ = codeq("", "version", "--json", "--url", nowhere)
	if code != exitFine || !strings.HasPrefix(out, `{"version":"unknown","commit":"unknown","go":"go1`) {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

func TestTextFromOutsideIsHarmlessOnATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain €\n\ttext":        "plain €\n\ttext",
		"\x1b[2Jgone\r":          `\u001b[2Jgone\u000d`,
		"\x7f\u009b1m\x00\a":     `\u007f\u009b1m\u0000\u0007`,
		"bad \xff here":          "bad \uFFFD here",
		`{"a":"\u001b[2J"}`:      `{"a":"\u001b[2J"}`,
		"right\u202eto left":     `right\u202eto left`,
		"zero\u200bwidth \u2028": `zero\u200bwidth \u2028`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}

func TestErrorsOfTheServerAreSaidWithTheirCodeBehind(t *testing.T) {
	refusal := wire.Refuse(wire.CodeTaskNotFound, "there is no such task")
	for err, want := range map[error]string{
		refusal:                           "there is no such task (task_not_found)",
		fmt.Errorf("task 7: %w", refusal): "task 7: there is no such task (task_not_found)",
		errors.New("plain"):               "plain",
		fmt.Errorf("%w: cut", client.ErrOutcomeUnknown): "no answer came: the server may or may not have done it: cut",
	} {
		if got := sentence(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTaskTableShowsWhatIsThere(t *testing.T) {
	tt := newTerminal("")
	task := &wire.Task{
		ID: wire.TaskID{15: 7}, Command: "hash", Payload: []byte(`{"a":1}`), Priority: 3, Status: wire.StatusFailed,
		Location: wire.LocationDead, Attempts: 5, MaxAttempts: 5, Deliveries: 6, TimeoutSeconds: 90, Error: "first\nsecond\tcolumn",
		History: []wire.HistoryLine{{Delivery: 6, WorkerID: "ada", Cause: "nack"}},
	}
	if err := tt.app.taskFields(task).write(tt.app); err != nil {
		t.Fatal(err)
	}
	want := `task        00000000-0000-0000-0000-000000000007
command     hash
status      FAILED
place       dead letters
priority    3
failed      5 of 5
deliveries  6
timeout     1m30s
error       first
            second    column
payload     {"a":1}
delivery 6  nack, worker ada
`
	if got := tt.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestQueueTableShowsEveryFigure(t *testing.T) {
	tt := newTerminal("")
	err := tt.app.queueTable([]wire.QueueFigures{
		{Command: "hash", Ready: 1, Delayed: 22, InProgress: 333, Dead: 4444},
		{Command: "a-longer-name", Paused: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `COMMAND        READY  DELAYED  IN PROGRESS  DEAD  PAUSED  OLDEST READY
hash           1      22       333          4444  no      -
a-longer-name  0      0        0            0     yes     -
`
	if got := tt.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A word that is the name of a command, anywhere in the line, has that command built; one
// that asks for help has what is on the same page built, and one without a command all.
func TestOnlyTheCommandsThatAreNamedAreBuilt(t *testing.T) {
	for line, want := range map[string][]string{
		"--url http://a task list": {"task"}, "enqueue task 1": {"enqueue", "task"}, "token new --name a": {"token"}, "tasks mail": {"tasks"},
		"queue set --help": {"queue", "queues", "top", "pause", "resume"}, "sessions -qh": {"session", "sessions"}, "work --help=true": {"work"},
		"": nil, "nonsense": nil, "--help": nil,
	} {
		var c cli
		var built []string
		for _, n := range c.parser(newTerminal("").app, strings.Fields(line), func(int) {}).Model.Children {
			built = append(built, n.Name)
		}
		if all := len(built) > 20; all != (want == nil) || !all && !slices.Equal(built, want) {
			t.Errorf("%q: built are %q, want %q", line, built, want)
		}
	}
}
