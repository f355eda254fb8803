package keeper

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a keeper does is tried where there are workers; here it is called by
// somebody who has none of its pipes.
func TestX5RoleIsNothingForPeople(t *testing.T) {
	for _, words := range [][]string{{Role}, {Role, "/bin/true"}} {
		out, err := exec.Command(os.Args[0], words...).CombinedOutput()
		var status *exec.ExitError
		if !errors.As(err, &status) || status.ExitCode() != 2 || !strings.HasPrefix(string(out), "codeq: "+Role+" is how codeq work starts") {
			t.Errorf("%q: %v, %q", words, err, out)
		}
	}
}
