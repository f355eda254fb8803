package docs

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeq/test/blackbox"
)

var rewrite = flag.Bool("rewrite", false, "write the table of reference/metrics.md anew")

const (
	metricsPage = "reference/metrics.md"
	metricsHead = "| Series | Kind | Labels | Meaning |\n|---|---|---|---|\n"
)

// seriesOf is what a page of /metrics says of a family.
type seriesOf struct {
	kind, help string
	labels     map[string]bool
}

// familiesOf reads the families of a page, with the labels of their series.
func familiesOf(page string) map[string]*seriesOf {
	all := map[string]*seriesOf{}
	name := ""
	for line := range strings.Lines(page) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch {
		case len(words) == 4 && words[1] == "HELP":
			if name = words[2]; all[name] == nil {
				all[name] = &seriesOf{labels: map[string]bool{}}
			}
			all[name].help = words[3]
		case len(words) == 4 && words[1] == "TYPE":
			name = words[2]
			if all[name] != nil {
				all[name].kind = words[3]
			}
		case all[name] != nil && strings.HasPrefix(line, name): // the series of other libraries have no head
			for _, m := range labelOf.FindAllStringSubmatch(line, -1) {
				if m[1] != "le" {
					all[name].labels[m[1]] = true
				}
			}
		}
	}
	return all
}

var labelOf = regexp.MustCompile(`[{,]([a-z_]+)="`)

// familyName is the name of a family of series as the sources write it.
var familyName = regexp.MustCompile(`"(codeq_[a-z_]*[a-z])"`)

var partOfHistogram = regexp.MustCompile(`_(sum|count)$`)

// figuresOfProviders is the /metrics of a server that takes the tokens of an identity provider.
func figuresOfProviders(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "providers.yaml")
	write(t, file, "- {name: id, issuer: me, audience: codeq, keys: \"http://127.0.0.1:1/\"}\n")
	return blackbox.Serve(t, "--providers", file).Metrics()
}

// The table of metrics is what servers of every kind say of their series, and no series that the sources
// name is missing.
func TestThePageOfMetricsIsFresh(t *testing.T) {
	all := familiesOf(aLittleOfEverything(t) + figuresOfTLS(t) + figuresOfANode(t) + figuresOfProviders(t))
	var rows strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(s.labels)) {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", name, s.kind, strings.Join(labels, ", "), strings.ReplaceAll(s.help, "|", "\\|"))
	}
	page := readPage(t, metricsPage)
	before, rest, found := strings.Cut(page, metricsHead)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table that begins with\n%s", metricsPage, metricsHead)
	}
	if want := before + metricsHead + rows.String() + "\n" + after; want != page {
		if !*rewrite {
			t.Errorf("%s is not what servers say: run \"go test ./test/docs -run TestThePageOfMetricsIsFresh -rewrite\"", metricsPage)
		} else if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := filepath.Glob("../*/*.go")
	inner, failed := filepath.Glob("../internal/*/*.go")
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(sources, inner...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range familyName.FindAllStringSubmatch(readPage(t, file), -1) {
			if all[partOfHistogram.ReplaceAllString(m[1], "")] == nil {
				t.Errorf("%s names %s, which no server of this test shows", file, m[1])
			}
		}
	}
}
