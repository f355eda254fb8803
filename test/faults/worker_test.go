package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker is started before its server, and a producer too. They wait for it, the
// worker waits for it again when it is killed in the middle of a run, and what each
// run printed is in files of its own, whether its attempt failed or completed.
func TestU08U09WorkerAndProducerWaitForAServerAndKeepWhatRunsPrint(t *testing.T) {
	x := newSite(t)
	x.server.Kill()
	dir := t.TempDir()
	logs, gate := filepath.Join(dir, "runs"), filepath.Join(dir, "gate")
	const program = `echo "delivery $CODEQ_DELIVERY"; echo "attempt $CODEQ_ATTEMPTS" >&2
[ "$CODEQ_DELIVERY" = 1 ] && exit 7
until [ -e "$0" ]; do sleep 0.1; done`
	w := x.begin(x.server.URL(), "work", command, "--log", logs, "--", "/bin/sh", "-c", program, gate)
	p := x.begin(x.server.URL(), "enqueue", command, "1", "--key", "once")
	for _, r := range []*running{w, p} {
		x.eventually(patience, "it is said that the server is awaited", func() bool {
			return strings.Contains(r.said.String(), "no codeq server answers at "+x.server.URL())
		})
	}
	x.server.Start()
	p.ends(0)
	id := strings.TrimSpace(p.out.String())
	printed := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(logs, id+name)) // a file that is not there yet holds nothing
		return string(text)
	}
	x.eventually(patience, "the second run has begun", func() bool { return printed(".2.err") == "attempt 1\n" })
	x.server.Kill()
	x.server.Start()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.begin(x.server.URL(), "result", id, "--wait", "10m").ends(0)
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(0)
	for name, want := range map[string]string{
		".1.out": "delivery 1\n", ".1.err": "attempt 0\n", ".2.out": "delivery 2\n", ".2.err": "attempt 1\n",
	} {
		if got := printed(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	w.says(id + "  " + command + "  attempt 1 of 5 failed in ")
	w.says(" of 5 completed in ") // a slow machine may give the second run up
}
