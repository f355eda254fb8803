package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ear is a supervisor's socket.
type ear struct {
	t      *testing.T
	socket *net.UnixConn
}

func listenAs(t *testing.T, name string) *ear {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return &ear{t, socket}
}

// within is what the supervisor is told next, "" if nothing comes in that time.
func (e *ear) within(d time.Duration) string {
	e.t.Helper()
	text := make([]byte, 256)
	err := e.socket.SetReadDeadline(time.Now().Add(d))
	if err != nil {
		e.t.Fatal(err)
	}
	n, err := e.socket.Read(text)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		e.t.Fatal(err)
	}
	return string(text[:n])
}

func (e *ear) next() string { return e.within(time.Minute) }

// skip returns what is told after the beats that were under way.
func (e *ear) skip() string {
	said := e.next()
	for said == "WATCHDOG=1" {
		said = e.next()
	}
	return said
}

// A supervisor as systemd is one for a unit with Type=notify and WatchdogSec.
func TestSupervisorHearsHowTheServerGoes(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		names = append(names, fmt.Sprintf("@codeq-test-%d", os.Getpid()))
	}
	for _, name := range names {
		heard := listenAs(t, name)
		server := prepare(t, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
		server.cmd.Env = append(server.cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=200000")
		server.begin()
		if said := heard.next(); said != "READY=1" {
			t.Fatalf("it says %q first", said)
		}
		for range 3 {
			if said := heard.next(); said != "WATCHDOG=1" {
				t.Fatalf("it says %q after READY=1", said)
			}
		}
		if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if said := heard.skip(); said != "STOPPING=1" {
			t.Errorf("it says %q at its end", said)
		}
		if code := server.exit(); code != exitFine {
			t.Errorf("exit code %d, errors %q", code, server.err)
		}
	}
}

// rulesOfTheUnit are the assignments of the unit that releases have.
func rulesOfTheUnit(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/systemd/codeq.service")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), "="); is {
			rules[name] = value
		}
	}
	return rules
}

// A supervisor with the rules of the unit ends a server that is silent for the time of the watchdog, and
// starts again what failed, but not what was told to end. A program in Go that ABRT ends has exit code 2, as
// one with a wrong setting: so it is the number of starts that ends those.
func TestSupervisorStartsAgainWhatFailed(t *testing.T) {
	rules := rulesOfTheUnit(t)
	if rules["Type"] != "notify" || rules["WatchdogSec"] == "" || rules["Restart"] != "on-failure" || rules["StartLimitBurst"] == "" {
		t.Fatalf("the unit has %v", rules)
	}
	again := func(code int) bool { return code != 0 && strconv.Itoa(code) != rules["RestartPreventExitStatus"] }
	name, data := filepath.Join(t.TempDir(), "notify"), filepath.Join(t.TempDir(), "data")
	heard := listenAs(t, name)
	serves := func() (*process, string) {
		server := prepare(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data)
		server.cmd.Env = append(server.cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=400000")
		server.begin()
		if said := heard.skip(); said != "READY=1" {
			t.Fatalf("it says %q first", said)
		}
		return server, saysItServes(t, server).URL
	}

	server, url := serves()
	if code, _, errs := codeq("", "enqueue", "pack", `{"disc":7}`, "--url", url); code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	server.signal(syscall.SIGSTOP) // it hangs
	for heard.within(2*time.Second) != "" {
	}
	server.signal(syscall.SIGKILL) // as systemd does to a process that does not even end by ABRT
	if code := server.exit(); !again(code) {
		t.Fatalf("a server that hung, with exit code %d, is not started again", code)
	}
	server, url = serves()
	if code, said, errs := codeq("", "claim", "pack", "--json", "--url", url); code != exitFine || !strings.Contains(said, `disc\":7`) {
		t.Errorf("exit code %d, output %q, errors %q", code, said, errs)
	}
	server.signal(syscall.SIGABRT)
	if code := server.exit(); !again(code) {
		t.Fatalf("a server that failed, with exit code %d, is not started again", code)
	}
	server, _ = serves()
	server.signal(syscall.SIGTERM)
	if code := server.exit(); again(code) {
		t.Errorf("a server that was told to end, with exit code %d, is started again", code)
	}
}

func TestServerGoesOnWithoutItsSupervisor(t *testing.T) {
	server := prepare(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	server.cmd.Env = append(server.cmd.Env, "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "nobody"), "WATCHDOG_USEC=100000", "WATCHDOG_PID=1")
	server.begin()
	saysItServes(t, server)
	server.err.await(t, "the supervisor of this process could not be told how it goes")
}
