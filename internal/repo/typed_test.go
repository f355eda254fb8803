package repo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// orderedPackages keep tasks in order; the core of shardactor stands on them.
var orderedPackages = []string{"index", "lease", "shardactor"}

func typedRules() []rule {
	return []rule{{
		name:   "every package type-checks",
		why:    "the rules below see nothing of a package that does not build",
		remedy: "make go build ./... pass",
		tree: func(t *tree) (found []finding) {
			for _, p := range t.typed() {
				found = append(found, p.broken...)
			}
			return found
		},
	}, {
		name:   "the core ranges over no map",
		why:    "a map gives its entries in another order each time, and with them the order of grants and of bytes in a batch",
		remedy: "keep a sorted slice, a heap or a list beside the map, or sort the keys where they are collected outside the core",
		tree:   eachTyped(mapRanges),
	}, {
		name:   "no call drops an error unseen",
		why:    "an error that nobody looks at is how data is lost",
		remedy: "return or handle it; if it cannot matter, assign it to _ with the reason in a comment",
		tree:   eachTyped(droppedErrors),
	}}
}

// typedPackage is the code of one package with the types of its expressions.
type typedPackage struct {
	files  []*goFile
	info   *types.Info
	broken []finding
}

// eachTyped makes a rule's tree function of a check of one file.
func eachTyped(check func(f *goFile, info *types.Info) []finding) func(t *tree) []finding {
	return func(t *tree) (found []finding) {
		for _, p := range t.typed() {
			for _, f := range p.files {
				found = append(found, check(f, p.info)...)
			}
		}
		return found
	}
}

// listed is one package as `go list` describes it.
type listed struct {
	ImportPath string
	Export     string // file with the compiled package's types
	GoFiles    []string
}

// typed type-checks every package of the program, once. The types of imports
// come from the build cache, so that only codeq itself is read.
func (t *tree) typed() []typedPackage {
	t.typedOnce.Do(func() {
		all, err := listPackages()
		if err != nil {
			t.typedPackages = []typedPackage{{broken: []finding{{"go.mod", 1, err.Error()}}}}
			return
		}
		exports := map[string]string{}
		for _, p := range all {
			exports[p.ImportPath] = p.Export
		}
		from := importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
			if exports[path] == "" {
				return nil, fmt.Errorf("package %s does not build", path)
			}
			return os.Open(exports[path])
		})
		for _, p := range all {
			if p.ImportPath == "codeq" || strings.HasPrefix(p.ImportPath, "codeq/") {
				t.typedPackages = append(t.typedPackages, typeCheck(t.filesOf(p), p.ImportPath, from))
			}
		}
	})
	return t.typedPackages
}

// listPackages describes every package of the program and all it imports.
func listPackages() ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "./...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as vet and build have it in the cache
	cmd.Stderr = new(bytes.Buffer)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %v", err, cmd.Stderr)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// filesOf finds the files that are built on this machine.
func (t *tree) filesOf(p listed) (files []*goFile) {
	dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "codeq"), "/")
	for _, f := range t.goFiles {
		if f.dir == path.Clean(dir) && slices.Contains(p.GoFiles, f.base()) {
			files = append(files, f)
		}
	}
	return files
}

// typeCheck finds the types of files that make up one package.
func typeCheck(files []*goFile, importPath string, from types.Importer) typedPackage {
	p := typedPackage{files: files, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}}
	conf := types.Config{Importer: from, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			where := positions.Position(e.Pos)
			p.broken = append(p.broken, finding{where.Filename, where.Line, e.Msg})
		}
	}}
	var parsed []*ast.File
	for _, f := range files {
		parsed = append(parsed, f.ast)
	}
	_, _ = conf.Check(importPath, positions, parsed, p.info) // each error went to conf.Error
	return p
}

// mapRanges finds ranges over maps, and the iterators of package maps, in the
// core of the packages that keep order.
func mapRanges(f *goFile, info *types.Info) (found []finding) {
	if !isCore(f) || !slices.Contains(orderedPackages, f.dir) {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		if !ok {
			return true
		}
		if typ := info.TypeOf(r.X); typ != nil && isMap(typ) {
			found = append(found, f.at(r.Pos(), "ranges over %s", types.ExprString(r.X)))
		}
		return true
	})
	return append(found, uses(f, "maps", func(name string) bool {
		return slices.Contains([]string{"All", "Keys", "Values"}, name)
	})...)
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// droppedErrors finds calls that stand alone although they return an error.
func droppedErrors(f *goFile, info *types.Info) (found []finding) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.ExprStmt)
		if !ok {
			return true
		}
		call, ok := s.X.(*ast.CallExpr)
		if ok && returnsError(info.TypeOf(call)) && !neverFails(call, info) {
			found = append(found, f.at(call.Pos(), "the error of %s is dropped", types.ExprString(call.Fun)))
		}
		return true
	})
	return found
}

func returnsError(t types.Type) bool {
	if tuple, ok := t.(*types.Tuple); ok {
		if tuple.Len() == 0 {
			return false
		}
		t = tuple.At(tuple.Len() - 1).Type()
	}
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// neverFails knows the calls whose error is a formality: printing for a person,
// and writers that keep everything in memory.
func neverFails(call *ast.CallExpr, info *types.Info) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if callee, ok := info.Uses[sel.Sel].(*types.Func); ok && callee.Pkg() != nil && callee.Pkg().Path() == "fmt" {
		return strings.HasPrefix(callee.Name(), "Print") || strings.HasPrefix(callee.Name(), "Fprint")
	}
	typ := info.TypeOf(sel.X)
	if typ == nil {
		return false
	}
	name := strings.TrimPrefix(types.TypeString(typ, nil), "*")
	return slices.Contains([]string{"strings.Builder", "bytes.Buffer", "hash.Hash", "hash.Hash32", "hash.Hash64"}, name)
}
