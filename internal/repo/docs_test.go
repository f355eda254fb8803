package repo

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// minPackageDocLines is the least that says what a package owns, which
// goroutine runs it and what it must not know.
const minPackageDocLines = 3

func docRules() []rule {
	return []rule{{
		name:   "every package says in doc.go what it is",
		why:    "who opens a package wants to know what it owns, which goroutine runs it and what it must not know, before any code",
		remedy: "write a package comment of at least 3 lines in doc.go, and only there",
		tree:   packageDocs,
	}, {
		name:   "every exported name has a doc comment",
		why:    "units, errors and the goroutine that may call are not in a signature",
		remedy: "say what it is, its unit, its errors and from which goroutine it may be used; or make it unexported",
		file:   exportedDocs,
	}, {
		name:   "a value thrown away has its reason beside it",
		why:    "an error that nobody looks at is how data is lost",
		remedy: "handle the error, or say in a comment on the line or just above it why it does not matter",
		file:   blankAssignments,
	}}
}

func packageDocs(t *tree) (found []finding) {
	documented := map[string]bool{}
	for _, f := range t.goFiles {
		if f.test || f.ast.Doc == nil {
			continue
		}
		if f.base() != "doc.go" {
			found = append(found, f.at(f.ast.Package, "a package comment outside doc.go"))
			continue
		}
		documented[f.dir] = strings.Count(f.ast.Doc.Text(), "\n") >= minPackageDocLines
	}
	reported := map[string]bool{}
	for _, f := range t.goFiles {
		if !f.test && !documented[f.dir] && !reported[f.dir] {
			reported[f.dir] = true
			found = append(found, finding{path.Join(f.dir, "doc.go"), 1, "no package comment of 3 lines"})
		}
	}
	return found
}

func exportedDocs(f *goFile) (found []finding) {
	if f.test || f.ast.Name.Name == "main" {
		return nil
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) && d.Doc.Text() == "" {
				found = append(found, f.at(d.Pos(), "%s", d.Name.Name))
			}
		case *ast.GenDecl:
			found = append(found, undocumentedSpecs(f, d)...)
		}
	}
	return found
}

// undocumentedSpecs looks at types, constants and variables. A comment above a
// group documents its constants and variables, never its types.
func undocumentedSpecs(f *goFile, d *ast.GenDecl) (found []finding) {
	group := d.Doc.Text() != ""
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			documented := s.Doc.Text() != "" || group && d.Lparen == token.NoPos
			if s.Name.IsExported() && !documented {
				found = append(found, f.at(s.Pos(), "%s", s.Name.Name))
			}
		case *ast.ValueSpec:
			if group || s.Doc.Text() != "" || s.Comment.Text() != "" {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					found = append(found, f.at(name.Pos(), "%s", name.Name))
				}
			}
		}
	}
	return found
}

// receiverExported is true of functions and of methods that a reader of the
// package's documentation can see.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
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
