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
// only shard: enqueue and delivery of a hundred tasks a second, without the flood, beside
// the same flood of a server of its own, and beside the flood, in turn. The second is what
// the processors and the disk cost that all share. No limit is set. It fails only on a
// wrong answer.
func TestFloodOfOneTenant(t *testing.T) {
	for _, kind := range []floodKind{
		// As much as the server takes, with a worker behind each session.
		{"100 sessions", []string{"--sessions", "100", "--producers", "100", "--pipeline", "32"}},
		// A backlog that nobody works off.
		{"100 sessions that create", []string{"--sessions", "100", "--producers", "100", "--pipeline", "100", "--batch", "10", "--creates"}},
		// Half of what it takes: processors are left.
		{"100 sessions at 5,000 tasks/s", []string{"--sessions", "100", "--producers", "100", "--pipeline", "32", "--rate", "5000"}},
	} {
		var toQuiet, toElsewhere ratios
		for range *pairs {
			quiet, elsewhere, flooded := besideFlood(t, nil, false), besideFlood(t, kind.args, true), besideFlood(t, kind.args, false)
			toQuiet.add(flooded, quiet)
			toElsewhere.add(flooded, elsewhere)
			t.Logf("quiet: enqueue %v; delivery %v", quiet.Enqueue, quiet.Delivery)
			t.Logf("%s of another server: enqueue %v; delivery %v", kind.name, elsewhere.Enqueue, elsewhere.Delivery)
			t.Logf("%s: enqueue %v; delivery %v; %.0f tasks/s were refused", kind.name, flooded.Enqueue, flooded.Delivery, flooded.RefusedPerSecond)
		}
		t.Logf("%s: %v of that without a flood, %v of that beside a flood of another server", kind.name, &toQuiet, &toElsewhere)
	}
}

// ratios are of p99, one of each pair.
type ratios struct{ enqueue, delivery []float64 }

func (r *ratios) add(a, b *loadtest.Outcome) {
	r.enqueue = append(r.enqueue, a.Enqueue.P99/b.Enqueue.P99)
	r.delivery = append(r.delivery, a.Delivery.P99/b.Delivery.P99)
}

// String has the medians.
func (r *ratios) String() string {
	slices.Sort(r.enqueue)
	slices.Sort(r.delivery)
	n := len(r.enqueue)
	return fmt.Sprintf("p99 of enqueue is %.2f, of delivery %.2f (medians of %d)", r.enqueue[n/2], r.delivery[n/2], n)
}

// besideFlood measures a tenant of a new server beside a flood of another tenant, which may
// be one of another server, or beside none.
func besideFlood(t *testing.T, args []string, elsewhere bool) *loadtest.Outcome {
	t.Helper()
	s := blackbox.Serve(t, "--shards", "1", "--tokens", twoTenants(t))
	defer s.Kill()
	flooded := s
	if elsewhere {
		flooded = blackbox.Serve(t, "--shards", "1", "--tokens", twoTenants(t))
		defer flooded.Kill()
	}
	if args != nil {
		defer flood(t, flooded, args)()
	}
	target, err := loadtest.NewRemote(s.URL(), "token-of-few", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := loadtest.Canonical()
	w.Commands, w.Producers, w.RatePerSecond = []string{"few"}, 64, 100
	w.WarmUpFor, w.MeasureFor = min(2*time.Second, *loadFor/4), *loadFor
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
