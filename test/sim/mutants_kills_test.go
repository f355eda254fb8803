package sim

import (
	"os"
	"strings"
	"testing"
)

// killsFile holds one line for each mutant that the simulator has caught: its
// name, the seed of the run and the property that failed, between tabs. The seed
// is where the next search begins; it stops to kill as soon as the code draws
// random numbers in another order, and costs only the search then.
// `make mutants REWRITE=-rewrite` writes the file anew.
const killsFile = "testdata/kills"

// kill is how a mutant was caught.
type kill struct{ seed, property string }

func readKills(t *testing.T) map[string]kill {
	t.Helper()
	text, err := os.ReadFile(killsFile)
	if err != nil {
		t.Fatal(err)
	}
	kills := map[string]kill{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			t.Fatalf("%s: %q are not name, seed and property", killsFile, line)
		}
		kills[fields[0]] = kill{seed: fields[1], property: fields[2]}
	}
	return kills
}

// A line of a mutant that is not in the list any more is left from one that was
// renamed or taken out.
func TestKillsAreOfMutants(t *testing.T) {
	kills := readKills(t)
	for _, m := range mutants {
		delete(kills, m.name)
	}
	for name := range kills {
		t.Errorf("%s names %q, and no mutant is called that: rename the line as the mutant, or delete it", killsFile, name)
	}
}
