package repo

import (
	"go/ast"
	"slices"
)

// The measures of the code. They are for reading: what is longer or deeper has
// to be kept in mind instead of seen.
const (
	maxFunctionLines = 70
	maxParameters    = 5
	maxFileLines     = 500
	maxTestFileLines = 800
	maxNesting       = 4
)

// drawers are package names that say nothing of what is inside.
var drawers = []string{"util", "utils", "common", "base", "types", "helper", "helpers", "misc", "models"}

func shapeRules() []rule {
	return []rule{{
		name:   "a function has at most 70 lines",
		why:    "a function is read as one piece; longer ones need a map",
		remedy: "split it along its steps; move the data of a long test table to a package variable",
		file:   longFunctions,
	}, {
		name:   "a function has at most 5 parameters",
		why:    "at the call nobody can tell six values apart",
		remedy: "pass a struct with named fields, or give the function a receiver that holds what stays the same",
		file:   manyParameters,
	}, {
		name:   "a file has at most 500 lines, a test file 800",
		why:    "one file is one subject; a long file holds several",
		remedy: "split it by subject",
		file:   longFiles,
	}, {
		name:   "blocks nest at most 4 deep",
		why:    "each level is a condition to keep in mind",
		remedy: "return early, or move the inner block to a function with a name",
		file:   deepNesting,
	}, {
		name:   "no package is a drawer",
		why:    "a package named util or common collects what belongs elsewhere, and everybody imports it",
		remedy: "name the package after the noun it owns, or leave the code where it is used",
		file:   drawerPackages,
	}}
}

// eachFunction visits every declared function and every function literal that
// is not inside one.
func eachFunction(f *goFile, visit func(name string, n ast.Node, typ *ast.FuncType)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			visit(n.Name.Name, n, n.Type)
			return false
		case *ast.FuncLit:
			visit("a function literal", n, n.Type)
			return false
		}
		return true
	})
}

func longFunctions(f *goFile) (found []finding) {
	eachFunction(f, func(name string, n ast.Node, _ *ast.FuncType) {
		if lines := f.line(n.End()) - f.line(n.Pos()) + 1; lines > maxFunctionLines {
			found = append(found, f.at(n.Pos(), "%s has %d lines", name, lines))
		}
	})
	return found
}

func manyParameters(f *goFile) (found []finding) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		typ, ok := n.(*ast.FuncType)
		if ok && typ.Params.NumFields() > maxParameters {
			found = append(found, f.at(typ.Pos(), "%d parameters", typ.Params.NumFields()))
		}
		return true
	})
	return found
}

func longFiles(f *goFile) []finding {
	limit := maxFileLines
	if f.test {
		limit = maxTestFileLines
	}
	if f.lines() > limit {
		return []finding{f.at(f.ast.Package, "%d lines", f.lines())}
	}
	return nil
}

func deepNesting(f *goFile) (found []finding) {
	eachFunction(f, func(name string, n ast.Node, _ *ast.FuncType) {
		v := &nesting{literals: !f.test}
		v.children(n, 0)
		if v.max > maxNesting {
			found = append(found, f.at(v.deepest.Pos(), "%s is %d deep here", name, v.max))
		}
	})
	return found
}

// nesting finds the deepest block under a node. Control statements and function
// literals count; an else-if is as deep as its if, a case as its switch. In
// tests literals are free: t.Run and synctest.Test are no conditions.
type nesting struct {
	literals bool
	max      int
	deepest  ast.Node
}

// children walks everything under n, which itself stands at depth.
func (v *nesting) children(n ast.Node, depth int) {
	ast.Inspect(n, func(c ast.Node) bool {
		switch c := c.(type) {
		case nil:
			return false
		case *ast.IfStmt:
			v.ifChain(c, depth+1)
			return false
		case *ast.FuncLit:
			if c == n || !v.literals {
				return true
			}
			v.reached(c, depth+1)
			v.children(c, depth+1)
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if c == n {
				return true
			}
			v.reached(c, depth+1)
			v.children(c, depth+1)
			return false
		}
		return true
	})
}

func (v *nesting) ifChain(s *ast.IfStmt, depth int) {
	v.reached(s, depth)
	if s.Init != nil {
		v.children(s.Init, depth)
	}
	v.children(s.Cond, depth)
	v.children(s.Body, depth)
	switch rest := s.Else.(type) {
	case *ast.IfStmt:
		v.ifChain(rest, depth)
	case *ast.BlockStmt:
		v.children(rest, depth)
	}
}

func (v *nesting) reached(n ast.Node, depth int) {
	if depth > v.max {
		v.max, v.deepest = depth, n
	}
}

func drawerPackages(f *goFile) []finding {
	if name := f.ast.Name.Name; slices.Contains(drawers, name) {
		return []finding{f.at(f.ast.Package, "package %s", name)}
	}
	return nil
}
