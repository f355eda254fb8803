package repo

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// rule is one thing that the repository keeps. Exactly one of file and tree is
// set: file looks at one Go file at a time, tree at everything together.
type rule struct {
	name   string
	why    string
	remedy string
	file   func(f *goFile) []finding
	tree   func(t *tree) []finding
}

// finding is one place that breaks a rule.
type finding struct {
	file string
	line int
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.what) }

// rules lists every rule; each file *_test.go brings those of its subject.
func rules() []rule {
	return slices.Concat(importRules(), shapeRules(), docRules(), typedRules(), figureRules(), wordRules(), testRules(), textRules())
}

func TestRepositoryKeepsItsRules(t *testing.T) {
	repository := loadRepository(t)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			found := r.apply(repository)
			if len(found) == 0 {
				return
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n  why:    %s\n  remedy: %s\n", r.name, r.why, r.remedy)
			for _, f := range found {
				fmt.Fprintf(&b, "  %v\n", f)
			}
			t.Error(b.String())
		})
	}
}

func (r rule) apply(t *tree) []finding {
	if r.tree != nil {
		return r.tree(t)
	}
	var found []finding
	for _, f := range t.goFiles {
		found = append(found, r.file(f)...)
	}
	return found
}

// untracked are the directories that .gitignore names, and git's own.
var untracked = []string{".git", "bin", "codeq-data", "coverage", "node_modules", "__pycache__"}

// tree is the repository as the rules see it: every file that can be tracked.
type tree struct {
	goFiles []*goFile
	texts   []textFile // Go files too
	large   []finding  // files of more than maxFileBytes
}

// goFile is one parsed Go file.
type goFile struct {
	path string // slash-separated, from the root
	dir  string // its package: "wire", "cmd/codeq", "." for the root
	test bool
	src  []byte
	ast  *ast.File
}

// textFile is a file without zero bytes.
type textFile struct {
	path string
	text string
}

func (f *goFile) base() string           { return path.Base(f.path) }
func (f *goFile) line(pos token.Pos) int { return positions.Position(pos).Line }

func (f *goFile) at(pos token.Pos, format string, args ...any) finding {
	return finding{file: f.path, line: f.line(pos), what: fmt.Sprintf(format, args...)}
}

// lines is the number of lines of the file.
func (f *goFile) lines() int { return bytes.Count(f.src, []byte("\n")) }

// inOwnModule says that the file belongs to the module of the tools, of the other queues or of the
// chart, which the rules about packages of codeq do not concern.
func (f *goFile) inOwnModule() bool {
	return strings.HasPrefix(f.path, "internal/tools/") || strings.HasPrefix(f.path, "test/peers/") || strings.HasPrefix(f.path, "test/deploy/")
}

// product says that the file belongs to the program: not to tests, to what only
// tests use, to the tools or to the examples of the documents.
func (f *goFile) product() bool {
	for _, other := range []string{"docs/", "internal/repo/", "internal/tools/", "test/"} {
		if strings.HasPrefix(f.path, other) {
			return false
		}
	}
	return !f.test
}

// importName is the name by which the file calls an imported package, or "".
func (f *goFile) importName(importPath string) string {
	for _, spec := range f.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		if importPath == "math/rand/v2" {
			return "rand"
		}
		return path.Base(importPath)
	}
	return ""
}

// commented says whether a line has a comment beside code, or of its own.
func (f *goFile) commented(line int) bool {
	for _, group := range f.ast.Comments {
		if f.line(group.Pos()) <= line && line <= f.line(group.End()) {
			return true
		}
	}
	return false
}

// positions are those of all files together, as the type checker wants them.
var positions = token.NewFileSet()

// parse makes a goFile of a source text.
func parse(name string, src []byte) (*goFile, error) {
	f := &goFile{
		path: name,
		dir:  path.Dir(name),
		test: strings.HasSuffix(name, "_test.go"),
		src:  src,
	}
	var err error
	f.ast, err = parser.ParseFile(positions, name, src, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

var repositoryOnce = sync.OnceValues(readRepository)

func loadRepository(t *testing.T) *tree {
	t.Helper()
	repository, err := repositoryOnce()
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.goFiles) < 20 {
		t.Fatalf("read only %d Go files: the tests must run in the root of the repository", len(repository.goFiles))
	}
	return repository
}

func readRepository() (*tree, error) {
	t := &tree{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(untracked, d.Name()) && d.IsDir():
			return fs.SkipDir
		case !d.Type().IsRegular() || name == ".git":
			return nil
		}
		return t.add(filepath.ToSlash(name))
	})
	return t, err
}

// isBuilt says that .gitignore keeps the file out: a program or what a run left.
func isBuilt(name string) bool {
	return name == "codeq" || slices.Contains([]string{".test", ".prof", ".cover"}, path.Ext(name))
}

func (t *tree) add(name string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if len(src) > maxFileBytes && !isBuilt(name) {
		t.large = append(t.large, finding{name, 1, fmt.Sprintf("%d bytes", len(src))})
	}
	if !bytes.Contains(src, []byte{0}) {
		t.texts = append(t.texts, textFile{name, string(src)})
	}
	if !strings.HasSuffix(name, ".go") {
		return nil
	}
	f, err := parse(name, src)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	t.goFiles = append(t.goFiles, f)
	return nil
}
