package conform

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"codeq/internal/conform"
)

var rounds = flag.Int("conform.rounds", 1, "how often the SDK must pass")

// scriptsAtOnce is how many scripts run at the same time; most of them wait.
const scriptsAtOnce = 16

// build makes the driver of the Go SDK, over an overlay if there is one.
func build(t *testing.T, overlay string) string {
	t.Helper()
	driver := filepath.Join(t.TempDir(), "driver")
	args := []string{"build", "-o", driver}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./driver")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, said)
	}
	return driver
}

func TestTheGoSDKPassesTheKit(t *testing.T) {
	o := conform.Options{Command: []string{build(t, "")}, AtOnce: scriptsAtOnce}
	for range *rounds {
		verdicts := conform.Try(context.Background(), o, func(v conform.Verdict) {
			if v.Failed != "" || v.Skipped != "" {
				t.Errorf("%s: %s%s\nit proves: %s\nthe driver said: %s", v.Name, v.Failed, v.Skipped, v.Proves, v.Said)
			}
		})
		if len(verdicts) < 100 {
			t.Errorf("%d scripts ran", len(verdicts))
		}
	}
}
