package repo

import (
	"cmp"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// minPackageDocLines is the least that says what a package owns, which
// goroutine runs it and what it must not know.
const minPackageDocLines = 3

func docRules() []rule {
	return []rule{{
		name:   "every package says in doc.go what it is",
		why:    "a reader of a package first wants to know what it owns, which goroutine runs it and what it must not know",
		remedy: "write a package comment of at least 3 lines in doc.go, and only there",
		tree:   packageDocs,
	}, {
		name:   "every exported name has a doc comment",
		why:    "units, errors and the goroutine that may call are not in a signature",
		remedy: "say what it is, its unit, its errors and from which goroutine it may be used; or make it unexported",
		file:   exportedDocs,
	}, {
		name:   "a value thrown away has its reason beside it",
		why:    "an ignored error is how data is lost",
		remedy: "handle the error, or say in a comment on the line or just above it why it does not matter",
		file:   blankAssignments,
	}, {
		name:   "documents name tests that exist",
		why:    "readers trust a page that names a test as proof",
		remedy: "write the name that the test has now",
		tree:   unknownTests,
	}}
}

func packageDocs(t *tree) (found []finding) {
	documented := map[string]bool{}
	for _, f := range t.goFiles {
		switch {
		case f.test || f.ast.Doc == nil:
		case f.base() != "doc.go":
			found = append(found, f.at(f.ast.Package, "a package comment outside doc.go"))
		default:
			documented[f.dir] = strings.Count(f.ast.Doc.Text(), "\n") >= minPackageDocLines
		}
	}
	for _, f := range t.goFiles {
		if !f.test && !documented[f.dir] {
			documented[f.dir] = true // it is reported once
			found = append(found, finding{path.Join(f.dir, "doc.go"), 1, "no package comment of 3 lines"})
		}
	}
	return found
}

func exportedDocs(f *goFile) (found []finding) {
	if f.test || f.ast.Name.Name == "main" {
		return nil
	}
	eachExported(f, func(name *ast.Ident, documented bool) {
		if !documented {
			found = append(found, f.at(name.Pos(), "%s", name.Name))
		}
	})
	return found
}

// eachExported visits the exported names that a file declares. A comment above a
// group documents its constants and variables, never its types.
func eachExported(f *goFile, visit func(name *ast.Ident, documented bool)) {
	one := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() {
			visit(name, slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" }))
		}
	}
	for _, decl := range f.ast.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok {
			if receiver := receiverName(d); receiver == "" || ast.IsExported(receiver) {
				one(d.Name, d.Doc)
			}
			continue
		}
		d := decl.(*ast.GenDecl)
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if d.Lparen == token.NoPos {
					s.Doc = cmp.Or(s.Doc, d.Doc)
				}
				one(s.Name, s.Doc)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					one(name, s.Doc, s.Comment, d.Doc)
				}
			}
		}
	}
}

// receiverName is the name of the type whose method a function is, or "".
func receiverName(d *ast.FuncDecl) (name string) {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name // the first one: parameters of the type follow
		}
		return true
	})
	return name
}

func blankAssignments(f *goFile) (found []finding) {
	if f.test {
		return nil
	}
	reasoned := map[int]bool{} // lines; a comment above several such lines is for all of them
	ast.Inspect(f.ast, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || !allBlank(a.Lhs) {
			return true
		}
		line := f.line(a.Pos())
		reasoned[line] = f.commented(line) || f.commented(line-1) || reasoned[line-1]
		if !reasoned[line] {
			found = append(found, f.at(a.Pos(), "thrown away without a reason"))
		}
		return true
	})
	return found
}

func allBlank(left []ast.Expr) bool {
	for _, e := range left {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return len(left) > 0
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w+`)

// unknownTests finds names in documents with which no test begins.
func unknownTests(t *tree) (found []finding) {
	var tests strings.Builder
	for _, f := range t.goFiles {
		if f.test {
			tests.Write(f.src)
		}
	}
	for _, f := range t.texts {
		for _, name := range testName.FindAllString(f.text, -1) {
			if strings.HasSuffix(f.path, ".md") && !strings.Contains(tests.String(), "func "+name) {
				found = append(found, finding{f.path, 1, name})
			}
		}
	}
	return found
}
