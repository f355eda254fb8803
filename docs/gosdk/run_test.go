package gosdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/client/codeqtest"
)

// office is a module of its own with the programs of the page.
type office struct {
	t   *testing.T
	dir string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t, t.TempDir()}
	o.run("go", "mod", "init", "office")
	o.run("go", "mod", "edit", "-require", "codeq@v0.0.0", "-replace", "codeq="+root)
	// The page has "go mod tidy" here, which asks the network for sums.
	_, versions, _ := strings.Cut(read(t, root, "go.mod"), "module codeq\n")
	o.write("go.mod", read(t, o.dir, "go.mod")+regexp.MustCompile(`(?m)^(go|toolchain) .*$`).ReplaceAllString(versions, ""))
	o.write("go.sum", read(t, root, "go.sum"))
	for _, program := range []string{"worker", "producer"} {
		o.write(filepath.Join(program, "main.go"), read(t, program, "main.go"))
	}
	return o
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (o *office) write(name, text string) {
	o.t.Helper()
	name = filepath.Join(o.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// run runs a command of the page without a network.
func (o *office) run(name string, args ...string) string {
	o.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOWORK=off")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, said.String())
	}
	return string(out)
}

// libraries are what a program needs besides the SDK and the standard library.
var libraries = []string{
	"github.com/dolthub/maphash", "github.com/google/uuid", "github.com/klauspost/compress", "github.com/lxzan/gws", "github.com/valyala/fastjson", "golang.org/x/sys",
}

// The programs of the page run as it says, in a module of their own, and none of the server's
// dependencies come along.
func TestThePageOfGoRunsInAModuleOfItsOwn(t *testing.T) {
	o := newOffice(t)
	o.run("go", "build", "-o", "bin/", "./worker", "./producer")
	for dep := range strings.Lines(o.run("go", "list", "-deps", "./...")) {
		dep = strings.TrimSpace(dep)
		first, _, _ := strings.Cut(dep, "/")
		known := first == "office" || dep == "codeq/client" || dep == "codeq/wire" || dep == "codeq/internal/paced" || first != "codeq" && !strings.Contains(first, ".")
		for _, library := range libraries {
			known = known || strings.HasPrefix(dep, library)
		}
		if !known {
			t.Errorf("a program with the SDK depends on %s", dep)
		}
	}
	s := codeqtest.New(t)
	t.Setenv("CODEQ_URL", s.URL())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	worker := exec.CommandContext(ctx, filepath.Join(o.dir, "bin", "worker"))
	var said strings.Builder
	worker.Stderr = &said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	if got, want := o.run(filepath.Join(o.dir, "bin", "producer")), "invoice for order 1\ninvoice for order 2\nmail to ada@example.com\n"; got != want {
		t.Errorf("the producer printed %q, want %q", got, want)
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil || strings.Count(said.String(), "task done") != 3 {
		t.Errorf("the worker ended with %v and said\n%s", err, said.String())
	}
}

var shown = regexp.MustCompile("(?s)<!-- file: gosdk/(\\S+) -->\n```go\n(.*?)```\n")

func TestThePageOfGoShowsTheProgramsThatRun(t *testing.T) {
	page := read(t, "..", "go.md")
	found := shown.FindAllStringSubmatch(page, -1)
	for _, m := range found {
		if m[2] != read(t, ".", m[1]) {
			t.Errorf("the page does not show %s as it is", m[1])
		}
	}
	if len(found) != 2 || !strings.Contains(page, fmt.Sprintf("%s\n%s\n%s\n", "invoice for order 1", "invoice for order 2", "mail to ada@example.com")) {
		t.Errorf("the page shows %d programs", len(found))
	}
}
