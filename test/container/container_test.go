package container

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// user is the one of the image.
	user = 65532
	// grace is what the server gives its sessions by default, and 10 s more are what it may take at most.
	grace = 10 * time.Second
	// work is how long a handler takes; a stop comes in the middle.
	work     = 2 * time.Second
	tasks    = 120
	inHand   = 16
	patience = time.Minute
)

// container is one life of a program in the image.
type container struct {
	cmd   *exec.Cmd
	pid   int // as this machine knows it
	ended chan error
}

// unpacked is the root of the image, which has the places that a runtime mounts.
func unpacked(t *testing.T) string {
	t.Helper()
	root := os.Getenv("CODEQ_TEST_IMAGE")
	if root == "" {
		t.Skip("CODEQ_TEST_IMAGE names no unpacked image") // make deploy-test unpacks one and sets it
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"proc", "dev"} {
		if err := os.Mkdir(filepath.Join(root, place), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	return root
}

// inside prepares a command of the image. Only data can be written.
func inside(root, data, address string, args ...string) *exec.Cmd {
	cmd := exec.Command("bwrap", append([]string{
		"--unshare-all", "--share-net", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--info-fd", "3",
		"--ro-bind", root, "/", "--bind", data, "/var/lib/codeq", "--proc", "/proc", "--dev", "/dev", "--clearenv",
		"--setenv", "CODEQ_DATA", "/var/lib/codeq", "--setenv", "CODEQ_LISTEN", address, "--setenv", "CODEQ_URL", "http://" + address,
		"--", "/codeq",
	}, args...)...)
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	return cmd
}

// start starts a server and waits until it says that it serves.
func start(t *testing.T, root, data, address string) *container {
	t.Helper()
	info, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := inside(root, data, address, "serve", "--json")
	cmd.ExtraFiles = []*os.File{theirs}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, theirs.Close()); err != nil {
		t.Fatal(err)
	}
	var child struct {
		PID int `json:"child-pid"`
	}
	if err := errors.Join(json.NewDecoder(info).Decode(&child), info.Close()); err != nil {
		t.Fatalf("the namespaces could not be made: %v", err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || !strings.Contains(line, address) {
		t.Fatalf("it says %q, %v", line, err)
	}
	c := &container{cmd: cmd, pid: child.PID, ended: make(chan error, 1)}
	go func() { c.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it fails for one that has ended
	return c
}

// stop is what a runtime does: TERM to the first process, and an end within the grace.
func (c *container) stop(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(2 * grace):
		t.Fatalf("it has not ended %v after TERM", 2*grace)
	}
	return time.Since(began)
}

func TestContainerStopsWithWorkInFlightAndLosesNone(t *testing.T) {
	root, address := unpacked(t), blackbox.Address(t)
	data := volume(t)
	first := start(t, root, data, address)
	hasNoRights(t, first.pid)
	isHealthy(t, root, data, address)

	c, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	var ids []wire.TaskID
	for i := range tasks {
		task, err := c.Enqueue(ctx, "pack", map[string]int{"n": i})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.TaskID)
	}
	full, calm := make(chan struct{}), make(chan struct{})
	works, end := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- client.Work(works, c, "pack", handler(full, calm), client.Window(inHand)) }()
	select {
	case <-full:
	case <-ctx.Done():
		t.Fatal("no worker has its hands full")
	}
	took := first.stop(t)
	t.Logf("it ended %v after TERM, with %d tasks in hand", took.Round(time.Millisecond), inHand)
	if took > grace {
		t.Errorf("it ended %v after TERM, its grace is %v", took, grace)
	}
	close(calm)

	second := start(t, root, data, address)
	for _, id := range ids {
		if _, err := c.ResultWithin(ctx, id, patience); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		task, err := c.Task(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if task.Status != wire.StatusCompleted || task.Attempts != 0 {
			t.Errorf("%s is %s after %d failed attempts", id, task.Status, task.Attempts)
		}
	}
	end()
	if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the worker: %v", err)
	}
	second.stop(t)
}

// handler takes its time for each task until it is calm, and closes full when it has as many in hand
// as it may.
func handler(full, calm chan struct{}) func(context.Context, map[string]int) (map[string]int, error) {
	var begun atomic.Int64
	return func(_ context.Context, in map[string]int) (map[string]int, error) {
		if begun.Add(1) == inHand {
			close(full)
		}
		select {
		case <-calm:
		case <-time.After(work):
		}
		return in, nil
	}
}

// volume is a directory for the data that the user of the image owns. It is not below t.TempDir,
// which is for its owner alone.
func volume(t *testing.T) string {
	t.Helper()
	data, err := os.MkdirTemp("", "codeq-container-")
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(data, user, user)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(data); err != nil {
			t.Error(err)
		}
	})
	return data
}

func hasNoRights(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{"CapEff:\t0000000000000000", "NoNewPrivs:\t1"}
	if os.Geteuid() == 0 {
		wanted = append(wanted, fmt.Sprintf("Uid:\t%d", user))
	}
	for _, line := range wanted {
		if !strings.Contains(string(status), line) {
			t.Errorf("the program has more rights than none: no %q in\n%s", line, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[4] == "/" && !strings.HasPrefix(f[5], "ro,") {
			t.Errorf("its root can be written: %s", line)
		}
	}
}

// isHealthy runs the health command of the image.
func isHealthy(t *testing.T, root, data, address string) {
	t.Helper()
	info, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := inside(root, data, address, "health", "--wait", "10s", "--quiet")
	cmd.ExtraFiles = []*os.File{info}
	if err := errors.Join(cmd.Run(), info.Close()); err != nil {
		t.Errorf("the health command: %v", err)
	}
}
