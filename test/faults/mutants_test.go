//go:build mutants

package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"codeq/test/blackbox"
)

var mutantFlag = flag.String("faults.mutant", "", "run only mutants of tests whose name contains this")

// places are how many mutants run beside each other: most of that is waiting.
var places = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// TestMutants builds the program, and the client in it, with each fault and runs
// the test that must turn red over it.
func TestMutants(t *testing.T) {
	runMutants(t, mutants, ".", "-faults.patience=40s")
	runMutants(t, clientMutants, "../../client")
	runMutants(t, programMutants, "../../cmd/codeq")
	runMutants(t, serverMutants, "../../internal/server")
	runMutants(t, coreMutants, "../../shard")
	runMutants(t, shellMutants, "../../shardactor")
	runMutants(t, apiMutants, "../../internal/httpapi")
	runMutants(t, sessionMutants, "../../session")
}

func runMutants(t *testing.T, mutants []mutant, dir string, args ...string) {
	t.Helper()
	s := newSuite(t, dir, args)
	for _, m := range mutants {
		if !strings.Contains(m.test, *mutantFlag) {
			continue
		}
		t.Run(m.test, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			said, err := s.over(t, m).CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("survived:\n%s", said)
			case !strings.Contains(string(said), "--- FAIL: "+m.test), strings.Contains(string(said), "build codeq:"):
				t.Errorf("did not run: %v\n%s", err, said)
			default:
				// What the test says must be what the fault does, and only a reader can tell.
				_, why, _ := strings.Cut(string(said), "--- FAIL: "+m.test)
				t.Logf("%s%.900s", m.test, why)
			}
		})
	}
}

// suite is a package whose tests are run over mutants. Most mutants of this package
// are in the program that it builds, and not in its own test binary, which is then
// linked once for all of them.
type suite struct {
	dir    string
	args   []string
	binary func() (string, error)
	inside string // the directories of the packages in the binary, one a line
}

func newSuite(t *testing.T, dir string, args []string) *suite {
	t.Helper()
	inside, err := exec.Command("go", "list", "-deps", "-test", "-f", "{{.Dir}}", dir).Output()
	if err != nil {
		t.Fatalf("list the packages of %s: %v", dir, err)
	}
	binary := filepath.Join(t.TempDir(), "test")
	return &suite{dir, args, sync.OnceValues(func() (string, error) {
		said, err := exec.Command("go", "test", "-c", "-vet=off", "-o", binary, dir).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build the tests of %s: %w\n%s", dir, err, said)
		}
		return binary, err
	}), string(inside)}
}

// over is the command that runs the test of a mutant over it.
func (s *suite) over(t *testing.T, m mutant) *exec.Cmd {
	t.Helper()
	overlay := m.overlay(t)
	changed, err := filepath.Abs(filepath.Join("..", "..", filepath.Dir(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	var cmd *exec.Cmd
	if strings.Contains(s.inside, changed+"\n") {
		cmd = exec.Command("go", append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=30m", "-run=^" + m.test, s.dir}, s.args...)...)
	} else {
		binary, err := s.binary()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(binary, append([]string{"-test.timeout=30m", "-test.run=^" + m.test}, s.args...)...)
		cmd.Dir = s.dir
	}
	cmd.Env = append(os.Environ(), blackbox.OverlayVariable+"="+overlay)
	return cmd
}
