package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTheShellWorkersOfTheDocumentsWork(t *testing.T) {
	// A shell ends by the signal itself, codeq work when it has finished.
	for script, ends := range map[string]int{"worker.sh": exitFine, "worker_claim.sh": -1} {
		t.Run(script, func(t *testing.T) { tryScript(t, script, ends) })
	}
}

// tryScript gives a worker that calls codeq a task that it can do and one that
// it cannot.
func tryScript(t *testing.T, script string, ends int) {
	_, said := serve(t, t.TempDir(), "127.0.0.1:0")
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "codeq")); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, out: newBuffer(), err: newBuffer()}
	p.cmd = exec.Command("sh", "../../docs/workers/"+script)
	p.cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL="+said.URL, "PATH="+bin+":"+os.Getenv("PATH"))
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	// A group of its own gets the signal whole, as from a terminal.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{"12": `{"square":144}`, `"twelve"`: "must be an integer"} {
		_, out, problem := codeq("", "--url", said.URL, "enqueue", "square", payload, "--max-attempts", "1", "--wait", "1m")
		if !strings.Contains(out+problem, want) {
			t.Errorf("%s: %s%s\nthe worker says %s", payload, out, problem, p.err)
		}
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if code := p.exit(); code != ends {
		t.Errorf("the worker ended with %d: %s", code, p.err)
	}
}
