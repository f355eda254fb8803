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
	allFaults = flag.Bool("conform.faults", false, "put each fault into the SDK, not the first alone")
	rounds    = flag.Int("conform.rounds", 1, "how often the SDK must pass")
	oneFault  = flag.String("conform.fault", "", "put only faults into the SDK that a script of this name must find")
)

const (
	// scriptsAtOnce is how many scripts run at the same time; most of them wait.
	scriptsAtOnce = 16
	// faultPatience is how long a script waits for what a fault keeps away.
	faultPatience = 6 * time.Second
)

// build makes the driver of the Go SDK, over an overlay if there is one.
func build(t *testing.T, overlay string) string {
	t.Helper()
	driver := filepath.Join(t.TempDir(), "driver")
	args := []string{"build", "-o", driver}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./driver")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, said)
	}
	return driver
}

func TestTheGoSDKPassesTheKit(t *testing.T) {
	o := conform.Options{Command: []string{build(t, "")}, AtOnce: scriptsAtOnce}
	for range *rounds {
		verdicts := conform.Try(context.Background(), o, func(v conform.Verdict) {
			if v.Failed != "" || v.Skipped != "" {
				t.Errorf("%s: %s%s\nit proves: %s\nthe driver said: %s", v.Name, v.Failed, v.Skipped, v.Proves, v.Said)
			}
		})
		if len(verdicts) < 100 {
			t.Errorf("%d scripts ran", len(verdicts))
		}
	}
}

// Each script has a fault that it must find, and each fault has its place. The short form finds the first.
func TestEachScriptFindsAFault(t *testing.T) {
	found := map[string]bool{}
	for i, f := range faults {
		for _, name := range strings.Fields(f.scripts) {
			found[name] = true
		}
		overlay := f.overlay(t)
		switch {
		case *oneFault != "" && !strings.Contains(f.scripts, *oneFault):
		case *allFaults, *oneFault != "", i == 0:
			t.Run(strings.Fields(f.scripts)[0], func(t *testing.T) {
				t.Parallel()
				f.mustBeFound(t, build(t, overlay))
			})
		}
	}
	for _, s := range conform.List() {
		if !found[s.Name] {
			t.Errorf("no fault is there for %s", s.Name)
		}
	}
}

// mustBeFound runs the scripts over a driver with the fault.
func (f *fault) mustBeFound(t *testing.T, driver string) {
	for _, name := range strings.Fields(f.scripts) {
		o := conform.Options{Command: []string{driver}, Only: name, AtOnce: 1, Patience: faultPatience}
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

// overlay is a file that has the compiler read the fault in place of the file, whose text old must be
// in it once.
func (f *fault) overlay(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", f.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		t.Errorf("%s has %d times the place of a fault:\n%s", f.file, n, f.old)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{changed: strings.Replace(string(text), f.old, f.new, 1), overlay: string(list)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
