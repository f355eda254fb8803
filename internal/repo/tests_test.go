package repo

import (
	"go/ast"
	"maps"
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
		remedy: "call f.Add with at least one input, or hand f to a function that does",
		file:   seedlessTargets,
	}, {
		name:   "every exported decoder is fuzzed",
		why:    "a decoder of foreign bytes meets every possible input one day",
		remedy: "name the Parse function in a fuzz target of its package",
		tree:   unfuzzedDecoders,
	}, {
		name:   "tests of a package that starts goroutines look for those left over",
		why:    "a goroutine that outlives its owner holds memory, and in a test it touches the next one's state",
		remedy: "end with goleak (goleak.VerifyTestMain in a TestMain), or run in a synctest.Test bubble, which waits for every goroutine",
		tree:   unwatchedGoroutines,
	}}
}

// calls visits every call of the form x.name(…) below a node; x is "" if it is not
// a name.
func calls(n ast.Node, visit func(x, name string, call *ast.CallExpr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				x, _ := sel.X.(*ast.Ident)
				if x == nil {
					x = &ast.Ident{}
				}
				visit(x.Name, sel.Sel.Name, call)
			}
		}
		return true
	})
}

func sleepingTests(f *goFile) (found []finding) {
	if !f.test {
		return nil
	}
	var bubbles []ast.Node
	calls(f.ast, func(x, name string, call *ast.CallExpr) {
		if x == "synctest" && name == "Test" {
			bubbles = append(bubbles, call)
		}
	})
	calls(f.ast, func(x, name string, call *ast.CallExpr) {
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
	calls(f.ast, func(x, name string, call *ast.CallExpr) {
		skips := name == "Skip" || name == "Skipf" || name == "SkipNow"
		if skips && slices.Contains([]string{"t", "b", "f", "tb"}, x) && !f.commented(f.line(call.Pos())) {
			found = append(found, f.at(call.Pos(), "%s.%s", x, name))
		}
	})
	return found
}

// fuzzTargets visits the fuzz targets of a test file.
func fuzzTargets(f *goFile, visit func(d *ast.FuncDecl)) {
	for _, decl := range f.ast.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && f.test && strings.HasPrefix(d.Name.Name, "Fuzz") {
			visit(d)
		}
	}
}

// seedlessTargets takes a function that is handed f for one that adds a seed.
func seedlessTargets(f *goFile) (found []finding) {
	fuzzTargets(f, func(d *ast.FuncDecl) {
		added := false
		ast.Inspect(d.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, _ := call.Fun.(*ast.SelectorExpr)
			_, helper := call.Fun.(*ast.Ident)
			added = added || sel != nil && isName(sel.X, "f") && sel.Sel.Name == "Add" ||
				helper && len(call.Args) > 0 && isName(call.Args[0], "f")
			return true
		})
		if !added {
			found = append(found, f.at(d.Pos(), "%s", d.Name.Name))
		}
	})
	return found
}

func isName(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

// unfuzzedDecoders are the functions called Parse… of bytes that no fuzz target of
// their package names.
func unfuzzedDecoders(t *tree) (found []finding) {
	fuzzed := map[string]bool{}
	for _, f := range t.goFiles {
		fuzzTargets(f, func(d *ast.FuncDecl) {
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					fuzzed[f.dir+"."+id.Name] = true
				}
				return true
			})
		})
	}
	for _, f := range t.goFiles {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if ok && !f.test && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Parse") && takesBytes(d) && !fuzzed[f.dir+"."+d.Name.Name] {
				found = append(found, f.at(d.Pos(), "%s", d.Name.Name))
			}
		}
	}
	return found
}

func takesBytes(d *ast.FuncDecl) bool {
	return slices.ContainsFunc(d.Type.Params.List, func(p *ast.Field) bool {
		list, ok := p.Type.(*ast.ArrayType)
		return ok && isName(list.Elt, "byte")
	})
}

func unwatchedGoroutines(t *tree) (found []finding) {
	starts := map[string]finding{}
	watched := map[string]bool{}
	for _, f := range t.goFiles {
		if f.inOwnModule() {
			continue
		}
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

// goroutines finds where a file starts goroutines: go statements, x.Go(f) of a
// sync.WaitGroup or its like, and time.AfterFunc.
func goroutines(f *goFile) (found []finding) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = append(found, f.at(n.Pos(), "a go statement"))
		}
		return true
	})
	calls(f.ast, func(x, name string, call *ast.CallExpr) {
		if x == "time" && name == "AfterFunc" || name == "Go" && len(call.Args) == 1 {
			found = append(found, f.at(call.Pos(), "a call of %s, which starts a goroutine", name))
		}
	})
	return found
}
