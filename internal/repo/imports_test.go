package repo

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// row says where a package stands and which packages of codeq it may import.
// Its tests may import what the code may, and tests besides.
type row struct {
	level   int
	imports []string
	tests   []string
}

// importTable is the order of the packages. A package imports only lower
// levels; the neighbours of one level that may are named in neighbours.
var importTable = map[string]row{
	"internal/repo":     {level: 0},
	"internal/keeper":   {level: 0},
	"mailbox":           {level: 0},
	"internal/meter":    {level: 0},
	"internal/paced":    {level: 0},
	"wire":              {level: 0},
	"internal/yamlfile": {level: 0, imports: []string{"wire"}},

	"actor":  {level: 1, imports: []string{"mailbox"}},
	"auth":   {level: 1, imports: []string{"wire", "internal/yamlfile"}},
	"client": {level: 1, imports: []string{"internal/paced", "wire"}},
	"config": {level: 1, imports: []string{"wire", "internal/yamlfile"}},
	"store":  {level: 1, imports: []string{"internal/meter", "wire"}},
	"index":  {level: 1, imports: []string{"store", "wire"}},
	"lease":  {level: 1, imports: []string{"store", "wire"}},

	"loadtest":   {level: 2, imports: []string{"client", "wire"}, tests: []string{"server"}},
	"shardactor": {level: 2, imports: []string{"actor", "index", "lease", "mailbox", "internal/meter", "store", "wire"}},

	"session": {level: 3, imports: []string{"actor", "auth", "mailbox", "internal/paced", "shardactor", "wire"}, tests: []string{"store"}},
	"httpapi": {
		level: 3, imports: []string{"auth", "mailbox", "internal/meter", "internal/paced", "shardactor", "store", "wire"},
	},

	"server": {
		level:   4,
		imports: []string{"auth", "httpapi", "mailbox", "internal/meter", "internal/paced", "session", "shardactor", "store", "wire"},
		tests:   []string{"client"},
	},

	// The simulator is imported by nobody and drives the real parts.
	"test/sim": {level: 4, imports: []string{"auth", "index", "mailbox", "session", "shardactor", "store", "wire"}},

	// What runs the built program from outside knows the words of the socket, and
	// is imported by nothing but tests.
	"test/blackbox": {level: 1, imports: []string{"wire"}},

	// What is done to the built program from outside: no code but tests.
	"test/crash":   {level: 5, tests: []string{"test/blackbox", "wire"}},
	"test/faults":  {level: 5, tests: []string{"test/blackbox", "client", "wire"}},
	"test/bounds":  {level: 5, tests: []string{"test/blackbox", "wire"}},
	"test/rolling": {level: 5, tests: []string{"test/blackbox", "client", "wire"}},
	"test/scale":   {level: 5, tests: []string{"test/blackbox", "loadtest", "wire"}},

	// The documents have no code but tests, and workers that a reader may take.
	"test/docs":    {level: 5, tests: []string{"auth", "test/blackbox", "httpapi", "server", "wire", "internal/yamlfile"}},
	"docs/workers": {level: 2, imports: []string{"client"}, tests: []string{"server"}},

	"cmd/codeq": {level: 5, imports: []string{"auth", "client", "config", "internal/keeper", "loadtest", "server", "store", "wire", "internal/yamlfile"}, tests: []string{"test/blackbox"}},
}

// neighbours are the imports inside one level: index and lease order records
// of the store, and neither reads nor writes one; wire says for all files what
// text is.
var neighbours = map[[2]string]bool{
	{"index", "store"}: true,
	{"lease", "store"}: true,

	{"internal/yamlfile", "wire"}: true,
}

// users says which packages may import a module in their code and which only
// in their tests. "*" is every package.
type users struct{ code, tests []string }

// modules are the imports from outside the standard library, by the longest
// prefix that fits.
var modules = map[string]users{
	"github.com/cockroachdb/pebble/v2":     {code: []string{"store"}},
	"github.com/cockroachdb/pebble/v2/vfs": {code: []string{"store", "server", "test/sim"}, tests: []string{"*"}},
	"github.com/cockroachdb/errors":        {code: []string{"store"}},
	"github.com/lxzan/gws":                 {code: []string{"test/blackbox", "session", "client", "loadtest"}, tests: []string{"test/docs", "httpapi", "server"}},
	"github.com/google/uuid":               {code: []string{"wire"}},
	"github.com/VictoriaMetrics/metrics":   {code: []string{"internal/meter"}},
	"github.com/valyala/fastjson":          {code: []string{"wire"}},
	"github.com/rs/zerolog": {
		code:  []string{"store", "shardactor", "session", "httpapi", "server", "test/sim", "cmd/codeq"},
		tests: []string{"*"},
	},
	"github.com/goccy/go-yaml":                {code: []string{"internal/yamlfile"}},
	"github.com/fsnotify/fsnotify":            {code: []string{"auth"}},
	"github.com/alecthomas/kong":              {code: []string{"cmd/codeq"}},
	"github.com/schollz/progressbar/v3":       {code: []string{"cmd/codeq"}},
	"github.com/mattn/go-isatty":              {code: []string{"cmd/codeq"}},
	"github.com/rivo/uniseg":                  {code: []string{"cmd/codeq"}},
	"golang.org/x/term":                       {code: []string{"cmd/codeq"}},
	"golang.org/x/sys":                        {code: []string{"internal/paced", "store", "server", "auth", "cmd/codeq"}},
	"github.com/HdrHistogram/hdrhistogram-go": {code: []string{"loadtest"}},
	"github.com/anishathalye/porcupine":       {tests: []string{"test/crash"}},
	"github.com/cockroachdb/datadriven":       {tests: []string{"*"}},
	"github.com/rogpeppe/go-internal":         {tests: []string{"*"}},
	"go.uber.org/goleak":                      {tests: []string{"*"}},
	"pgregory.net/rapid":                      {tests: []string{"*"}},
}

// unknowing lists what the code of a package must not know, by import path.
var unknowing = map[string][]string{
	"wire":       {"net", "net/http", "os", "io/fs", "path/filepath"},
	"index":      {"net", "net/http", "os", "io/fs", "path/filepath", "encoding/json", "io"},
	"lease":      {"net", "net/http", "os", "io/fs", "path/filepath", "encoding/json", "io"},
	"shardactor": {"net", "net/http", "os", "io/fs", "path/filepath", "encoding/json"},
	"mailbox":    {"net", "net/http", "os", "io/fs", "path/filepath", "encoding/json", "io"},
	"store":      {"net", "net/http"},
	// What it imports is initialised before each start of a program.
	"internal/keeper": {"fmt", "os/exec", "encoding/binary", "context", "strings", "io"},
}

func importRules() []rule {
	return []rule{{
		name:   "imports between packages follow the table",
		why:    "a package that knows only lower ones can be read, tested and replaced alone; a cycle of knowledge cannot",
		remedy: "move the code to the package that may know both, or declare a small interface where it is used; importTable in internal/repo/imports_test.go is changed only with a reason in the commit",
		file:   importsInside,
	}, {
		name:   "the import table is whole and points downwards",
		why:    "a package that is not in the table would be free to import anything, and a row that points upwards would undo the levels",
		remedy: "give each new package a row in importTable (internal/repo/imports_test.go) and remove the row of a package that is gone",
		tree:   tableIsWhole,
	}, {
		name:   "modules from outside stay with the packages that own them",
		why:    "a library that one package wraps can be replaced, and its traps are guarded in one place",
		remedy: "use the package that wraps the module, or name the new user in modules (internal/repo/imports_test.go) with a reason in the commit",
		file:   importsOutside,
	}, {
		name:   "a package does not import what it must not know",
		why:    "the core knows no socket, no HTTP, no JSON and no file name, so that it runs the same under a simulator",
		remedy: "hand the value in from the package above",
		file:   importsUnknown,
	}}
}

// imported calls visit for each import of a file.
func imported(f *goFile, visit func(importPath string, at finding)) {
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		visit(p, f.at(spec.Pos(), "imports %s", p))
	}
}

func importsInside(f *goFile) (found []finding) {
	r, known := importTable[f.dir]
	if f.inTools() || !known {
		return nil // a missing row is another rule's finding
	}
	imported(f, func(p string, at finding) {
		inside, ok := strings.CutPrefix(p, "codeq/")
		if !ok && p != "codeq" {
			return
		}
		if slices.Contains(r.imports, inside) || f.test && (slices.Contains(r.tests, inside) || inside == f.dir) {
			return
		}
		found = append(found, at)
	})
	return found
}

func tableIsWhole(t *tree) (found []finding) {
	present := map[string]string{}
	for _, f := range t.goFiles {
		if !f.test && !f.inTools() {
			present[f.dir] = f.path
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(present)) {
		if _, ok := importTable[dir]; !ok {
			found = append(found, finding{present[dir], 1, "package " + dir + " has no row"})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(importTable)) {
		if _, ok := present[dir]; !ok {
			found = append(found, finding{"internal/repo/imports_test.go", 1, "there is no package " + dir})
		}
		found = append(found, rowPointsUp(dir, importTable[dir])...)
	}
	return found
}

func rowPointsUp(dir string, r row) (found []finding) {
	for _, to := range r.imports {
		target, ok := importTable[to]
		if !ok || target.level >= r.level && !neighbours[[2]string{dir, to}] {
			what := fmt.Sprintf("the row of %s (level %d) allows %s (level %d)", dir, r.level, to, target.level)
			found = append(found, finding{"internal/repo/imports_test.go", 1, what})
		}
	}
	return found
}

func importsOutside(f *goFile) (found []finding) {
	if f.inTools() {
		return nil
	}
	imported(f, func(p string, at finding) {
		first, _, _ := strings.Cut(p, "/")
		if !strings.Contains(first, ".") {
			return // standard library, or codeq itself
		}
		u := usersOf(p)
		allowed := u.code
		if f.test {
			allowed = slices.Concat(u.code, u.tests)
		}
		if !slices.Contains(allowed, f.dir) && !slices.Contains(allowed, "*") {
			found = append(found, at)
		}
	})
	return found
}

func usersOf(importPath string) users {
	for p := importPath; p != "."; p = path.Dir(p) {
		if u, ok := modules[p]; ok {
			return u
		}
	}
	return users{}
}

func importsUnknown(f *goFile) (found []finding) {
	if f.test {
		return nil
	}
	imported(f, func(p string, at finding) {
		if slices.Contains(unknowing[f.dir], p) {
			found = append(found, at)
		}
	})
	return found
}
