package repo

import (
	"fmt"
	"strings"
	"testing"
)

// A rule that cannot fail protects nothing: each one is shown a file that
// breaks it and one that comes close.
var ruleExamples = []struct {
	rule string // its name, or the beginning of it
	path string
	bad  string
	good string
}{{
	rule: "imports between packages", path: "wire/x.go",
	bad:  "package wire\nimport \"codeq/store\"",
	good: "package wire\nimport \"strings\"",
}, {
	rule: "imports between packages", path: "client/x_test.go",
	bad:  "package client_test\nimport \"codeq/server\"",
	good: "package client_test\nimport \"codeq/client\"",
}, {
	rule: "modules from outside", path: "httpapi/x.go",
	bad:  "package httpapi\nimport \"github.com/cockroachdb/pebble/v2\"",
	good: "package httpapi\nimport \"github.com/rs/zerolog/log\"",
}, {
	rule: "modules from outside", path: "wire/x_test.go",
	bad:  "package wire\nimport \"github.com/lxzan/gws\"",
	good: "package wire\nimport \"pgregory.net/rapid\"",
}, {
	rule: "a package does not import what it must not know", path: "shardactor/x.go",
	bad:  "package shardactor\nimport \"net/http\"",
	good: "package shardactor\nimport \"strconv\"",
}, {
	rule: "a function has at most 70 lines", path: "wire/x.go",
	bad:  "package wire\nfunc f() {\n" + strings.Repeat("g()\n", 69) + "}",
	good: "package wire\nfunc f() {\n" + strings.Repeat("g()\n", 68) + "}",
}, {
	rule: "a function has at most 5 parameters", path: "wire/x.go",
	bad:  "package wire\nfunc f(a, b, c int, d, e, f string) {}",
	good: "package wire\nfunc (r T) f(a, b, c int, d, e string) {}",
}, {
	rule: "a file has at most 500 lines", path: "wire/x.go",
	bad:  "package wire\n" + strings.Repeat("\n", 500),
	good: "package wire\n" + strings.Repeat("\n", 499),
}, {
	rule: "a file has at most 500 lines", path: "wire/x_test.go",
	bad:  "package wire\n" + strings.Repeat("\n", 800),
	good: "package wire\n" + strings.Repeat("\n", 799),
}, {
	rule: "blocks nest at most 4 deep", path: "wire/x.go",
	bad:  "package wire\nfunc f() { for { if a { switch { case b: for { if c {} } } } } }",
	good: "package wire\nfunc f() { for { if a {} else if b {} else if c { switch { case b: for { c() } } } } }",
}, {
	rule: "no package is a drawer", path: "util/x.go",
	bad:  "package util",
	good: "package utility",
}, {
	rule: "every exported name has a doc comment", path: "wire/x.go",
	bad:  "package wire\nfunc (t *Task[K]) Name() {}",
	good: "package wire\nfunc (t *task) Name() {}\n// A to B are one scale.\nconst (\nA = 1\nB = 2\n)",
}, {
	rule: "every exported name has a doc comment", path: "wire/x.go",
	bad:  "package wire\n// Several.\ntype (\nA int\n)",
	good: "package wire\n// A is one.\ntype A int\nvar B = 1 // B is another.",
}, {
	rule: "a value thrown away", path: "store/x.go",
	bad:  "package store\nfunc f() {\n\n_ = g()\n}",
	good: "package store\nfunc f() {\n// Files that were only read.\n_ = g()\n_ = h()\n}",
}, {
	rule: "the core reads no clock", path: "lease/x.go",
	bad:  "package lease\nimport \"time\"\nvar a = time.Now()",
	good: "package lease\nimport \"time\"\nvar a = time.Second",
}, {
	rule: "the core reads no clock", path: "shardactor/x.go",
	bad:  "package shardactor\nimport now \"time\"\nvar a = now.Since",
	good: "package shardactor\nvar a = time.Now()",
}, {
	rule: "the core draws no chance", path: "wire/x.go",
	bad:  "package wire\nimport \"math/rand/v2\"\nvar a = rand.IntN(3)",
	good: "package wire\nimport \"math/rand/v2\"\nvar a = rand.New(rand.NewPCG(1, 2))\nvar b *rand.ChaCha8",
}, {
	rule: "the core draws no chance", path: "wire/x.go",
	bad:  "package wire\nimport \"crypto/rand\"",
	good: "package wire\nimport \"crypto/sha256\"",
}, {
	rule: "the core has no goroutine", path: "index/x.go",
	bad:  "package index\nimport \"sync\"",
	good: "package index\nfunc f(a *int) int { return -*a }",
}, {
	rule: "the core has no goroutine", path: "index/x.go",
	bad:  "package index\nfunc f(c <-chan int) { }",
	good: "package index\nfunc f(c []int) { }",
}, {
	rule: "only packages with a shell", path: "auth/x.go",
	bad:  "package auth\nfunc f() { go g() }",
	good: "package auth\nfunc f() { defer g() }",
}, {
	rule: "only packages with a shell", path: "auth/x.go",
	bad:  "package auth\nfunc f() { s.wg.Go(g) }",
	good: "package auth\nfunc f() { s.wg.Wait() }",
}, {
	rule: "no test sleeps", path: "wire/x_test.go",
	bad:  "package wire\nfunc f() { time.Sleep(1) }",
	good: "package wire\nfunc f() { time.Sleep(1) /* the kernel's clock */ \n synctest.Test(t, func() { time.Sleep(1) }) }",
}, {
	rule: "no test is skipped", path: "wire/x_test.go",
	bad:  "package wire\nfunc f() { t.Skip() }",
	good: "package wire\nfunc f() { t.Skipf(\"x\") // runs where there is a disk\n r.Skip() }",
}, {
	rule: "every fuzz target has a seed", path: "wire/x_test.go",
	bad:  "package wire\nfunc FuzzA(f *testing.F) { h(f) }\nfunc h(f *testing.F) { g.Add(1) }",
	good: "package wire\nfunc FuzzA(f *testing.F) { h(f) }\nfunc h(g *testing.F) { g.Add(1) }",
}, {
	rule: "every exported decoder is fuzzed", path: "wire/x.go",
	bad:  "package wire\nfunc ParseA(n int, data []byte) {}",
	good: "package wire\nfunc ParseA(text string) {}\nfunc (o *object) ParseB(data []byte) {}",
}, {
	rule: "tests of a package that starts goroutines", path: "server/x.go",
	bad:  "package server\nfunc f() { go g() }",
	good: "package server\nfunc f() { g() }",
}, {
	rule: "nothing is left for later", path: "wire/x.go",
	bad:  "package wire // TO" + "DO: more",
	good: "package wire // to do: nothing",
}, {
	rule: "no file names a path of one machine", path: "wire/x.go",
	bad:  "package wire // see /" + "home/ann/notes",
	good: "package wire // GET /v1/work/, ./work/, http://host/home/",
}, {
	rule: "no file names a package registry", path: "wire/x.go",
	bad:  "package wire // proxy.golang" + ".org",
	good: "package wire // golang.org/x/sys",
}}

func TestEveryRuleTellsBadFromGood(t *testing.T) {
	shown := map[string]bool{}
	for i, e := range ruleExamples {
		r := ruleNamed(t, e.rule)
		shown[r.name] = true
		t.Run(fmt.Sprintf("%d %s", i, r.name), func(t *testing.T) {
			if found := r.apply(treeOf(t, e.path, e.bad)); len(found) == 0 {
				t.Errorf("nothing found in\n%s", e.bad)
			}
			if found := r.apply(treeOf(t, e.path, e.good)); len(found) != 0 {
				t.Errorf("found %v in\n%s", found, e.good)
			}
		})
	}
	for _, name := range []string{ // shown by the tests below
		"the import table is whole and points downwards", "every package says in doc.go what it is",
		"every shell file that is named exists", "one toolchain everywhere", "every package type-checks",
		"the core ranges over no map", "no call drops an error unseen",
		"modules with traps stand at",
	} {
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
	f, err := parse(path, []byte(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return &tree{goFiles: []*goFile{f}, texts: []textFile{{path, src}}}
}

func TestTheImportTableWantsEveryPackageAndPointsDownwards(t *testing.T) {
	has := func(found []finding, what string) bool {
		for _, f := range found {
			if strings.Contains(f.what, what) {
				return true
			}
		}
		return false
	}
	found := tableIsWhole(treeOf(t, "novelty/x.go", "package novelty"))
	if !has(found, "package novelty has no row") || !has(found, "there is no package wire") {
		t.Errorf("found only %v", found)
	}
	for what, r := range map[string]row{
		"a higher level": {level: 1, imports: []string{"server"}},
		"its own level":  {level: 1, imports: []string{"lease"}},
		"an unknown one": {level: 1, imports: []string{"novelty"}},
	} {
		if len(rowPointsUp("index", r)) != 1 {
			t.Errorf("a row that allows %s passes", what)
		}
	}
	if found := rowPointsUp("index", row{level: 1, imports: []string{"store", "wire"}}); len(found) != 0 {
		t.Errorf("a good row: %v", found)
	}
}

func TestPackageDocsAreWantedInDocGoAndOfThreeLines(t *testing.T) {
	for src, want := range map[string]int{
		"package wire":                              1,
		"// Short.\npackage wire":                   1,
		"// One.\n//\n// Three.\npackage wire":      0,
		"// One.\n// Two.\n// Three.\npackage wire": 0,
	} {
		if found := packageDocs(treeOf(t, "wire/doc.go", src)); len(found) != want {
			t.Errorf("want %d, found %v in\n%s", want, found, src)
		}
	}
	if found := packageDocs(treeOf(t, "wire/x.go", "// One.\n// Two.\n// Three.\npackage wire")); len(found) != 2 {
		t.Errorf("a comment in the wrong file: want two findings, got %v", found)
	}
}

func TestANamedFileThatIsGoneIsFound(t *testing.T) {
	want := len(shellFiles) + len(starters)
	if found := shellFilesExist(&tree{}); len(found) != want {
		t.Errorf("want %d findings in an empty tree, got %v", want, found)
	}
}

func TestOneOtherToolchainIsFound(t *testing.T) {
	texts := []textFile{
		{"go.mod", "module codeq\ntoolchain go1.2.3\n"},
		{"internal/tools/go.mod", "toolchain go1.2.3\n"},
		{"Makefile", "export GOTOOLCHAIN := go1.2.3\n"},
		{".ci/run", "set -e\nexport GOTOOLCHAIN=go1.2.3\n"},
	}
	if found := differentToolchains(&tree{texts: texts}); len(found) != 0 {
		t.Errorf("all agree, but found %v", found)
	}
	for i := range texts {
		was := texts[i].text
		texts[i].text = strings.Replace(was, "1.2.3", "1.2.4", 1)
		if found := differentToolchains(&tree{texts: texts}); len(found) == 0 {
			t.Errorf("another version in %s is not found", texts[i].path)
		}
		texts[i].text = ""
		if found := differentToolchains(&tree{texts: texts}); len(found) == 0 {
			t.Errorf("no version in %s is not found", texts[i].path)
		}
		texts[i].text = was
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
	missing()
}`

func TestRulesThatNeedTypes(t *testing.T) {
	f := treeOf(t, "index/x.go", typedExample).goFiles[0]
	p := typeCheck([]*goFile{f}, "codeq/index", nil)
	for _, c := range []struct {
		what  string
		found []finding
		lines []int
	}{
		{"type errors", p.broken, []int{15}},
		{"map ranges", mapRanges(f, p.info), []int{8}},
		{"dropped errors", droppedErrors(f, p.info), []int{10, 11}},
	} {
		if got, want := linesOf(c.found), fmt.Sprint(c.lines); got != want {
			t.Errorf("%s: lines %s, want %s: %v", c.what, got, want, c.found)
		}
	}
	other := treeOf(t, "session/x.go", typedExample).goFiles[0]
	if found := mapRanges(other, typeCheck([]*goFile{other}, "codeq/session", nil).info); len(found) != 0 {
		t.Errorf("a map may be ranged over in session, but found %v", found)
	}
}

func linesOf(found []finding) string {
	lines := []int{}
	for _, f := range found {
		lines = append(lines, f.line)
	}
	return fmt.Sprint(lines)
}
