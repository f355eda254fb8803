package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dirsOf are the directories of workers among temporary files.
func dirsOf(t *testing.T, temp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(temp, leavingsPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A worker that starts removes what killed ones have left, and nothing of those that live, of others
// or of a name that leads elsewhere.
func TestLeavingsOfAKilledWorkerAreRemoved(t *testing.T) {
	h := newHouse(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	script := filepath.Join(t.TempDir(), "hang.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho x > \"$CODEQ_ARTIFACTS/x\"\necho there >&2\nsleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.fine("enqueue", "-q", "hang", "1")
	killed := start(t, toServer(h.url, []string{"work", "hang", "--verbose", "--", script})...)
	killed.err.await(t, "there")
	killed.kill()
	left := dirsOf(t, temp)
	if len(left) != 1 {
		t.Fatalf("a killed worker has left %v", left)
	}
	elsewhere := t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	foreign := filepath.Join(temp, "codeq-else")
	for _, err := range []error{
		os.WriteFile(precious, nil, 0o600), os.Symlink(elsewhere, filepath.Join(temp, leavingsPrefix+"link")), os.Mkdir(foreign, 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	living, err := openLeavings()
	if err != nil {
		t.Fatal(err)
	}
	run, err := living.next()
	if err != nil {
		t.Fatal(err)
	}
	worker := h.work("idle", "--", script)
	if _, err := os.Stat(left[0]); err == nil {
		t.Errorf("%s is still there", left[0])
	}
	for _, kept := range []string{string(run), precious, foreign} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("%s is gone: %v", kept, err)
		}
	}
	worker.stop()
	living.close(t.Logf)
	if left := dirsOf(t, temp); len(left) != 1 { // the link
		t.Errorf("left: %v", left)
	}
}

// A file that the server will never take fails its task for good, and says why.
func TestAnArtifactThatNeverFitsFailsItsTask(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "--artifact-max-bytes", "10B")
	h := &house{t, said.URL}
	t.Setenv("TMPDIR", t.TempDir())
	script := filepath.Join(t.TempDir(), "leave.sh")
	text := `#!/bin/sh
case "$(cat)" in
1) echo 'more than ten bytes' > "$CODEQ_ARTIFACTS/large" ;;
2) : > "$CODEQ_ARTIFACTS/$(printf 'a\033b')" ;;
3) for i in $(seq 101); do : > "$CODEQ_ARTIFACTS/$i"; done ;;
4) echo 'more than ten bytes' > "$CODEQ_ARTIFACTS/large"; echo its own reason >&2; exit 65 ;;
esac
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	worker := h.work("leave", "--window", "4", "--", script)
	for payload, want := range map[string]string{
		"1": "an artifact has at most 10 bytes on this server", "2": "the name of artifact", "3": "more than 100 artifacts", "4": "its own reason; upload artifact large",
	} {
		id := h.fine("enqueue", "-q", "leave", payload)
		code, out, errs := h.run("", "result", id, "--wait", "30s")
		if code != exitFailed || !strings.Contains(out+errs, want) {
			t.Errorf("%s: %d %s %s, want %q", payload, code, out, errs, want)
		}
		has(t, h.fine("task", id, "--json"), `"deliveries":1`)
	}
	worker.stop()
}
