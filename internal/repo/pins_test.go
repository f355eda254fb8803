package repo

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// pins are modules whose version is not what a tool would choose by itself.
// exact ones are named because "latest" is an older or a broken release; floors
// are the first versions without a known vulnerability that the code reaches,
// above what the libraries themselves ask for.
var pins = []struct {
	module  string
	version string
	exact   bool
}{
	{"github.com/lxzan/gws", "v1.9.1", true},
	{"github.com/cockroachdb/pebble/v2", "v2.1.7", true},
	{"github.com/klauspost/compress", "v1.20.4", false},
	{"golang.org/x/text", "v0.41.0", false},
	{"golang.org/x/sys", "v0.44.0", false},
}

func pinRules() []rule {
	return []rule{{
		name:   "modules with traps stand at the versions that were chosen",
		why:    "gws resolves to an older release by itself, Pebble's format and fixes belong to one version, and the floors close known holes",
		remedy: "go get MODULE@VERSION; to move a pin, change it here with the reason in the commit",
		tree:   wrongPins,
	}}
}

func wrongPins(*tree) []finding {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return []finding{{"go.mod", 1, err.Error()}}
	}
	return wrongPinsIn(string(mod))
}

func wrongPinsIn(mod string) []finding {
	required := make(map[string]string)
	for line := range strings.Lines(mod) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			required[fields[0]] = fields[1]
		}
	}
	var found []finding
	for _, p := range pins {
		got := required[p.module]
		if p.exact && got != p.version || !p.exact && older(got, p.version) {
			found = append(found, finding{"go.mod", 1, p.module + " stands at " + got + ", the pin is " + p.version})
		}
	}
	return found
}

// older compares versions of the form v1.2.3; a missing one is older than any.
func older(a, b string) bool {
	partsA, partsB := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range partsB {
		if i >= len(partsA) {
			return true
		}
		numberA, errA := strconv.Atoi(partsA[i])
		numberB, errB := strconv.Atoi(partsB[i])
		if errA != nil || errB != nil {
			return a < b
		}
		if numberA != numberB {
			return numberA < numberB
		}
	}
	return false
}

func TestPinsTellBadFromGood(t *testing.T) {
	var good strings.Builder
	for _, p := range pins {
		good.WriteString("\t" + p.module + " " + p.version + " // indirect\n")
	}
	if found := wrongPinsIn(good.String()); len(found) != 0 {
		t.Errorf("found %v in\n%s", found, good.String())
	}
	for _, p := range pins {
		for _, version := range []string{"", "v0.40.9"} {
			bad := strings.Replace(good.String(), p.module+" "+p.version, p.module+" "+version, 1)
			if found := wrongPinsIn(bad); len(found) == 0 {
				t.Errorf("nothing found in\n%s", bad)
			}
		}
	}
	newer := strings.Replace(good.String(), "gws v1.9.1", "gws v1.9.2", 1)
	if found := wrongPinsIn(newer); len(found) == 0 {
		t.Errorf("an exact pin let another version through:\n%s", newer)
	}
	if older("v0.100.0", "v0.41.0") || !older("v0.9.0", "v0.41.0") {
		t.Error("versions are compared as text")
	}
}
