package repo

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

func testRules() []rule {
	return []rule{{
		name:   "no test sleeps",
		why:    "a test that sleeps is slow on a good day and red on a bad one",
		remedy: "wait for the event itself, or run in a synctest.Test bubble, where time stands until everybody waits; if real time must pass, say why in a comment on the line",
		file:   sleepingTests,
	}, {
		name:   "no test is skipped without a reason",
		why:    "a skipped test looks like a passed one",
		remedy: "make it run, delete it, or say in a comment on the line where it does run",
		file:   skippedTests,
	}, {
		name:   "every fuzz target has a seed",
		why:    "without one the target tests nothing in an ordinary run, and the fuzzer starts blind",
		remedy: "call f.Add with at least one input, or put one below testdata/fuzz",
		tree:   seedlessTargets,
	}, {
		name:   "every exported decoder is fuzzed",
		why:    "what reads bytes of others meets all of them one day",
		remedy: "name the Parse function in a fuzz target of its package",
		tree:   unfuzzedDecoders,
	}, {
		name:   "tests of a package that starts goroutines look for those left over",
		why:    "a goroutine that outlives its owner holds memory, and in a test it touches the next one's state",
		remedy: "end with goleak (goleak.VerifyTestMain in a TestMain), or run in a synctest.Test bubble, which waits for every goroutine",
		tree:   unwatchedGoroutines,
	}}
}

// calls visits every call of the form x.name(…) in a file.
func calls(f *goFile, visit func(x, name string, call *ast.CallExpr)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			visit(x.Name, sel.Sel.Name, call)
		}
		return true
	})
}

func sleepingTests(f *goFile) (found []finding) {
	if !f.test {
		return nil
	}
	var bubbles []ast.Node
	calls(f, func(x, name string, call *ast.CallExpr) {
		if x == "synctest" && name == "Test" {
			bubbles = append(bubbles, call)
		}
	})
	calls(f, func(x, name string, call *ast.CallExpr) {
		if x != "time" || name != "Sleep" || f.commented(f.line(call.Pos())) {
			return
		}
		inside := func(b ast.Node) bool { return b.Pos() <= call.Pos() && call.End() <= b.End() }
		if !slices.ContainsFunc(bubbles, inside) {
			found = append(found, f.at(call.Pos(), "time.Sleep"))
		}
	})
	return found
}

func skippedTests(f *goFile) (found []finding) {
	if !f.test {
		return nil
	}
	calls(f, func(x, name string, call *ast.CallExpr) {
		skips := name == "Skip" || name == "Skipf" || name == "SkipNow"
		if skips && slices.Contains([]string{"t", "b", "f", "tb"}, x) && !f.commented(f.line(call.Pos())) {
			found = append(found, f.at(call.Pos(), "%s.%s", x, name))
		}
	})
	return found
}

// seedlessTargets takes a call of Add on any value as a seed: a target may hand
// its f to a function that knows the seeds of several.
func seedlessTargets(t *tree) (found []finding) {
	for _, f := range t.goFiles {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || !f.test || d.Recv != nil || !strings.HasPrefix(d.Name.Name, "Fuzz") {
				continue
			}
			if !t.adds(f.dir, d, map[string]bool{}) && !t.hasCorpus(f.dir, d.Name.Name) {
				found = append(found, f.at(d.Pos(), "%s", d.Name.Name))
			}
		}
	}
	return found
}

func (t *tree) hasCorpus(dir, target string) bool {
	prefix := path.Join(dir, "testdata/fuzz", target) + "/"
	return slices.ContainsFunc(t.texts, func(x textFile) bool { return strings.HasPrefix(x.path, prefix) })
}

// adds says whether a function calls f.Add, itself or through a function of its
// package that it hands f to.
func (t *tree) adds(dir string, d *ast.FuncDecl, seen map[string]bool) bool {
	if len(d.Type.Params.List) == 0 || len(d.Type.Params.List[0].Names) == 0 || seen[d.Name.Name] {
		return false
	}
	seen[d.Name.Name] = true
	param := d.Type.Params.List[0].Names[0].Name
	added := false
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || added {
			return !added
		}
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, ok := fun.X.(*ast.Ident)
			added = ok && x.Name == param && fun.Sel.Name == "Add"
		case *ast.Ident:
			if helper := t.function(dir, fun.Name); helper != nil && handsOver(call, param) {
				added = t.adds(dir, helper, seen)
			}
		}
		return !added
	})
	return added
}

// handsOver says that the first argument of a call is the named variable.
func handsOver(call *ast.CallExpr, name string) bool {
	if len(call.Args) == 0 {
		return false
	}
	id, ok := call.Args[0].(*ast.Ident)
	return ok && id.Name == name
}

func (t *tree) function(dir, name string) *ast.FuncDecl {
	for _, f := range t.goFiles {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && f.dir == dir && d.Recv == nil && d.Name.Name == name {
				return d
			}
		}
	}
	return nil
}

// unfuzzedDecoders are the functions called Parse… of bytes that no fuzz target of
// their package names.
func unfuzzedDecoders(t *tree) (found []finding) {
	fuzzed := map[string]bool{}
	decoders := map[string]finding{}
	for _, f := range t.goFiles {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.FuncDecl)
			switch {
			case !ok || d.Recv != nil:
			case f.test && strings.HasPrefix(d.Name.Name, "Fuzz"):
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						fuzzed[f.dir+"."+id.Name] = true
					}
					return true
				})
			case !f.test && strings.HasPrefix(d.Name.Name, "Parse") && takesBytes(d):
				decoders[f.dir+"."+d.Name.Name] = f.at(d.Pos(), "%s", d.Name.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(decoders)) {
		if !fuzzed[name] {
			found = append(found, decoders[name])
		}
	}
	return found
}

func takesBytes(d *ast.FuncDecl) bool {
	return slices.ContainsFunc(d.Type.Params.List, func(p *ast.Field) bool {
		list, ok := p.Type.(*ast.ArrayType)
		if !ok {
			return false
		}
		of, ok := list.Elt.(*ast.Ident)
		return ok && of.Name == "byte"
	})
}

func unwatchedGoroutines(t *tree) (found []finding) {
	starts := map[string]finding{}
	watched := map[string]bool{}
	for _, f := range t.goFiles {
		if f.test {
			if f.importName("go.uber.org/goleak") != "" || f.importName("testing/synctest") != "" {
				watched[f.dir] = true
			}
			continue
		}
		for _, g := range goroutines(f) {
			g.what += "; no test of package " + f.dir + " imports goleak or synctest"
			starts[f.dir] = g
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(starts)) {
		if !watched[dir] {
			found = append(found, starts[dir])
		}
	}
	return found
}
