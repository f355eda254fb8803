package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudoterminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() }) // it may be closed already
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() }) // the process has its own
	return master, slave
}

// awaitBanner reads from a terminal what a server says to people at its start.
func awaitBanner(t *testing.T, master *os.File) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = master.Close() })
	defer late.Stop()
	said := ""
	for lines := bufio.NewScanner(master); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "result --url") {
			has(t, said, "data        ", " (new)", "shards      4", "fsync", "http://127.0.0.1:", "Ctrl-C", " work sha256 --url", " enqueue sha256 --url")
			return
		}
	}
	t.Fatalf("the server does not say how to try it, but %q", said)
}

// A server whose terminal closes stops in order, also with a file of tokens; it was
// killed by HUP without one, and went on with one.
func TestN13TerminalThatClosesDrainsTheServer(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if code, _, errs := codeq("", "token", "new", "--name", "ada", "--file", tokens); code != exitFine {
		t.Fatal(errs)
	}
	for name, args := range map[string][]string{"without tokens": nil, "with tokens": {"--tokens", tokens}} {
		t.Run(name, func(t *testing.T) {
			master, slave := openTerminal(t)
			cmd := exec.Command(os.Args[0], append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, args...)...)
			cmd.Env = append(os.Environ(), asCodeq+"=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitBanner(t, master)
			if err := master.Close(); err != nil {
				t.Fatal(err)
			}
			killed := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer killed.Stop()
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
