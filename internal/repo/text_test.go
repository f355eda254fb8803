package repo

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var (
	unfinished = regexp.MustCompile(`\b(?:T[O]DO|F[I]XME)\b`)

	// machinePath is a path that exists on one machine only.
	machinePath = regexp.MustCompile(`(?:^|[^\w.})\]/-])/(?:home|root|work|Users)/`)

	// registryHost is the address of a server that hands out packages.
	registryHost = regexp.MustCompile(`\b(?:proxy\.golang|sum\.golang|registry\.npmjs|deb\.debian|files\.pythonhosted|pypi|crates)\.(?:org|io)\b`)
)

func textRules() []rule {
	return []rule{{
		name:   "nothing is left for later",
		why:    "a note in the code is read by nobody who plans work",
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
		name:   "one toolchain everywhere",
		why:    "known vulnerabilities of the standard library are fixed in the pinned version, and only the tested one is to be shipped",
		remedy: "write the version of go.mod's toolchain line into Makefile, .ci/run and internal/tools/go.mod",
		tree:   differentToolchains,
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

// toolchainLines are where the version of Go stands, go.mod first.
var toolchainLines = []struct {
	file    string
	pattern *regexp.Regexp
}{
	{"go.mod", regexp.MustCompile(`(?m)^toolchain (go\S+)$`)},
	{"internal/tools/go.mod", regexp.MustCompile(`(?m)^toolchain (go\S+)$`)},
	{"Makefile", regexp.MustCompile(`(?m)^export GOTOOLCHAIN := (go\S+)$`)},
	{".ci/run", regexp.MustCompile(`(?m)^export GOTOOLCHAIN=(go\S+)$`)},
}

func differentToolchains(t *tree) (found []finding) {
	want := ""
	for _, l := range toolchainLines {
		got := "nothing"
		for _, f := range t.texts {
			if m := l.pattern.FindStringSubmatch(f.text); f.path == l.file && m != nil {
				got = m[1]
			}
		}
		if want == "" {
			want = got
		}
		if got != want || got == "nothing" {
			found = append(found, finding{l.file, 1, "says " + got + ", go.mod says " + want})
		}
	}
	return found
}

func TestRunsOnThePinnedToolchain(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := toolchainLines[0].pattern.FindSubmatch(mod)
	if m == nil {
		t.Fatal("go.mod has no toolchain line")
	}
	want := string(m[1])
	got, _, _ := strings.Cut(runtime.Version(), " ") // what follows names experiments
	if got != want {
		t.Fatalf("this is %s, and codeq is built and tested with %s only: known vulnerabilities are fixed in it.\n"+
			"Run 'export GOTOOLCHAIN=%s' first (go fetches it), or use make, which does it for you.", got, want, want)
	}
}
