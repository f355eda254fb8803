//go:build mutants

package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	mutantFlag  = flag.String("sim.mutant", "", "run only mutants whose name contains this")
	rewriteFlag = flag.Bool("rewrite", false, "write the kills of this run to "+killsFile)
)

// TestMutants puts each fault into the code, by an overlay that leaves the
// files alone, and runs the simulator over it: first the seed that killed this
// mutant the last time, then new ones, for two minutes of one processor in all. A
// property must fail; a panic of the faulty code itself does not count, because it
// would prove the panic and not the simulator, and the run goes on. A fault that
// names a test is run against that.
//
// As many mutants run at once as there are processors, each on one.
func TestMutants(t *testing.T) {
	kills := readKills(t)
	var lock sync.Mutex
	t.Cleanup(func() {
		if *rewriteFlag {
			writeKills(t, kills)
		}
	})
	for _, m := range mutants {
		if !strings.Contains(m.name, *mutantFlag) {
			continue
		}
		first := kills[m.name].seed
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			said, err := m.run(t.TempDir(), first)
			if err == nil {
				t.Fatalf("survived:\n%s", said)
			}
			if _, name, ok := strings.Cut(m.test, " "); ok {
				if !strings.Contains(said, "--- FAIL: "+name) {
					t.Fatalf("did not run: %v\n%s", err, said)
				}
				return
			}
			found := caughtBy.FindStringSubmatch(said)
			if found == nil {
				t.Fatalf("did not run: %v\n%s", err, said)
			}
			caught := kill{property: found[1], seed: found[2]}
			lock.Lock()
			kills[m.name] = caught
			lock.Unlock()
			t.Logf("caught by %q in seed %s, before in seed %s", caught.property, caught.seed, first)
			if !slices.Contains(m.caught, caught.property) {
				// A property is a property: it holds on the true code, with as many seeds.
				t.Logf("which is not on its list")
			}
		})
	}
}

var caughtBy = regexp.MustCompile(`(?m)^\s*caught: (.*) in step \d+ of seed (\d+)$`)

// run runs the simulator over the mutant, from the given seed on if there is one.
func (m *mutant) run(dir, first string) (said string, err error) {
	list, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	args := []string{"test", "-overlay", list, "-vet=off", "-count=1", "-timeout=1h"}
	if in, name, ok := strings.Cut(m.test, " "); ok {
		args = append(args, "-short", "-run=^"+name+"$", "../../"+in)
	} else {
		args = append(args, "-run=^TestSim$", ".", "-sim.for=2m", "-sim.brief", fmt.Sprint("-sim.big=", m.big))
		if m.nodes {
			args = append(args, "-sim.nodes=3")
		}
	}
	if first != "" {
		args = append(args, "-sim.first="+first)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// writeKills writes the kills of the mutants there are, in the order of the list.
func writeKills(t *testing.T, kills map[string]kill) {
	t.Helper()
	var text bytes.Buffer
	for _, m := range mutants {
		if k, ok := kills[m.name]; ok {
			fmt.Fprintf(&text, "%s\t%s\t%s\n", m.name, k.seed, k.property)
		}
	}
	if err := os.WriteFile(killsFile, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
