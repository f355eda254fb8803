package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTheShellWorkerOfTheDocumentsWorks(t *testing.T) {
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
	p.cmd = exec.Command("sh", "../../docs/workers/worker.sh")
	p.cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL="+said.URL, "PATH="+bin+":"+os.Getenv("PATH"))
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{"12": `{"square":144}`, `"twelve"`: "must be an integer"} {
		_, out, problem := codeq("", "--url", said.URL, "enqueue", "square", payload, "--max-attempts", "1", "--wait", "1m")
		if !strings.Contains(out+problem, want) {
			t.Errorf("%s: %s%s\nthe worker says %s", payload, out, problem, p.err)
		}
	}
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitFine {
		t.Errorf("the worker ended with %d: %s", code, p.err)
	}
}
