package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
)

// process is codeq as a process of its own.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *safeBuffer
	ended    bool
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := prepare(t, args...)
	p.begin()
	return p
}

func prepare(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, out: newBuffer(), err: newBuffer()}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asCodeq+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.WaitDelay = time.Minute
	return p
}

func (p *process) begin() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if !p.ended {
			p.kill()
		}
	})
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// exit waits for the process and returns its exit code, -1 after a signal.
func (p *process) exit() int {
	p.t.Helper()
	p.ended = true
	var status *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &status) {
		p.t.Errorf("wait for codeq %v: %v", p.cmd.Args, err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.exit()
}

// serve starts a server and waits until it says where it listens.
func serve(t *testing.T, dir, listen string, more ...string) (p *process, said served) {
	t.Helper()
	p = start(t, append([]string{"serve", "--json", "--data", dir, "--listen", listen}, more...)...)
	return p, saysItServes(t, p)
}

// saysItServes is what a server says once it serves.
func saysItServes(t *testing.T, p *process) (said served) {
	t.Helper()
	p.out.await(t, "\n")
	if err := json.Unmarshal([]byte(p.out.String()), &said); err != nil {
		t.Fatalf("the server says %q: %v", p.out, err)
	}
	return said
}

// served is what a server says with --json when it serves.
type served struct {
	Data, Durability, Authentication, Address, URL string
	Created                                        bool
	Shards, Pid                                    int
}

// command runs a command line to its end.
func command(t *testing.T, url string, args ...string) (code int, out, err string) {
	t.Helper()
	p := start(t, toServer(url, args)...)
	return p.exit(), p.out.String(), p.err.String()
}

func TestU13ServerLogsItsStartAndItsStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, created := range []string{"true", "false"} {
		p := start(t, "serve", "--data", dir, "--listen", "127.0.0.1:0")
		p.err.await(t, `"message":"started"`)
		has(t, p.err.String(), `"version":"unknown"`, `"data":"`+dir+`","created":`+created+`,"shards":4,"durability":"fsync"`,
			`"access":"no authentication, loopback only"`, `"address":"127.0.0.1:`, `"pid":`+strconv.Itoa(p.cmd.Process.Pid))
		p.signal(os.Interrupt)
		if code := p.exit(); code != exitFine {
			t.Errorf("exit code %d, errors %q", code, p.err)
		}
		has(t, p.err.String(), `"signal":"interrupt","grace":"`, `"sessions":0`, `"message":"stopped"`)
		if said := p.out.String(); said != "" {
			t.Errorf("no terminal is there, and standard output says %q", said)
		}
	}
}

func TestServerThatCannotServeSaysWhyInOneSentence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p, said := serve(t, dir, "127.0.0.1:0")
	if !said.Created || said.Shards != 4 || said.Pid != p.cmd.Process.Pid || said.Durability != "fsync" {
		t.Errorf("the server says %+v", said)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		r := start(t, append([]string{"serve"}, args...)...)
		if code := r.exit(); code == exitFine || code < 0 || r.out.String() != "" {
			t.Errorf("%q: exit code %d and %q, want a failure and nothing", args, code, r.out)
		}
		lines := strings.Split(strings.TrimSpace(r.err.String()), "\n")
		oneSentence(t, lines[len(lines)-1]+"\n", want)
	}
	other := filepath.Join(t.TempDir(), "other")
	refused("is in use", "--data", other, "--listen", said.Address)
	refused("in use", "--data", dir, "--listen", "127.0.0.1:0")
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, p.err)
	}
	refused("shards", "--data", dir, "--listen", "127.0.0.1:0", "--shards", "8")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(file, "--data", file, "--listen", "127.0.0.1:0")
}

func TestRunningTaskSurvivesTheKillOfTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	watch := newWatcher(t)
	p, said := serve(t, dir, blackbox.Address(t)) // it is free when the second server wants it
	code, id, errs := command(t, said.URL, "enqueue", "slow", "1")
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	id = strings.TrimSpace(id)
	// The program reports, and completes when it is told to.
	worker := start(t, "--url", said.URL, "work", "slow", "--", "/bin/sh", "-c", fakes["polite"], "sh", watch.path)
	pid, ended := watch.running()
	p.kill()
	worker.err.await(t, "connection lost")
	_, again := serve(t, dir, said.Address)
	if again.Created {
		t.Error("the second server made a new directory")
	}
	worker.err.await(t, "connected to "+said.URL+" again")
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended()
	code, out, errs := command(t, said.URL, "result", id, "--wait", "30s")
	if code != exitFine {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
	has(t, out, "COMPLETED", `{"stopped":true}`)
	_, out, _ = command(t, said.URL, "task", id)
	has(t, out, "failed      0 of 5", "deliveries  1")
	worker.signal(syscall.SIGTERM)
	if code := worker.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d, errors %q", code, worker.err)
	}
}

func TestTaskOfAKilledWorkerGoesToAnother(t *testing.T) {
	t.Parallel()
	watch := newWatcher(t)
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	code, id, errs := command(t, said.URL, "enqueue", "slow", "1")
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	id = strings.TrimSpace(id)
	killed := start(t, "--url", said.URL, "work", "slow", "--lease", "2s", "--", "/bin/sh", "-c", fakes["hold"], "sh", watch.path)
	_, ended := watch.running()
	killed.kill()
	ended() // its program with it
	start(t, "--url", said.URL, "work", "slow", "--", "cat")
	code, out, errs := command(t, said.URL, "result", id, "--wait", "60s")
	if code != exitFine {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
	has(t, out, "COMPLETED", `{"output":"1"}`)
	_, out, _ = command(t, said.URL, "task", id)
	has(t, out, "failed      1 of 5", "deliveries  2", "delivery 1")
}
