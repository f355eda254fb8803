package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// quiet are the packages whose log is not that of a server.
var quiet = []string{"test", "docs", "sdk", "ui", "bin", "loadtest", "client", "internal/tools", "internal/repo", "internal/conform"}

// askingLines are the messages of the log with the levels warn and error, with the places that
// write them. Of a message made at run time it is the part that is certain.
func askingLines(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(quiet, name) || strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && calls(call, "Msg") && asks(call) {
				lines[certain(call.Args[0])] = fmt.Sprintf("%s:%d", name, files.Position(call.Pos()).Line)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// calls reports a call of a method of that name.
func calls(call *ast.CallExpr, name string) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == name
}

// asks reports a line that is begun with Warn or Error.
func asks(call *ast.CallExpr) bool {
	for {
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if len(call.Args) == 0 && (method.Sel.Name == "Warn" || method.Sel.Name == "Error") {
			return true
		}
		if call, ok = method.X.(*ast.CallExpr); !ok {
			return false
		}
	}
}

// certain is the text with which a message begins.
func certain(message ast.Expr) string {
	switch m := message.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(m.Value) // the file was parsed
		return strings.TrimRight(text, " ")
	case *ast.BinaryExpr:
		return certain(m.X)
	}
	return ""
}

// Each line that asks for a hand has a row in the page, and each row a line.
func TestThePageHasEachLineOfTheLogThatAsks(t *testing.T) {
	page := readPage(t, "log-lines.md")
	lines := askingLines(t)
	if len(lines) < 50 {
		t.Fatalf("only %d lines were found", len(lines))
	}
	for line, place := range lines {
		if !strings.Contains(page, "\n| `"+line) {
			t.Errorf("%s: log-lines.md has no row that begins with `%s", place, line)
		}
	}
	rows := strings.Split(page, "\n| `")[1:]
	for _, row := range rows {
		line, _, _ := strings.Cut(row, "`")
		if _, ok := lines[strings.TrimSuffix(strings.TrimSuffix(line, more), " ")]; !ok {
			t.Errorf("log-lines.md has a row for `%s`, which nothing writes", line)
		}
	}
}
