//go:build mutants

package sim

import (
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var mutantFlag = flag.String("sim.mutant", "", "run only mutants whose name contains this")

// TestMutants puts each fault into the code, by an overlay that leaves the
// files alone, and runs the simulator over it for at most a minute. A property
// must fail; a panic of the faulty code itself does not count, for it would
// prove the panic and not the simulator, and the run goes on. A fault that names a
// test is run against that.
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
			if _, name, ok := strings.Cut(m.test, " "); ok {
				if !strings.Contains(said, "--- FAIL: "+name) {
					t.Fatalf("did not run: %v\n%s", err, said)
				}
				return
			}
			// Several seeds run at once, and each may meet the fault in its own way.
			var properties []string
			for _, found := range caughtBy.FindAllStringSubmatch(said, -1) {
				properties = append(properties, found[1])
			}
			if properties == nil {
				t.Fatalf("did not run: %v\n%s", err, said)
			}
			for _, property := range properties {
				if slices.Contains(m.caught, property) {
					t.Logf("caught by %q %s", property, steps.FindString(said))
					return
				}
			}
			// A property is a property: it holds on the true code, with as many seeds.
			t.Logf("caught by %q, which is not on its list %s", properties, steps.FindString(said))
		})
	}
}

var (
	caughtBy = regexp.MustCompile(`(?m)^\s*caught: (.*)$`)
	steps    = regexp.MustCompile(`in step \d+ of seed \d+`)
)

// run runs the simulator over the mutant.
func (m *mutant) run(dir string) (said string, err error) {
	list, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	args := []string{"test", "-overlay", list, "-vet=off", "-count=1", "-timeout=5m"}
	if in, name, ok := strings.Cut(m.test, " "); ok {
		args = append(args, "-short", "-run=^"+name+"$", "../../"+in)
	} else {
		args = append(args, "-run=^TestSim$", ".", "-sim.for=1m", "-sim.brief", fmt.Sprint("-sim.big=", m.big))
	}
	cmd := exec.Command("go", args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
