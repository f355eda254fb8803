package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The program for Windows, as far as another system can run it.
func TestProgramForClientsAlone(t *testing.T) {
	program := filepath.Join(t.TempDir(), "codeq")
	build := exec.Command("go", "build", "-tags", "clientonly", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as a release is built, and as it is in the cache
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h := newHouse(t)
	asks := func(args ...string) (string, error) {
		out, err := exec.Command(program, append(args, "--url", h.url)...).CombinedOutput()
		return string(out), err
	}
	if out, err := asks("enqueue", "resize", `{"file":"owl.png"}`, "--quiet"); err != nil {
		t.Errorf("enqueue: %v, %s", err, out)
	}
	out, err := asks("queues")
	if err != nil {
		t.Errorf("queues: %v", err)
	}
	has(t, out, "resize")
	for command, args := range map[string][]string{
		"serve": {"serve", "--data", "x"}, "work": {"work", "resize", "--window", "8", "--", "./owl"}, "doctor": {"doctor", "x"},
		"cluster init": {"cluster", "init", "--address", "127.0.0.1:1"},
	} {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err == nil || err.Error() != "exit status 2" {
			t.Errorf("%s: %v", command, err)
		}
		has(t, string(out), `codeq: "codeq `+command+`" needs Linux or macOS`)
	}
}
