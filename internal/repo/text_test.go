package repo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	unfinished = regexp.MustCompile(`\b(?:T[O]DO|F[I]XME)\b`)

	// machinePath is a path that exists on one machine only.
	machinePath = regexp.MustCompile(`(?:^|[^\w.})\]/-])/(?:home|root|work|Users)/`)

	// registryHost is the address of a server that hands out packages.
	registryHost = regexp.MustCompile(`\b(?:proxy\.golang|sum\.golang|registry\.npmjs|deb\.debian|files\.pythonhosted|pypi|crates)\.(?:org|io)\b`)
)

// pins are lines of go.mod that no tool would choose by itself: gws resolves to an
// older release, Pebble's format and fixes belong to one version, and the others
// close vulnerabilities that the code reaches, above what the libraries ask for.
var pins = []string{
	"github.com/lxzan/gws v1.9.1",
	"github.com/cockroachdb/pebble/v2 v2.1.7",
	"github.com/klauspost/compress v1.20.4",
	"golang.org/x/text v0.41.0",
}

// maxRootEntries leaves no room: whoever adds an entry moves another away, or has
// a reason as deploy/ has, which people look for before they have read anything.
const maxRootEntries = 30

func textRules() []rule {
	return []rule{{
		name:   "nothing is left for later",
		why:    "nobody who plans work reads notes in the code",
		remedy: "finish it, or leave it out and open an issue",
		tree:   func(t *tree) []finding { return t.matches(unfinished) },
	}, {
		name:   "no file names a path of one machine",
		why:    "it works for one person and fails for everybody else",
		remedy: "use a relative path, t.TempDir, a flag or an environment variable",
		tree:   func(t *tree) []finding { return t.matches(machinePath) },
	}, {
		name:   "no file names a package registry",
		why:    "where packages come from is set on the machine that builds; a fixed host breaks builds behind a mirror",
		remedy: "leave it to GOPROXY and its like",
		tree:   func(t *tree) []finding { return t.matches(registryHost) },
	}, {
		name:   "modules with traps stand at the versions that were chosen",
		why:    "gws resolves to an older release by itself, Pebble's format and fixes belong to one version, and the others close known holes",
		remedy: "go get MODULE@VERSION; to move a pin, change it in internal/repo/text_test.go with the reason in the commit",
		tree:   missingPins,
	}, {
		name:   "the root has at most 30 entries",
		why:    "a new reader looks at the root first",
		remedy: "put what only tests use below test/, and what nobody outside may import below internal/",
		tree:   rootEntries,
	}}
}

func (t *tree) matches(pattern *regexp.Regexp) (found []finding) {
	for _, f := range t.texts {
		if !pattern.MatchString(f.text) {
			continue
		}
		n := 0
		for line := range strings.Lines(f.text) {
			n++
			if m := pattern.FindString(line); m != "" {
				found = append(found, finding{f.path, n, fmt.Sprintf("%q", m)})
			}
		}
	}
	return found
}

func missingPins(t *tree) (found []finding) {
	at := slices.IndexFunc(t.texts, func(f textFile) bool { return f.path == "go.mod" })
	for _, pin := range pins {
		if at < 0 || !strings.Contains(t.texts[at].text+"\n", "\t"+pin+"\n") && !strings.Contains(t.texts[at].text, "\t"+pin+" ") {
			found = append(found, finding{"go.mod", 1, "has no line " + pin})
		}
	}
	return found
}

func rootEntries(t *tree) []finding {
	entries := map[string]bool{}
	for _, f := range t.texts {
		first, _, _ := strings.Cut(f.path, "/")
		entries[first] = true
	}
	if len(entries) > maxRootEntries {
		return []finding{{".", 1, fmt.Sprintf("%d entries", len(entries))}}
	}
	return nil
}
