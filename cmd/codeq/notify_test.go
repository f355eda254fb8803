package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// listenAs is a supervisor's socket: what it is told comes out of the function.
func listenAs(t *testing.T, name string) (next func() string) {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return func() string {
		t.Helper()
		text := make([]byte, 256)
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

// A supervisor as systemd is one for a unit with Type=notify and WatchdogSec.
func TestSupervisorHearsHowTheServerGoes(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		names = append(names, fmt.Sprintf("@codeq-test-%d", os.Getpid()))
	}
	for _, name := range names {
		next := listenAs(t, name)
		server := prepare(t, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
		server.cmd.Env = append(server.cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=200000")
		server.begin()
		if said := next(); said != "READY=1" {
			t.Fatalf("it says %q first", said)
		}
		for range 3 {
			if said := next(); said != "WATCHDOG=1" {
				t.Fatalf("it says %q after READY=1", said)
			}
		}
		if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		said := next()
		for said == "WATCHDOG=1" {
			said = next()
		}
		if said != "STOPPING=1" {
			t.Errorf("it says %q at its end", said)
		}
		if code := server.exit(); code != exitFine {
			t.Errorf("exit code %d, errors %q", code, server.err)
		}
	}
}

func TestServerGoesOnWithoutItsSupervisor(t *testing.T) {
	server := prepare(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	server.cmd.Env = append(server.cmd.Env, "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "nobody"), "WATCHDOG_USEC=100000", "WATCHDOG_PID=1")
	server.begin()
	saysItServes(t, server)
	server.err.await(t, "the supervisor of this process could not be told how it goes")
}
