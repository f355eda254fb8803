package docs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codeq/test/blackbox"
)

// examplesHeading begins the part of cli.md with an example for each command that
// answers in JSON.
const examplesHeading = "## Answers in JSON"

// desk runs the command lines of cli.md, from top to bottom, in one directory.
type desk struct {
	t     *testing.T
	dir   string
	env   []string
	names names
	stays []*exec.Cmd
}

func newDesk(t *testing.T) *desk {
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: t.TempDir(), names: newNames()}
	d.names.loose = append([]string{
		"url", "address", "pid", "commit", "server", "token", "entry", "keys", "workerId", "bytes", "files", "durationMs", "cursor",
		"inPerSecond", "donePerSecond", "retriedPerSecond", "failedPerSecond", "waitP99Ms", "runP99Ms",
	}, volatile...)
	d.env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(d.leave)
	return d
}

// shell is a command line as somebody types it.
func (d *desk) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.Stderr = d.dir, d.env, &strings.Builder{}
	return cmd
}

// answers runs a command line and returns so many lines of what it prints. One of a
// server or a worker goes on until the desk is left.
func (d *desk) answers(line string, lines int) []string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if word := strings.Fields(line)[1]; word != "serve" && word != "work" || strings.Contains(line, "--print-config") {
		cmd := d.shell(ctx, line)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			d.t.Fatal(err)
		}
		if said := strings.TrimSpace(string(out)); said != "" {
			return strings.Split(said, "\n")
		}
		d.t.Fatalf("%s prints nothing: %v, %s", line, err, cmd.Stderr)
	}
	cmd := d.shell(context.Background(), "exec "+line)
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		d.t.Fatal(err)
	}
	d.stays = append(d.stays, cmd)
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // a second kill harms nobody
	var said []string
	for from := bufio.NewReader(out); len(said) < lines; {
		next, err := from.ReadString('\n')
		if err != nil {
			d.t.Fatalf("%s: %v", line, err)
		}
		said = append(said, strings.TrimSpace(next))
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until it ends
	return said
}

// leave ends what goes on, the newest first.
func (d *desk) leave() {
	for i := len(d.stays) - 1; i >= 0; i-- {
		_ = d.stays[i].Process.Signal(syscall.SIGTERM) // it may have ended
		_ = d.stays[i].Wait()                          // however it ends
	}
}

// play runs the command line of an example and compares what it prints.
func (d *desk) play(e *example) {
	line, found := strings.CutPrefix(e.lines[0], "$ ")
	if !found {
		d.t.Fatalf("cli.md:%d: the first line must be a command behind \"$ \"", e.line)
	}
	page := joinLines(e.lines[1:])
	real := d.answers(d.names.fill(line), len(page))
	if len(real) != len(page) {
		d.t.Fatalf("cli.md:%d: %s prints %d lines, and the page has %d:\n%s", e.line, line, len(real), len(page), strings.Join(real, "\n"))
	}
	for i := range page {
		want, err := parseJSON(page[i])
		got, failed := parseJSON(real[i])
		if err = errors.Join(err, failed); err == nil {
			err = d.names.value("", want, got)
		}
		if err != nil {
			d.t.Errorf("cli.md:%d: %s: %v\nit prints %s", e.line, line, err, real[i])
		}
	}
	var said struct{ URL string }
	if json.Unmarshal([]byte(real[0]), &said) == nil && strings.HasPrefix(line, "codeq serve") && said.URL != "" {
		d.env = append(d.env, "CODEQ_URL="+said.URL)
	}
}

// Each command answers with --json as cli.md shows it.
func TestU10AnswersInJSONAreAsThePageShowsThem(t *testing.T) {
	_, part, found := strings.Cut(readPage(t, "cli.md"), "\n"+examplesHeading+"\n")
	if !found {
		t.Fatalf("cli.md has no %q", examplesHeading)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	d := newDesk(t)
	for _, e := range examplesOf(t, "cli.md", part) {
		if e.kind == "console" {
			d.play(&e)
		}
	}
}
