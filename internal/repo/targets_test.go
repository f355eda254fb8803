package repo

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheProgramIsOneForEverySystem checks the types of the program as each system that has no
// tests here would compile it: to compile it for all of them takes minutes, and `make release` does.
func TestTheProgramIsOneForEverySystem(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			s := &buildOf{name: system, sources: map[string]source{}, checked: map[string]*types.Package{"unsafe": types.Unsafe}}
			if err := s.list(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.check("codeq/cmd/codeq"); err != nil {
				t.Error(err)
			}
			_, serves := s.checked["codeq/store"]
			if want := system != "windows"; serves != want {
				t.Errorf("the program for %s has the store of a server: %v, expected %v", system, serves, want)
			}
		})
	}
}

// buildOf is what one system makes of the sources. One goroutine uses it.
type buildOf struct {
	name    string
	sources map[string]source
	checked map[string]*types.Package
}

// source is a package as `go list` describes it.
type source struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string // names in the package that mean another one
}

func (s *buildOf) list() error {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap", "./cmd/codeq")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64", "GOOS="+s.name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p source
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		s.sources[p.ImportPath] = p
	}
}

// check is the package of that path, with all it imports. Of others than codeq's the bodies of
// functions are left out.
func (s *buildOf) check(name string) (*types.Package, error) {
	if p := s.checked[name]; p != nil {
		return p, nil
	}
	from, files, set := s.sources[name], []*ast.File(nil), token.NewFileSet()
	for _, file := range from.GoFiles {
		parsed, err := parser.ParseFile(set, filepath.Join(from.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, parsed)
	}
	config := types.Config{
		Importer: imports(func(wanted string) (*types.Package, error) {
			if mapped := from.ImportMap[wanted]; mapped != "" {
				wanted = mapped
			}
			return s.check(wanted)
		}),
		Sizes:            types.SizesFor("gc", "arm64"),
		IgnoreFuncBodies: !strings.HasPrefix(name, "codeq/"),
	}
	p, err := config.Check(name, set, files, nil)
	s.checked[name] = p
	return p, err
}

// imports is a function as an importer.
type imports func(string) (*types.Package, error)

// Import implements types.Importer.
func (i imports) Import(name string) (*types.Package, error) { return i(name) }
