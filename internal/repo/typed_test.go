package repo

import (
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

func typedRules() []rule {
	return []rule{{
		name:   "the core ranges over no map",
		why:    "a map gives its entries in another order each time, and with them the order of grants and of bytes in a batch",
		remedy: "keep a sorted slice, a heap or a list beside the map, or sort the keys where they are collected outside the core",
		tree:   eachTyped(mapRanges),
	}, {
		name:   "no call drops an error unseen",
		why:    "an ignored error is how data is lost",
		remedy: "return or handle it; if it cannot matter, assign it to _ with the reason in a comment",
		tree:   eachTyped(droppedErrors),
	}}
}

// eachTyped makes a rule's tree function of a check of one file, which gets the
// types of its expressions.
func eachTyped(check func(f *goFile, info *types.Info) []finding) func(t *tree) []finding {
	return func(t *tree) (found []finding) {
		packages, err := listPackages()
		if err != nil {
			return []finding{{"go.mod", 1, err.Error()}}
		}
		from := importer.ForCompiler(positions, "gc", func(importPath string) (io.ReadCloser, error) {
			return os.Open(packages[importPath].Export)
		})
		for _, p := range packages {
			files := t.filesOf(p)
			info, err := typeCheck(files, p.ImportPath, from)
			if err != nil {
				found = append(found, finding{p.ImportPath, 1, err.Error()})
			}
			for _, f := range files {
				found = append(found, check(f, info)...)
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

// listPackages describes every package of the program and all it imports, whose
// types come from the build cache.
func listPackages() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "./...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as vet and build have it in the cache
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// filesOf finds the files of codeq that are built on this machine.
func (t *tree) filesOf(p listed) (files []*goFile) {
	for _, f := range t.goFiles {
		if path.Join("codeq", f.dir) == p.ImportPath && slices.Contains(p.GoFiles, f.base()) {
			files = append(files, f)
		}
	}
	return files
}

// typeCheck finds the types of files that make up one package.
func typeCheck(files []*goFile, importPath string, from types.Importer) (*types.Info, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	var parsed []*ast.File
	for _, f := range files {
		parsed = append(parsed, f.ast)
	}
	conf := types.Config{Importer: from}
	_, err := conf.Check(importPath, positions, parsed, info)
	return info, err
}

// mapRanges finds ranges over maps, and the iterators of package maps, in the
// core; wire keeps nothing in order but what it is given.
func mapRanges(f *goFile, info *types.Info) (found []finding) {
	if !isCore(f) || f.dir == "wire" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		if !ok {
			return true
		}
		if typ := info.TypeOf(r.X); typ != nil {
			if _, ok := typ.Underlying().(*types.Map); ok {
				found = append(found, f.at(r.Pos(), "ranges over %s", types.ExprString(r.X)))
			}
		}
		return true
	})
	return append(found, uses(f, "maps", func(name string) bool {
		return slices.Contains([]string{"All", "Keys", "Values"}, name)
	})...)
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
