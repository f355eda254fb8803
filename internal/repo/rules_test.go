package repo

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A rule that cannot fail protects nothing: each one is shown a file that
// breaks it and one that comes close.
var ruleExamples = []struct{ rule, path, bad, good string }{ // rule is the beginning of its name
	{"imports follow", "wire/x.go", "package wire\nimport \"codeq/store\"", "package wire\nimport \"strings\""},
	{"imports follow", "client/x_test.go", "package client_test\nimport \"codeq/internal/server\"", "package client_test\nimport \"codeq/client\""},
	{"imports follow", "internal/httpapi/x.go", "package httpapi\nimport \"github.com/cockroachdb/pebble/v2\"", "package httpapi\nimport \"github.com/rs/zerolog/log\""},
	{"imports follow", "wire/x_test.go", "package wire\nimport \"github.com/lxzan/gws\"", "package wire\nimport \"pgregory.net/rapid\""},
	{"the import table names", "novelty/x.go", "package novelty", ""},
	{"a package does not import what", "shard/x.go", "package shard\nimport \"sync\"", "package shard\nimport \"strconv\""},
	{"a package does not import what", "lease/x.go", "package lease\nimport \"time\"", "package lease\nimport \"math/rand/v2\""},
	{"the core has no", "wire/x.go", "package wire\nimport now \"time\"\nvar a = now.Since", "package wire\nimport \"time\"\nvar a = time.Second"},
	{"the core has no", "shard/x.go", "package shard\nimport \"math/rand/v2\"\nvar a = rand.IntN(3)",
		"package shard\nimport \"math/rand/v2\"\nvar a = rand.New(rand.NewPCG(1, 2))\nvar b *rand.ChaCha8"},
	{"the core has no", "index/x.go", "package index\nfunc f(c <-chan int) { }", "package index\nfunc f(a *int) int { return -*a }"},
	{"the core has no", "index/x.go", "package index\nfunc f() { go g() }", "package index\nfunc f() { defer g() }"},
	{"a function has at most 70", "wire/x.go", "package wire\nfunc f() {\n" + strings.Repeat("g()\n", 69) + "}",
		"package wire\nfunc f() {\n" + strings.Repeat("g()\n", 68) + "}"},
	{"a function has at most 5", "wire/x.go", "package wire\nfunc f(a, b, c int, d, e, f string) {}", "package wire\nfunc (r T) f(a, b, c int, d, e string) {}"},
	{"a file has at most", "wire/x.go", "package wire\n" + strings.Repeat("\n", 500), "package wire\n" + strings.Repeat("\n", 499)},
	{"a file has at most", "wire/x_test.go", "package wire\n" + strings.Repeat("\n", 800), "package wire\n" + strings.Repeat("\n", 799)},
	{"blocks nest at most", "wire/x.go", "package wire\nfunc f() { for { if a { switch { case b: for { if c {} } } } } }",
		"package wire\nfunc f() { for { if a {} else if b {} else if c { switch { case b: for { c() } } } } }"},
	{"no package is a drawer", "util/x.go", "package util", "package utility"},
	{"a struct has at most", "auth/x.go", "package auth\ntype t struct {\n" + strings.Repeat("a, b, c int\n", 7) + "}",
		"package auth\ntype t struct {\n" + strings.Repeat("a, b int\n", 10) + "}"},
	{"a package has at most", "auth/x.go", "package auth\n" + strings.Repeat("\n", maxPackageLines), "package auth\n" + strings.Repeat("\n", maxPackageLines-1)},
	{"most functions are short", "auth/x.go", "package auth\nfunc f() {\n" + strings.Repeat("g()\n", 9) + "}" + strings.Repeat("\n", 80),
		"package auth\nfunc f() {\n" + strings.Repeat("g()\n", 7) + "}" + strings.Repeat("\n", 80)},
	{"exported names are used", "auth/x.go", "package auth\ntype A int\nfunc f() A", "package auth\ntype A int\nfunc (a) B() A\nvar (\nC = 1\nD = 2\n)"},
	{"every package says", "wire/doc.go", "// One.\n// Two.\npackage wire", "// One.\n//\n// Three.\npackage wire"},
	{"every exported name has", "wire/x.go", "package wire\nfunc (t *Task[K]) Name() {}", "package wire\nfunc (t *task) Name() {}\n// A to B are one scale.\nconst (\nA = 1\nB = 2\n)"},
	{"every exported name has", "wire/x.go", "package wire\n// Several.\ntype (\nA int\n)", "package wire\n// A is one.\ntype A int\nvar B = 1 // B is another."},
	{"documents name tests", "x.md", "TestThatIsGone", "Testing, Test"},
	{"a value thrown away", "store/x.go", "package store\nfunc f() {\n\n_ = g()\n}", "package store\nfunc f() {\n// Files that were only read.\n_ = g()\n_ = h()\n}"},
	{"no test sleeps", "wire/x_test.go", "package wire\nfunc f() { time.Sleep(1) }",
		"package wire\nfunc f() { time.Sleep(1) /* the kernel's clock */ \n synctest.Test(t, func() { time.Sleep(1) }) }"},
	{"no test is skipped", "wire/x_test.go", "package wire\nfunc f() { t.Skip() }", "package wire\nfunc f() { t.Skipf(\"x\") // runs where there is a disk\n r.Skip() }"},
	{"every fuzz target", "wire/x_test.go", "package wire\nfunc FuzzA(f *testing.F) { g.Add(1); f.Fuzz(h) }", "package wire\nfunc FuzzA(f *testing.F) { h(f) }\nfunc FuzzB(f *testing.F) { f.Add(1) }"},
	{"every exported decoder", "wire/x.go", "package wire\nfunc ParseA(n int, data []byte) {}", "package wire\nfunc ParseA(text string) {}\nfunc (o *object) ParseB(data []byte) {}"},
	{"tests of a package that starts", "internal/server/x.go", "package server\nfunc f() { s.wg.Go(g) }", "package server\nfunc f() { s.wg.Wait() }"},
	{"nothing is left for later", "wire/x.go", "package wire // TO" + "DO: more", "package wire // to do: nothing"},
	{"no file names a path", "wire/x.go", "package wire // see /" + "home/ann/notes", "package wire // GET /v1/work/, ./work/, http://host/home/"},
	{"no file names a package reg", "wire/x.go", "package wire // proxy.golang" + ".org", "package wire // golang.org/x/sys"},
	{"modules with traps", "go.mod", "module codeq", ""},
	{"the root has at most", "x.md", "", ""},
	{"no retired word", "auth/x.go", "package auth\nvar newSeat int", "package auth\nvar research int // a floor"},
	{"no retired word", "auth/x.go", "package auth\nvar a = `codeq_owed_total`", "package auth\nvar a = `codeq_tasks_total`"},
	{"no retired word", "auth/x.go", "package auth // takes a seat", "package auth // places, members and a twin"},
	{"no retired word", "internal/credit/x.go", "package credit\nvar freeRoom int", "package credit\nvar place int"},
}

func TestEveryRuleTellsBadFromGood(t *testing.T) {
	shown := map[string]bool{}
	for i, e := range ruleExamples {
		r := ruleNamed(t, e.rule)
		shown[r.name] = true
		t.Run(fmt.Sprintf("%d %s", i, r.name), func(t *testing.T) {
			if e.bad != "" && len(r.apply(treeOf(t, e.path, e.bad))) == 0 {
				t.Errorf("nothing found in\n%s", e.bad)
			}
			if e.good == "" {
				return
			}
			if found := r.apply(treeOf(t, e.path, e.good)); len(found) != 0 {
				t.Errorf("found %v in\n%s", found, e.good)
			}
		})
	}
	for _, name := range []string{"the core ranges", "no call drops", "a file has at most 200 KiB"} { // shown below
		shown[ruleNamed(t, name).name] = true
	}
	for _, r := range rules() {
		if !shown[r.name] {
			t.Errorf("the rule %q has no example", r.name)
		}
	}
}

func ruleNamed(t *testing.T, prefix string) rule {
	t.Helper()
	for _, r := range rules() {
		if strings.HasPrefix(r.name, prefix) {
			return r
		}
	}
	t.Fatalf("there is no rule %q", prefix)
	return rule{}
}

// treeOf is a repository of one file.
func treeOf(t *testing.T, path, src string) *tree {
	t.Helper()
	texts := []textFile{{path, src}}
	if !strings.HasSuffix(path, ".go") {
		return &tree{texts: texts}
	}
	f, err := parse(path, []byte(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return &tree{goFiles: []*goFile{f}, texts: texts}
}

func TestARootOfManyFilesIsFound(t *testing.T) {
	var many tree
	for i := range maxRootEntries + 1 {
		if found := rootEntries(&many); len(found) != 0 {
			t.Fatalf("%d entries are too many: %v", i, found)
		}
		many.texts = append(many.texts, textFile{fmt.Sprintf("%d/x.go", i), ""})
	}
	if len(rootEntries(&many)) != 1 {
		t.Error("one entry too many is not found")
	}
}

func TestALargeFileIsFound(t *testing.T) {
	var repository tree
	dir := t.TempDir()
	for name, size := range map[string]int{"fits": maxFileBytes, "large": maxFileBytes + 1, "x.test": maxFileBytes + 1} {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := repository.add(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(repository.large) != 1 || filepath.Base(repository.large[0].file) != "large" {
		t.Errorf("found %v, want the large one", repository.large)
	}
}

const typedExample = `package index
type set map[string]int
type T struct { m set; s []int }
func fails() error { return nil }
func two() (int, error) { return 0, nil }
func fine() int { return 0 }
func (t T) f() {
	for range t.m { }
	for range t.s { }
	fails()
	two()
	fine()
	_ = fails()
	defer fails()
}`

func TestRulesThatNeedTypes(t *testing.T) {
	lines := func(check func(*goFile, *types.Info) []finding, path string) string {
		f := treeOf(t, path, typedExample).goFiles[0]
		info, err := typeCheck([]*goFile{f}, "codeq/index", nil)
		if err != nil {
			t.Fatal(err)
		}
		at := []int{}
		for _, found := range check(f, info) {
			at = append(at, found.line)
		}
		return fmt.Sprint(at)
	}
	if got := lines(mapRanges, "index/x.go"); got != "[8]" {
		t.Errorf("ranges over a map in lines %s, not in 8", got)
	}
	if got := lines(mapRanges, "session/x.go"); got != "[]" {
		t.Errorf("a map may be ranged over in session, but found %s", got)
	}
	if got := lines(droppedErrors, "index/x.go"); got != "[10 11]" {
		t.Errorf("dropped errors in lines %s, not in 10 and 11", got)
	}
}
