package repo

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// importTable says which packages of codeq a package imports in its code and,
// behind the bar, which others in its tests. The compiler refuses cycles.
var importTable = map[string]string{
	"internal/artifact": "internal/meter shard shardactor store wire",
	"internal/auth":     "internal/yamlfile wire",
	"internal/chaos":    "",
	"internal/conform":  "client internal/auth internal/chaos internal/testserver wire",
	"internal/credit":   "",
	"internal/docsite":  "docs sdk",
	"internal/events":   "internal/meter record shard store wire",
	"internal/audit":    "record store wire",
	"internal/callback": "mailbox record shard shardactor store wire",
	"internal/heap":     "",
	"internal/identity": "internal/auth internal/meter internal/yamlfile wire",
	"internal/keeper":   "",
	"internal/limit":    "internal/credit shard wire",
	"internal/meter":    "",
	"internal/needs":    "wire",
	"internal/paced":    "",
	"internal/peer":     "internal/paced wire",
	"internal/plot":     "",
	"internal/replica":  "internal/meter record store | wire",
	"internal/repo":     "",
	"internal/socket":   "internal/paced",
	"internal/tracing":  "internal/meter record shard shardactor store wire",
	"internal/watch":    "actor internal/auth internal/events internal/needs internal/socket mailbox record wire",
	"internal/yamlfile": "wire",
	"mailbox":           "",
	"ui":                "",
	"wire":              "",

	"actor":  "mailbox",
	"client": "internal/paced wire",
	"config": "internal/yamlfile wire",
	"index":  "internal/heap record wire",
	"lease":  "internal/heap record wire",
	"record": "wire",
	"store":  "internal/meter record wire | internal/audit",

	"loadtest":            "client wire | internal/server",
	"shard":               "index internal/credit internal/heap lease record store wire | internal/audit",
	"shardactor":          "actor index internal/credit internal/limit internal/meter mailbox record shard store wire | internal/audit",
	"session":             "actor internal/auth internal/paced internal/socket mailbox shard shardactor wire | store",
	"internal/httpapi":    "internal/artifact internal/auth internal/callback internal/limit internal/meter internal/paced internal/peer mailbox record shard shardactor store wire",
	"internal/testserver": "internal/auth internal/server",
	"client/codeqtest":    "client internal/testserver | wire",
	"internal/server":     "internal/httpapi internal/artifact internal/auth internal/callback internal/events internal/identity internal/meter internal/needs internal/paced internal/peer internal/replica internal/tracing internal/watch internal/yamlfile mailbox session shard shardactor store ui wire | client internal/audit test/blackbox",
	"cmd/codeq":           "client config internal/audit internal/auth internal/docsite internal/identity internal/keeper internal/peer internal/plot internal/replica internal/yamlfile loadtest internal/conform internal/server internal/testserver record store wire | test/blackbox",

	// The simulator drives the parts themselves; the others below test drive the
	// built program, and know the words of its sockets.
	"test/sim":            "index internal/audit internal/auth internal/callback internal/events internal/limit internal/needs internal/peer internal/replica internal/watch mailbox record session shard shardactor store wire",
	"test/blackbox":       "internal/chaos wire",
	"test/bounds":         "| test/blackbox wire",
	"test/conform":        "| internal/conform",
	"test/conform/driver": "client wire",
	"test/container":      "| client test/blackbox wire",
	"test/crash":          "| test/blackbox wire",
	"test/docs":           "| internal/httpapi internal/auth internal/yamlfile internal/server record test/blackbox wire",
	"test/faults":         "| client test/blackbox wire",
	"test/proxy":          "| client test/blackbox",
	"test/rolling":        "| client test/blackbox wire",
	"test/webhooks":       "| test/blackbox",
	"test/scale":          "| client loadtest test/blackbox wire",
	"docs":                "",
	"sdk":                 "",
	"docs/gosdk":          "| client/codeqtest",
	"docs/gosdk/producer": "client",
	"docs/gosdk/worker":   "client",
	"docs/codeqtest":      "| client client/codeqtest",
	"test/websocket":      "",
	"docs/workers":        "client | internal/server",
}

// modules says the same of packages from outside the standard library, by the
// longest prefix that fits. A star is every package.
var modules = map[string]string{
	"code.dny.dev/ssrf":                              "internal/callback",
	"github.com/HdrHistogram/hdrhistogram-go":        "loadtest",
	"github.com/VictoriaMetrics/metrics":             "internal/meter",
	"github.com/VictoriaMetrics/metricsql":           "| test/docs",
	"github.com/alecthomas/kong":                     "cmd/codeq",
	"github.com/anishathalye/porcupine":              "| test/crash",
	"github.com/aws/aws-sdk-go-v2":                   "internal/artifact",
	"github.com/aws/smithy-go":                       "internal/artifact",
	"github.com/cockroachdb/datadriven":              "| *",
	"github.com/cockroachdb/errors":                  "store",
	"github.com/cockroachdb/pebble/v2":               "store internal/replica",
	"github.com/cockroachdb/pebble/v2/vfs":           "cmd/codeq internal/artifact internal/events internal/replica internal/server internal/testserver store test/sim | *",
	"github.com/fsnotify/fsnotify":                   "internal/auth",
	"github.com/goccy/go-yaml":                       "internal/yamlfile",
	"github.com/golang-jwt/jwt/v5":                   "internal/identity | internal/server",
	"github.com/google/uuid":                         "wire",
	"github.com/hashicorp/go-hclog":                  "internal/replica",
	"github.com/hashicorp/raft":                      "internal/replica internal/server",
	"github.com/johannesboyne/gofakes3":              "| internal/artifact internal/server",
	"github.com/klauspost/compress":                  "internal/replica",
	"github.com/lxzan/gws":                           "client internal/conform internal/socket internal/watch loadtest session test/blackbox | internal/httpapi internal/server test/docs",
	"github.com/mattn/go-isatty":                     "cmd/codeq",
	"github.com/rivo/uniseg":                         "cmd/codeq",
	"github.com/rogpeppe/go-internal":                "| *",
	"github.com/rs/zerolog":                          "cmd/codeq internal/artifact internal/httpapi internal/identity internal/peer internal/replica internal/tracing internal/watch internal/server internal/testserver client/codeqtest session shardactor store test/sim | *",
	"github.com/schollz/progressbar/v3":              "cmd/codeq",
	"github.com/standard-webhooks/standard-webhooks": "| internal/callback internal/server",
	"github.com/valyala/fastjson":                    "wire",
	"github.com/yuin/goldmark":                       "internal/docsite",
	"go.opentelemetry.io/otel":                       "internal/tracing",
	"go.opentelemetry.io/proto/otlp":                 "| test/faults",
	"google.golang.org/protobuf":                     "| test/faults",
	"go.uber.org/goleak":                             "| *",
	"golang.org/x/sys":                               "cmd/codeq internal/auth internal/paced internal/server store",
	"golang.org/x/net":                               "| internal/docsite",
	"golang.org/x/term":                              "cmd/codeq",
	"pgregory.net/rapid":                             "| *",
}

// corePackages are deterministic: the same calls give the same results, byte
// for byte, whatever the time, the machine and the number of its processors.
var corePackages = []string{"index", "internal/heap", "lease", "record", "shard", "wire"}

const (
	noWorld = "io/fs net net/http os path/filepath "
	noCore  = noWorld + "context crypto/rand math/rand sync sync/atomic "
)

// unknowing lists what the code of a package must not import.
var unknowing = map[string]string{
	"index":         noCore + "encoding/json io time",
	"lease":         noCore + "encoding/json io time",
	"internal/heap": noCore + "encoding/json io time",
	"record":        noCore + "encoding/json io time",
	"shard":         noCore + "encoding/json io time",
	"wire":          noCore,
	"mailbox":       noWorld + "encoding/json io",
	"store":         "net net/http",
	// What it imports is initialised before each start of a program.
	"internal/keeper": "context encoding/binary fmt io os/exec strings",
}

// timeless are the names of package time that read no clock and wait for none.
var timeless = strings.Fields("Time Duration Month Weekday Parse ParseDuration Unix UnixMilli Date UTC " +
	"Nanosecond Microsecond Millisecond Second Minute Hour RFC3339 RFC3339Nano")

// seeded are the names of math/rand/v2 that draw only from a source that is
// handed to them.
var seeded = strings.Fields("Rand Source ChaCha8 PCG Zipf New NewChaCha8 NewPCG NewZipf")

func importRules() []rule {
	return []rule{{
		name:   "imports follow the table",
		why:    "a package that knows few others can be read, tested and replaced alone, and one package that wraps a library guards its traps in one place",
		remedy: "move the code to the package that may know both, or declare a small interface where it is used; importTable and modules in internal/repo/imports_test.go change only with a reason in the commit",
		file:   importsOutsideTable,
	}, {
		name:   "the import table names every package",
		why:    "a package without a row could not be told from one that is gone",
		remedy: "give each new package a row in importTable (internal/repo/imports_test.go), and remove the row of a package that is gone",
		tree:   tableIsWhole,
	}, {
		name:   "a package does not import what it must not know",
		why:    "the core knows no socket, file, lock or clock, so that it runs the same under a simulator",
		remedy: "take the value, such as nowMs, as a parameter from the package above; what needs a lock or a clock belongs into shardactor, credit or store",
		file:   importsUnknown,
	}, {
		name:   "the core has no goroutine, channel, clock or chance of its own",
		why:    "one goroutine owns a shard, and a run is repeated from its seed only if time and random numbers come from it",
		remedy: "make it a message or an effect, take nowMs and the source of chance as values",
		file:   impureCore,
	}}
}

// words splits a row of a table; code and tests are told apart by the bar.
func words(row string, tests bool) []string {
	code, more, _ := strings.Cut(row, "|")
	if tests {
		code += " " + more
	}
	return strings.Fields(code)
}

// imported calls visit for each import of a file.
func imported(f *goFile, visit func(importPath string, at finding)) {
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		visit(p, f.at(spec.Pos(), "imports %s", p))
	}
}

func importsOutsideTable(f *goFile) (found []finding) {
	if f.inOwnModule() {
		return nil
	}
	imported(f, func(p string, at finding) {
		first, rest, _ := strings.Cut(p, "/")
		var ok bool
		switch {
		case first == "codeq":
			ok = slices.Contains(words(importTable[f.dir], f.test), rest) || f.test && rest == f.dir
		case !strings.Contains(first, "."):
			ok = true // the standard library
		default:
			who := words(modules[moduleOf(p)], f.test)
			ok = slices.Contains(who, f.dir) || slices.Contains(who, "*")
		}
		if !ok {
			found = append(found, at)
		}
	})
	return found
}

// moduleOf is the longest prefix of an import path that modules knows.
func moduleOf(importPath string) string {
	for p := importPath; p != "."; p = path.Dir(p) {
		if _, ok := modules[p]; ok {
			return p
		}
	}
	return ""
}

func tableIsWhole(t *tree) (found []finding) {
	present := map[string]string{}
	for _, f := range t.goFiles {
		if !f.test && !f.inOwnModule() {
			present[f.dir] = f.path
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(present)) {
		if _, ok := importTable[dir]; !ok {
			found = append(found, finding{present[dir], 1, "package " + dir + " has no row"})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(importTable)) {
		if present[dir] == "" {
			found = append(found, finding{"internal/repo/imports_test.go", 1, "there is no package " + dir})
		}
	}
	return found
}

func importsUnknown(f *goFile) (found []finding) {
	if f.test {
		return nil
	}
	imported(f, func(p string, at finding) {
		if slices.Contains(strings.Fields(unknowing[f.dir]), p) {
			found = append(found, at)
		}
	})
	return found
}

func isCore(f *goFile) bool { return !f.test && slices.Contains(corePackages, f.dir) }

func impureCore(f *goFile) (found []finding) {
	if !isCore(f) {
		return nil
	}
	found = append(found, uses(f, "time", func(name string) bool { return !slices.Contains(timeless, name) })...)
	found = append(found, uses(f, "math/rand/v2", func(name string) bool { return !slices.Contains(seeded, name) })...)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if what := concurrent(n); what != "" {
			found = append(found, f.at(n.Pos(), "%s", what))
		}
		return true
	})
	return found
}

// uses reports each mention of importPath's names for which bad is true.
func uses(f *goFile, importPath string, bad func(name string) bool) (found []finding) {
	name := f.importName(importPath)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || name == "" {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == name && bad(s.Sel.Name) {
			found = append(found, f.at(s.Pos(), "%s.%s", importPath, s.Sel.Name))
		}
		return true
	})
	return found
}

// concurrent names the node if it is a statement or type that joins goroutines.
func concurrent(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType:
		return "a channel type"
	case *ast.SendStmt:
		return "a send"
	case *ast.SelectStmt:
		return "a select"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive"
		}
	}
	return ""
}
