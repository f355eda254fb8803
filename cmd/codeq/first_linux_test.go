package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asFirst makes a process 1 of a command line, and finds its number here.
func asFirst(t *testing.T, args ...string) (p *process, first func() int) {
	t.Helper()
	p = prepare(t, args...)
	words := append([]string{"unshare", "-rpf", "--mount-proc", "--kill-child", os.Args[0]}, args...)
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Path, p.cmd.Args, p.cmd.Err = path, words, nil
	return p, func() int {
		pids := children(t, p.cmd.Process.Pid)
		if len(pids) != 1 {
			t.Fatalf("unshare has the children %v", pids)
		}
		pid, err := strconv.Atoi(strings.Fields(pids[0])[0])
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
}

// children are number and state of each child of a process.
func children(t *testing.T, pid int) []string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=,stat=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// Process 1 of a container takes in whoever is left behind, or the container runs
// out of processes.
func TestN13FirstProcessTakesInOrphans(t *testing.T) {
	if exec.Command("unshare", "-rpf", "--mount-proc", "true").Run() != nil {
		t.Skip("unshare is not allowed") // runs where a process may have a namespace of its own
	}
	server, serverFirst := asFirst(t, "serve", "--json", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0")
	server.begin()
	server.out.await(t, "\n")
	_, rest, _ := strings.Cut(server.out.String(), `"url":"`)
	url, _, _ := strings.Cut(rest, `"`)
	worker, workerFirst := asFirst(t, "--url", url, "work", "leave", "--", "/bin/sh", "-c", `sleep 0.1 >/dev/null 2>&1 & printf "{}"`)
	worker.begin()
	for range 5 {
		if code, out, errs := command(t, url, "enqueue", "leave", "1", "--wait", "1m"); code != exitFine {
			t.Fatalf("exit code %d, %s%s", code, out, errs)
		}
	}
	left := children(t, workerFirst())
	for over := time.Now().Add(time.Minute); len(left) > 1 && time.Now().Before(over); left = children(t, workerFirst()) {
		continue // ps takes a while
	}
	if len(left) != 1 {
		t.Errorf("process 1 has the children %q", left)
	}
	for _, end := range []struct {
		p     *process
		first func() int
	}{{worker, workerFirst}, {server, serverFirst}} {
		if err := syscall.Kill(end.first(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if code := end.p.exit(); code != exitFine {
			t.Errorf("exit code %d, %s", code, end.p.err)
		}
	}
	has(t, worker.err.String(), "getting no more tasks")
	wrong, _ := asFirst(t, "nonsense")
	wrong.begin()
	if code := wrong.exit(); code != exitWrong {
		t.Errorf("exit code %d, want that of the program", code)
	}
}
