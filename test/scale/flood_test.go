package scale

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codeq/loadtest"
	"codeq/test/blackbox"
)

// floodKind is what one tenant does while another is measured.
type floodKind struct {
	name string
	// args are those of `codeq bench`.
	args []string
}

// TestFloodOfOneTenant shows what another tenant's tasks take longer while one floods the
// only shard: enqueue and delivery of a hundred tasks a second, with and without the
// flood, in turn. No limit is set. It fails only on a wrong answer.
func TestFloodOfOneTenant(t *testing.T) {
	for _, kind := range []floodKind{
		// As much as the server takes, with a worker behind each session.
		{"100 sessions", []string{"--sessions", "100", "--producers", "100", "--pipeline", "32"}},
		// A backlog that nobody works off.
		{"100 sessions that create", []string{"--sessions", "100", "--producers", "100", "--pipeline", "100", "--batch", "10", "--creates"}},
		// Half of what it takes: processors are left.
		{"100 sessions at 5,000 tasks/s", []string{"--sessions", "100", "--producers", "100", "--pipeline", "32", "--rate", "5000"}},
	} {
		var enqueues, deliveries []float64
		for range *pairs {
			quiet, flooded := besideFlood(t, nil), besideFlood(t, kind.args)
			enqueues = append(enqueues, flooded.Enqueue.P99/quiet.Enqueue.P99)
			deliveries = append(deliveries, flooded.Delivery.P99/quiet.Delivery.P99)
			t.Logf("quiet: enqueue %v; delivery %v", quiet.Enqueue, quiet.Delivery)
			t.Logf("%s: enqueue %v; delivery %v; %.0f tasks/s were refused", kind.name, flooded.Enqueue, flooded.Delivery, flooded.RefusedPerSecond)
		}
		slices.Sort(enqueues)
		slices.Sort(deliveries)
		t.Logf("%s: p99 of enqueue is %.2f, of delivery %.2f of that without a flood (medians of %d)",
			kind.name, enqueues[*pairs/2], deliveries[*pairs/2], *pairs)
	}
}

// besideFlood measures a tenant on a server of its own, beside a flood of another one, or
// beside none.
func besideFlood(t *testing.T, args []string) *loadtest.Outcome {
	t.Helper()
	s := blackbox.Serve(t, "--shards", "1", "--tokens", twoTenants(t))
	defer s.Kill()
	if args != nil {
		defer flood(t, s, args)()
	}
	target, err := loadtest.NewRemote(s.URL(), "token-of-few", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := loadtest.Canonical()
	w.Commands, w.Producers, w.RatePerSecond = []string{"few"}, 64, 100
	w.WarmUpFor, w.MeasureFor = 2*time.Second, *loadFor
	out, err := loadtest.Run(t.Context(), loadtest.Options{Workload: w, Target: target, Server: loadtest.ProcessOf(s.PID())})
	if err != nil {
		t.Fatal(err)
	}
	if !out.Verdict.Holds() {
		t.Fatalf("%v", out.Verdict)
	}
	return out
}

// flood floods a server from a process of its own until stop is called.
func flood(t *testing.T, s *blackbox.Server, args []string) (stop func()) {
	t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	args = append([]string{"bench", "--url", s.URL(), "--token", "token-of-many", "--seconds", "3600", "--warm-up", "0"}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var over sync.WaitGroup
	over.Go(func() {
		if err := cmd.Wait(); ctx.Err() == nil {
			t.Errorf("the flood ended: %v: %s", err, said.String())
		}
	})
	return func() {
		cancel()
		over.Wait()
	}
}

// twoTenants is a file of tokens for two tenants.
func twoTenants(t *testing.T) string {
	t.Helper()
	var file strings.Builder
	for _, tenant := range []string{"few", "many"} {
		fmt.Fprintf(&file, "- {name: %s, sha256: %x, tenant: %s, subject: %s, scopes: [producer, worker, admin], commands: ['*']}\n",
			tenant, sha256.Sum256([]byte("token-of-"+tenant)), tenant, tenant)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
