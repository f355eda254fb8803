package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written, because the disk behind standard output is full, is
// said, and the command does not end as if it had been.
func TestFullDiskBehindTheOutputIsSaid(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }() // nothing could be written to it
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	code, id, errs := command(t, said.URL, "enqueue", "a", "1")
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	id = strings.TrimSpace(id)
	for _, args := range [][]string{
		{"enqueue", "a", "1"},
		{"--json", "enqueue", "a", "1"},
		{"enqueue", "a", "--file", fileOf(t, "1\n")},
		{"task", id},
		{"--json", "task", id},
		{"tasks", "a"},
		{"queues"},
		{"version"},
		{"queue", "show", "a"},
		{"cancel", id},
		{"result", id},
		{"token", "new", "--name", "ada"},
		{"serve", "--print-config"},
		{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "other")},
	} {
		var errs strings.Builder
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL="+said.URL)
		cmd.Stdout, cmd.Stderr = full, &errs
		if err := cmd.Run(); err == nil {
			t.Errorf("%q ends well", args)
		}
		if !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%q says %q", args, errs.String())
		}
	}
}
