package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is one deliberate fault.
type mutant struct {
	name string
	edit
	// also is what else must give way for the fault to show: an assertion in
	// front of it.
	also []edit
	// big faults show in big worlds only, of which there are few.
	big bool
	// nodes faults are of a cluster, and show in worlds of three nodes only.
	nodes bool
	// test is who must catch a fault that nobody sees from outside, as package and
	// name; empty for the simulator.
	test string
	// caught are the properties that are there to catch it. Another may see first
	// what follows from it.
	caught []string
}

// edit makes new of old, which is in the file once.
type edit struct{ file, old, new string }

// TestMutantsHaveTheirPlaces fails as soon as the code moves away under a
// fault: running them all takes an hour, and nobody would know before.
func TestMutantsHaveTheirPlaces(t *testing.T) {
	for i := range mutants {
		m := &mutants[i]
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if len(m.caught) == 0 && m.test == "" {
			t.Errorf("%s: no property is named that may catch it", m.name)
		}
	}
}

// overlay writes the changed files and the list that names them.
func (m *mutant) overlay(dir string) (list string, err error) {
	replace := map[string]string{}
	for i, e := range append([]edit{m.edit}, m.also...) {
		file, err := filepath.Abs(filepath.Join("..", "..", e.file))
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
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, overlay, 0o600)
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
