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
	maxFields        = 20
)

// foreignSignatures are files with a method of an interface that others have made.
var foreignSignatures = []string{"internal/replica/snapshots.go"} // raft.SnapshotStore

// recordPackages hold structs whose fields are members of what is stored or sent.
var recordPackages = []string{"record", "wire"}

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
		why:    "a reader of a call cannot tell six values apart",
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
	}, {
		name:   "a struct has at most 20 fields, but records",
		why:    "a reader of forty fields cannot see which of them belong together",
		remedy: "give the fields that change together a struct of their own",
		file:   wideStructs,
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
		if ok && typ.Params.NumFields() > maxParameters && !slices.Contains(foreignSignatures, f.path) {
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

// deepNesting counts the control statements and function literals around each.
// An else-if is as deep as its if, a case as its switch. In tests literals are
// free: t.Run and synctest.Test are no conditions.
func deepNesting(f *goFile) (found []finding) {
	ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
		depth := 0
		around := append(slices.Clone(stack), n)
		for i, n := range around {
			if i > 0 && nests(n, around[i-1], f.test) {
				depth++
			}
		}
		if depth == maxNesting+1 && nests(n, around[max(0, len(around)-2)], f.test) {
			found = append(found, f.at(n.Pos(), "%d deep here", depth))
		}
		return depth <= maxNesting
	})
	return found
}

func nests(n, parent ast.Node, test bool) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		chain, ok := parent.(*ast.IfStmt)
		return !ok || chain.Else != n
	case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return true
	case *ast.FuncLit:
		_, declared := parent.(*ast.ValueSpec)
		return !test && !declared
	}
	return false
}

func drawerPackages(f *goFile) []finding {
	if name := f.ast.Name.Name; slices.Contains(drawers, name) {
		return []finding{f.at(f.ast.Package, "package %s", name)}
	}
	return nil
}

func wideStructs(f *goFile) (found []finding) {
	if !f.product() || slices.Contains(recordPackages, f.dir) {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := t.Type.(*ast.StructType); ok && s.Fields.NumFields() > maxFields {
			found = append(found, f.at(t.Pos(), "%s has %d fields", t.Name.Name, s.Fields.NumFields()))
		}
		return true
	})
	return found
}
