package conform

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const producer = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"codeq/client"
)

func main() {
	c, err := client.New(os.Args[1])
	if err == nil {
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		_, err = c.Enqueue(ctx, "mail", "hello", client.Key("k"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// A program in a module of its own that uses the SDK has none of the server's dependencies.
func TestProducerInAModuleOfItsOwn(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	_, versions, _ := strings.Cut(string(own), "module codeq\n")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": producer, "go.sum": string(sums),
		"go.mod": fmt.Sprintf("module producer\n\nrequire codeq v0.0.0\n\nreplace codeq => %s\n%s", root, versions),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inside := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOWORK=off")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, said)
		}
		return string(said)
	}
	inside("build", "-o", os.DevNull, ".")
	for dep := range strings.Lines(inside("list", "-deps", ".")) {
		dep = strings.TrimSpace(dep)
		first, _, _ := strings.Cut(dep, "/")
		switch {
		case dep == "producer", dep == "codeq/client", dep == "codeq/wire", dep == "codeq/internal/paced", !strings.Contains(first, ".") && first != "codeq":
		case strings.HasPrefix(dep, "github.com/lxzan/gws"), strings.HasPrefix(dep, "github.com/dolthub/maphash"), strings.HasPrefix(dep, "github.com/klauspost/compress"),
			strings.HasPrefix(dep, "github.com/google/uuid"), strings.HasPrefix(dep, "github.com/valyala/fastjson"), strings.HasPrefix(dep, "golang.org/x/sys"):
		default:
			t.Errorf("a producer depends on %s", dep)
		}
	}
}
