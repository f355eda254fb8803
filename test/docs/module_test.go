package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// producer posts a task and waits for its result.
const producer = `package main

import (
	"context"
	"fmt"
	"log"

	"codeq/client"
)

func main() {
	ctx := context.Background()
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	task, err := c.Enqueue(ctx, "square", 12, client.Key("square-12"))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.ResultOf[map[string]int](ctx, c, task.TaskID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer["square"])
}
`

// moduleLines have a module of its own use the SDK of a copy of the repository beside it.
var moduleLines = []string{"go mod edit -require=codeq@v0.0.0 -replace=codeq=../codeq", "go get codeq/client", "go build ./..."}

// A module of its own uses the SDK in the way of go.md, without a network.
func TestModuleOfItsOwnBuildsWithTheSDK(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(root, filepath.Join(dir, "codeq")); err != nil {
		t.Fatal(err)
	}
	worker, err := os.ReadFile("workers/worker.go")
	if err != nil {
		t.Fatal(err)
	}
	shop := filepath.Join(dir, "shop")
	for file, text := range map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.27\n", "worker/main.go": string(worker), "producer/main.go": producer,
	} {
		path := filepath.Join(shop, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range moduleLines {
		goIn(t, shop, strings.Fields(line)...)
	}
	for _, path := range strings.Fields(goIn(t, shop, "go", "list", "-deps", "codeq/client")) {
		first, _, outside := strings.Cut(path, "/")
		ours := []string{"codeq/client", "codeq/wire", "codeq/internal/paced"}
		theirs := []string{"github.com/lxzan/gws", "github.com/valyala/fastjson", "github.com/google/uuid", "github.com/klauspost/compress", "golang.org/x/sys"}
		switch {
		case first == "codeq" && !slices.Contains(ours, path),
			outside && strings.Contains(first, ".") && !slices.ContainsFunc(theirs, func(module string) bool {
				return path == module || strings.HasPrefix(path, module+"/")
			}):
			t.Errorf("the SDK depends on %s", path)
		}
	}
}

// goIn runs a command of Go in a directory and returns what it prints. Modules come from
// the cache, where those of this repository are, and from nowhere else.
func goIn(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off")
	var failures strings.Builder
	cmd.Stderr = &failures
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, failures.String())
	}
	return string(out)
}
