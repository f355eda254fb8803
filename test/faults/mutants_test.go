//go:build mutants

package faults

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
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
	runMutants(t, serverMutants, "../../server")
	runMutants(t, coreMutants, "../../shardactor")
	runMutants(t, apiMutants, "../../httpapi")
	runMutants(t, sessionMutants, "../../session")
}

func runMutants(t *testing.T, mutants []mutant, dir string, args ...string) {
	t.Helper()
	for _, m := range mutants {
		if !strings.Contains(m.test, *mutantFlag) {
			continue
		}
		t.Run(m.test, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			overlay := m.overlay(t)
			cmd := exec.Command("go", append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=30m", "-run=^" + m.test, dir},
				args...)...)
			cmd.Env = append(os.Environ(), blackbox.OverlayVariable+"="+overlay)
			said, err := cmd.CombinedOutput()
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
