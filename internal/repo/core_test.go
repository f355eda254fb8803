package repo

import (
	"go/ast"
	"go/token"
	"slices"
)

// corePackages are deterministic: the same calls give the same results, byte
// for byte, whatever the time, the machine and the number of its processors.
var corePackages = []string{"wire", "index", "lease", "shardactor"}

// shellFiles are the files of core packages that stand around the core and need
// what it must not have: an atomic, a lock, a source of chance. They decide
// nothing about a task. A shell file that needs none of it is not named.
var shellFiles = []string{
	"shardactor/change.go",
	"shardactor/deletion.go",
	"shardactor/engine.go",
	"shardactor/outlet.go",
	"shardactor/room.go",
	"shardactor/router.go",
}

// starters may start goroutines in their code. A name ending in .go is one file,
// any other a package.
var starters = []string{
	"actor", "auth/watch.go", "test/blackbox", "client", "cmd/codeq", "httpapi", "internal/keeper", "loadtest", "server", "session",
	"store/pipeline.go", "store/watchdog.go",
}

// clocks are the functions of package time that read a clock or wait for it.
var clocks = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// randomMakers are the functions of math/rand and math/rand/v2 that make a
// source from a seed; every other one draws from the source of the process.
var randomMakers = []string{"New", "NewChaCha8", "NewPCG", "NewSource", "NewZipf"}

func coreRules() []rule {
	return []rule{{
		name:   "the core reads no clock",
		why:    "time is an argument of the core, so that a simulated day takes no time and a run can be repeated",
		remedy: "take nowMs as a parameter; what needs a clock belongs into a shell file (shellFiles in internal/repo/core_test.go)",
		file:   clockInCore,
	}, {
		name:   "the core draws no chance of its own",
		why:    "a run is repeated from its seed only if every random number comes from it",
		remedy: "take the source as a value from whoever makes the shard; ids are drawn by the router and arrive in the message",
		file:   chanceInCore,
	}, {
		name:   "the core has no goroutine, channel or lock",
		why:    "one goroutine owns a shard; whatever needs a lock or a channel would be a second owner",
		remedy: "make it a message or an effect; what joins goroutines belongs into a shell file (shellFiles in internal/repo/core_test.go) or into mailbox and actor",
		file:   concurrencyInCore,
	}, {
		name:   "only packages with a shell start goroutines",
		why:    "whoever starts a goroutine must stop it and wait for it; few places can be checked for that",
		remedy: "use actor.Start, or do the work in the goroutine that calls; starters in internal/repo/core_test.go is changed only with a reason in the commit",
		file:   looseGoroutines,
	}, {
		name:   "every shell file that is named exists",
		why:    "an exception for a file that is gone would silently hold for the next file of that name",
		remedy: "take the name out of shellFiles or starters in internal/repo/core_test.go",
		tree:   shellFilesExist,
	}}
}

// isCore says that the rules of the deterministic core hold for a file.
func isCore(f *goFile) bool {
	return !f.test && slices.Contains(corePackages, f.dir) && !slices.Contains(shellFiles, f.path)
}

// uses reports each mention of importPath's names for which bad is true.
func uses(f *goFile, importPath string, bad func(name string) bool) (found []finding) {
	name := f.importName(importPath)
	if name == "" {
		return nil
	}
	if name == "." {
		return []finding{f.at(f.ast.Package, "imports %s with a dot", importPath)}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == name && bad(s.Sel.Name) {
			found = append(found, f.at(s.Pos(), "%s.%s", importPath, s.Sel.Name))
		}
		return true
	})
	return found
}

func clockInCore(f *goFile) []finding {
	if !isCore(f) {
		return nil
	}
	return uses(f, "time", func(name string) bool { return slices.Contains(clocks, name) })
}

func chanceInCore(f *goFile) (found []finding) {
	if !isCore(f) {
		return nil
	}
	global := func(name string) bool {
		isType := ast.IsExported(name) && slices.Contains([]string{"Rand", "Source", "ChaCha8", "PCG", "Zipf"}, name)
		return !isType && !slices.Contains(randomMakers, name)
	}
	found = append(found, uses(f, "math/rand", global)...)
	found = append(found, uses(f, "math/rand/v2", global)...)
	if f.importName("crypto/rand") != "" {
		found = append(found, f.at(f.ast.Package, "imports crypto/rand"))
	}
	return found
}

func concurrencyInCore(f *goFile) (found []finding) {
	if !isCore(f) {
		return nil
	}
	for _, p := range []string{"sync", "sync/atomic", "context"} {
		if f.importName(p) != "" {
			found = append(found, f.at(f.ast.Package, "imports %s", p))
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if what := concurrent(n); what != "" {
			found = append(found, f.at(n.Pos(), "%s", what))
		}
		return true
	})
	return found
}

// concurrent names the node if it is a statement or type that joins goroutines.
func concurrent(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType:
		return "a channel type"
	case *ast.SendStmt:
		return "a send"
	case *ast.SelectStmt:
		return "a select"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive"
		}
	}
	return ""
}

func looseGoroutines(f *goFile) (found []finding) {
	if f.test || slices.Contains(starters, f.dir) || slices.Contains(starters, f.path) {
		return nil
	}
	return goroutines(f)
}

// goroutines finds where a file starts goroutines: go statements, x.Go(f) of a
// sync.WaitGroup or its like, and time.AfterFunc.
func goroutines(f *goFile) (found []finding) {
	timeName := f.importName("time")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, f.at(n.Pos(), "a go statement"))
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, isName := sel.X.(*ast.Ident)
			timer := isName && timeName != "" && x.Name == timeName && sel.Sel.Name == "AfterFunc"
			if timer || sel.Sel.Name == "Go" && len(n.Args) == 1 {
				found = append(found, f.at(n.Pos(), "a call of %s, which starts a goroutine", sel.Sel.Name))
			}
		}
		return true
	})
	return found
}

func shellFilesExist(t *tree) (found []finding) {
	present := map[string]bool{}
	for _, f := range t.goFiles {
		present[f.path] = true
		present[f.dir] = true
	}
	for _, name := range slices.Concat(shellFiles, starters) {
		if !present[name] {
			found = append(found, finding{"internal/repo/core_test.go", 1, "there is no " + name})
		}
	}
	return found
}
