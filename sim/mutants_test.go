//go:build mutants

package sim

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var mutantFlag = flag.String("sim.mutant", "", "run only mutants whose name contains this")

// mutant is one deliberate fault.
type mutant struct {
	name string
	edit
	// also is what else must give way for the fault to show: an assertion in
	// front of it.
	also []edit
	// big faults show in big worlds only, of which there are few.
	big bool
	// caught are the properties that may catch it, as the start of a failure.
	caught []string
}

// edit makes new of old, which is in the file once.
type edit struct{ file, old, new string }

// TestMutants puts each fault into the code, by an overlay that leaves the
// files alone, and runs the simulator over it for at most a minute. A property
// must fail; a panic of the faulty code itself does not count, for it would
// prove the panic and not the simulator, and the run goes on.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		if !strings.Contains(m.name, *mutantFlag) {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			said, err := m.run(t.TempDir())
			if err == nil {
				t.Fatalf("survived:\n%s", said)
			}
			property := caughtBy.FindStringSubmatch(said)
			if property == nil {
				t.Fatalf("did not run: %v\n%s", err, said)
			}
			for _, want := range m.caught {
				if property[1] == want {
					t.Logf("caught by %q %s", property[1], steps.FindString(said))
					return
				}
			}
			t.Fatalf("caught by %q, expected one of %q\n%s", property[1], m.caught, said)
		})
	}
}

var (
	caughtBy = regexp.MustCompile(`(?m)^\s*caught: (.*)$`)
	steps    = regexp.MustCompile(`in step \d+ of seed \d+`)
)

// run runs the simulator over the mutant.
func (m *mutant) run(dir string) (said string, err error) {
	replace := map[string]string{}
	for i, e := range append([]edit{m.edit}, m.also...) {
		file, err := filepath.Abs(filepath.Join("..", e.file))
		if err != nil {
			return "", err
		}
		// Two edits may be of one file.
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := e.apply(cmp.Or(replace[file], file), changed); err != nil {
			return "", err
		}
		replace[file] = changed
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "test", "-overlay", list, "-vet=off", "-count=1", "-timeout=5m", "-run=^TestSim$",
		".", "-sim.for=1m", "-sim.brief", fmt.Sprint("-sim.big=", m.big))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// apply writes what the edit makes of a file to another.
func (e edit) apply(file, changed string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(source), e.old); n != 1 {
		return fmt.Errorf("the code has moved on: %q is in %s %d times, not once", e.old, e.file, n)
	}
	return os.WriteFile(changed, []byte(strings.Replace(string(source), e.old, e.new, 1)), 0o600)
}
