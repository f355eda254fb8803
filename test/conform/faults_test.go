package conform

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeq/internal/conform"
)

var (
	allFaults = flag.Bool("conform.faults", false, "put each fault into the SDKs, not the first of Go alone")
	oneFault  = flag.String("conform.fault", "", "put only faults into the SDKs that a script must find whose name has this in it")
)

// faultPatience is how long a script waits for what a fault keeps away. It is no less than the longest pause that an SDK
// may make between two attempts to connect: without a fault the next attempt comes within it.
const faultPatience = 10 * time.Second

// fault is a mistake that an SDK could have: old, which is in the file once, becomes new. The scripts, by
// name, must fail over it.
type fault struct{ scripts, file, old, new string }

// sdk is what faults are put into.
type sdk struct {
	name, home string
	faults     []fault
	// command starts the driver of the SDK with the text of a file changed.
	command func(t *testing.T, home, file, text string) []string
}

var sdks = []sdk{
	{"go", "../..", goFaults, func(t *testing.T, home, file, text string) []string {
		return []string{build(t, overlay(t, filepath.Join(home, file), text))}
	}},
	{"typescript", "../../sdk/typescript", typescriptFaults, func(t *testing.T, home, file, text string) []string {
		dir := changedCopy(t, home, file, text, "package.json", "tsconfig.json", "src", "conform")
		if err := os.Symlink(filepath.Join(home, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		compile := exec.Command("node_modules/.bin/tsc")
		compile.Dir = dir
		said, _ := compile.CombinedOutput() // it complains about a fault, and writes all the same
		if _, err := os.Stat(filepath.Join(dir, "dist", "index.js")); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return []string{"node", filepath.Join(dir, "conform", "driver.mjs")}
	}},
	{"python", "../../sdk/python", pythonFaults, func(t *testing.T, home, file, text string) []string {
		return []string{"python3", "-B", filepath.Join(changedCopy(t, home, file, text, "src", "conform"), "conform", "driver.py")}
	}},
}

// Each script has a fault that it must find in each SDK, and each fault has its place. The short form finds the first
// of Go; all are `make conform-faults`.
func TestEachScriptFindsAFault(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			home, err := filepath.Abs(s.home)
			if err != nil {
				t.Fatal(err)
			}
			if *allFaults { // without a fault each script passes, with the patience that the others get
				t.Run("none", func(t *testing.T) {
					t.Parallel()
					none := fault{file: s.faults[0].file, old: s.faults[0].old, new: s.faults[0].old}
					o := conform.Options{Command: s.command(t, home, none.file, none.in(t, home)), AtOnce: scriptsAtOnce, Patience: faultPatience}
					conform.Try(context.Background(), o, func(v conform.Verdict) {
						if v.Failed != "" {
							t.Errorf("%s: %s", v.Name, v.Failed)
						}
					})
				})
			}
			found := map[string]bool{}
			for i, f := range s.faults {
				names := strings.Fields(f.scripts)
				for _, name := range names {
					found[name] = true
				}
				text := f.in(t, home)
				if *allFaults || *oneFault != "" && strings.Contains(f.scripts, *oneFault) || *oneFault == "" && s.name == "go" && i == 0 {
					t.Run(names[0], func(t *testing.T) {
						t.Parallel()
						f.mustBeFound(t, s.command(t, home, f.file, text))
					})
				}
			}
			for _, script := range conform.List() {
				if !found[script.Name] {
					t.Errorf("no fault is there for %s", script.Name)
				}
			}
		})
	}
}

// in is the text of the file with the fault in it.
func (f *fault) in(t *testing.T, home string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, f.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		t.Errorf("%s has %d times the place of a fault:\n%s", f.file, n, f.old)
	}
	return strings.Replace(string(text), f.old, f.new, 1)
}

// mustBeFound runs the scripts over a driver with the fault.
func (f *fault) mustBeFound(t *testing.T, driver []string) {
	for _, name := range strings.Fields(f.scripts) {
		o := conform.Options{Command: driver, Only: name, AtOnce: 1, Patience: faultPatience}
		verdicts := conform.Try(context.Background(), o, func(conform.Verdict) {})
		switch {
		case len(verdicts) != 1 || verdicts[0].Name != name:
			t.Errorf("there is no script %s", name)
		case verdicts[0].Failed == "":
			t.Errorf("%s does not find the fault in %s", name, f.file)
		default:
			t.Logf("%s: %.300s", name, verdicts[0].Failed)
		}
	}
}

// overlay is a file that has the compiler of Go read a text in place of a file.
func overlay(t *testing.T, path, text string) string {
	dir := t.TempDir()
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir, "changed.go")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "changed.go"), text)
	write(t, filepath.Join(dir, "overlay.json"), string(list))
	return filepath.Join(dir, "overlay.json")
}

// changedCopy is a folder with parts of an SDK, one file of which has another text.
func changedCopy(t *testing.T, home, file, text string, parts ...string) string {
	dir := t.TempDir()
	args := []string{"-R"}
	for _, part := range parts {
		args = append(args, filepath.Join(home, part))
	}
	if said, err := exec.Command("cp", append(args, dir)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	write(t, filepath.Join(dir, file), text)
	return dir
}

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
