//go:build unix

package yamlfile

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to held up a start for ever, and a server that was
// given one in place of its tokens did not see later files.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(name); len(data) > 0 || err != nil {
		t.Errorf("a pipe without a writer: %q, %v", data, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	go func() {
		_, _ = w.WriteString("a: 1\n") // the test fails below
		_ = w.Close()
	}()
	if _, err := os.Stat("/dev/fd"); err != nil {
		return // this system has no names for open files
	}
	if data, err := Read(fmt.Sprintf("/dev/fd/%d", r.Fd())); string(data) != "a: 1\n" || err != nil {
		t.Errorf("a pipe with a writer: %q, %v", data, err)
	}
}
