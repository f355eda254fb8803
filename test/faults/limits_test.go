package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// newSiteUnder is newSite for a server that begins as a shell with some commands.
func newSiteUnder(t *testing.T, commands string, args ...string) *site {
	t.Helper()
	t.Parallel()
	x := &site{t: t, ctx: t.Context()}
	x.server = blackbox.ServeUnder(t, commands, args...)
	x.api = blackbox.NewAPI(x.server.Addr)
	t.Cleanup(x.api.Close)
	return x
}

// mustNotServe starts a server that ends with an error, and returns what it said.
func mustNotServe(t *testing.T, code int, commands string, args ...string) string {
	t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data")}, args...)
	cmd := blackbox.Under(commands, path, args...)
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended meanwhile
	defer stop()
	said, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != code {
		t.Fatalf("with %q it ends with %v, want exit code %d; it says:\n%s", commands, err, code, said)
	}
	return string(said)
}

// A server that could not keep what it needs open does not start, and says how
// much that is.
func TestN14TooFewDescriptorsAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for commands, want := range map[string]string{
		"ulimit -n 64":  "the limit of open files is 64, and the server needs 256 at the least",
		"ulimit -n 255": "the limit of open files is 255, and the server needs 256 at the least",
	} {
		if said := mustNotServe(t, 1, commands); !strings.Contains(said, want) || !strings.Contains(said, "ulimit -n") ||
			strings.Contains(said, "panic") || strings.Count(said, "\n") != 1 {
			t.Errorf("with %q it says:\n%s", commands, said)
		}
	}
}

// The soft limit is raised as far as the hard one, to the last descriptor.
func TestN14SoftLimitIsRaised(t *testing.T) {
	x := newSiteUnder(t, "ulimit -S -n 100; ulimit -H -n 256")
	if most := blackbox.Figure(x.server.Metrics(), "process_max_fds"); most != 256 {
		t.Errorf("the limit is %v", most)
	}
}

// silent opens connections on which nothing is said, and returns those that were
// not refused or closed. They end with the test.
func (x *site) silent(n int) (open []net.Conn) {
	x.t.Helper()
	for range n {
		conn, err := net.Dial("tcp", x.server.Addr)
		if err != nil {
			x.t.Fatalf("connection %d: %v", len(open), err)
		}
		x.t.Cleanup(func() { _ = conn.Close() }) // nothing was said on it
		open = append(open, conn)
	}
	return open
}

// Three hundred sockets on which nothing is said cost those who speak nothing, and
// the store meets no limit: its logs and tables are made and opened beside them.
func TestN14SilentSocketsCostNobodyAnything(t *testing.T) {
	for _, limit := range []int{256, 1024} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			x := newSiteUnder(t, fmt.Sprintf("ulimit -n %d", limit), "--memory", "128MiB")
			page := x.server.Metrics()
			most := int(blackbox.Figure(page, "codeq_connections_limit"))
			if most < limit/4 || most > limit/2 {
				t.Fatalf("%d connections of %d descriptors", most, limit)
			}
			w := x.worker(x.server.Addr, "w", 4, 60)
			x.silent(300 + 2*most)
			// Memtables of 4 MiB: some dozen logs and tables come and go.
			for range scale(3, 30) {
				for range scale(8, 80) {
					x.through(w, 400<<10)
				}
				x.silent(most)
			}
			page = x.server.Metrics()
			if refused := blackbox.Figure(page, "codeq_connections_refused_total"); refused != 0 {
				t.Errorf("%v connections were refused, with places for those who speak", refused)
			}
			if open := blackbox.Figure(page, "codeq_connections"); int(open) > most {
				t.Errorf("%v connections of %d are open", open, most)
			}
			if log := x.server.Log(); strings.Contains(log, "too many open files") {
				t.Errorf("a limit was met:\n%s", log)
			}
			x.server.Stop()
		})
	}
}

// through posts a task and has the worker complete it. A post that is refused for
// the moment is made again, as the protocol says.
func (x *site) through(w *blackbox.Peer, bytes int) {
	x.t.Helper()
	body := fmt.Sprintf(`{"command":%q,"payload":"%s"}`, command, strings.Repeat("x", bytes))
	x.eventually(patience, "a post is taken", func() bool {
		_, err := x.api.Post(x.ctx, body)
		if err != nil && !refusedWith(err, wire.CodeOverloaded) {
			x.t.Errorf("post: %v", err)
		}
		return err == nil
	})
	x.complete(w, x.take(w, patience), `{}`)
}

// More sessions than fit are turned away with a code, requests over HTTP still
// find a place, and the place of a session that ends is given to the next.
func TestN14MoreSessionsThanFit(t *testing.T) {
	x := newSiteUnder(t, "ulimit -n 256")
	if log := x.server.Log(); !strings.Contains(log, `"limit":256`) || !strings.Contains(log, `"needed":`) {
		t.Errorf("the low limit is not said:\n%s", log)
	}
	var peers []*blackbox.Peer
	for {
		ctx, cancel := context.WithTimeout(x.ctx, patience)
		p, err := blackbox.Dial(ctx, x.server.Addr, &wire.Hello{WorkerID: "w"})
		cancel()
		if err != nil {
			t.Logf("after %d sessions: %v", len(peers), err)
			break
		}
		t.Cleanup(p.Close)
		if peers = append(peers, p); len(peers) == 256 {
			t.Fatal("256 sessions on 256 descriptors")
		}
	}
	if len(peers) < 32 {
		t.Errorf("only %d sessions are open", len(peers))
	}
	w := peers[0]
	if err := w.Subscribe(x.ctx, command, 4, 60); err != nil {
		t.Fatal(err)
	}
	x.through(w, 10)
	peers[1].Close()
	x.eventually(patience, "a session gets the place of another", func() bool {
		ctx, cancel := context.WithTimeout(x.ctx, patience)
		defer cancel()
		p, err := blackbox.Dial(ctx, x.server.Addr, &wire.Hello{WorkerID: "late"})
		if err != nil {
			return false
		}
		t.Cleanup(p.Close)
		return true
	})
	x.through(w, 10)
}

// Where each place is taken by somebody who uses it, one more hears why it is
// refused, without a word of its own, and gets in when a place is free.
func TestN14RefusedConnectionsHearWhy(t *testing.T) {
	x := newSiteUnder(t, "ulimit -n 256")
	most := int(blackbox.Figure(x.server.Metrics(), "codeq_connections_limit"))
	id := x.post(command, 1, 0)[0]
	x.api.Close()
	once := blackbox.NewAPI(x.server.Addr)
	defer once.Close()
	ctx, release := context.WithCancel(x.ctx)
	var waiting sync.WaitGroup
	for range most {
		waiting.Go(func() {
			for ctx.Err() == nil {
				// One of them may lose its place before its first byte is there.
				_, _ = once.Do(ctx, http.MethodGet, "/tasks/"+id.String()+"/result?waitSeconds=60", "")
			}
		})
	}
	defer waiting.Wait()
	defer release()
	var said []byte
	x.eventually(patience, "a connection is refused with a word", func() bool {
		conn := x.silent(1)[0]
		if err := conn.SetReadDeadline(time.Now().Add(aWhile)); err != nil {
			t.Fatal(err)
		}
		var err error
		said, err = io.ReadAll(conn)
		return err == nil && len(said) > 0
	})
	head, body, _ := strings.Cut(string(said), "\r\n\r\n")
	refusal, err := wire.ParseError([]byte(body))
	if err != nil || refusal.Code != wire.CodeOverloaded || !strings.HasPrefix(head, "HTTP/1.1 503 ") || !strings.Contains(head, "Retry-After: 1") {
		t.Errorf("a refused connection hears %q (%v)", said, err)
	}
	// An answer that is there before the request is sent is none to net/http.
	x.eventually(patience, "a request among them is refused", func() bool {
		_, err := x.api.Read(x.ctx, id)
		if err == nil {
			t.Fatal("a request among them gets a place")
		}
		return refusedWith(err, wire.CodeOverloaded)
	})
	release()
	waiting.Wait()
	x.eventually(patience, "a request gets a place", func() bool {
		_, err := x.api.Read(x.ctx, id)
		return err == nil
	})
}

func refusedWith(err error, code wire.Code) bool {
	var refusal *wire.Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// With one processor the server does all it does with more.
func TestN14OneProcessor(t *testing.T) {
	x := newSiteUnder(t, "export GOMAXPROCS=1; if command -v taskset >/dev/null; then taskset -pc 0 $$ >/dev/null || true; fi")
	x.workOff(500)
}

// GOMEMLIMIT from outside is taken as the memory, said, and enough for a backlog of
// several times as much; less than a server can work with is refused.
func TestN14MemoryLimitFromOutside(t *testing.T) {
	x := newSiteUnder(t, "export GOMEMLIMIT=64MiB")
	if log := x.server.Log(); !strings.Contains(log, `"GOMEMLIMIT":"64MiB","memory":"512MiB"`) {
		t.Errorf("the limit is not said:\n%s", log)
	}
	x.postAlike(scale(2000, 20_000), 20, 64<<10)
	x.claimAll(scale(2000, 20_000), 10)
	if most, resident := int64(64<<20+besideBytes), x.server.ResidentBytes(); resident > most {
		t.Errorf("the server has %d MiB", resident>>20)
	}
	said := mustNotServe(t, 2, "export GOMEMLIMIT=63MiB")
	if !strings.Contains(said, "GOMEMLIMIT of 63MiB is too small") || strings.Count(said, "\n") != 1 {
		t.Errorf("it says:\n%s", said)
	}
}

// A limit of threads cannot be kept to, so it is said where it is low.
func TestN14LowLimitOfThreadsIsSaid(t *testing.T) {
	x := newSiteUnder(t, "ulimit -u 60 2>/dev/null || ulimit -p 60")
	if log := x.server.Log(); !strings.Contains(log, `"limit":60,"needed":6`) || !strings.Contains(log, "the limit of threads is low") {
		t.Errorf("it says:\n%s", log)
	}
}

// workOff posts tasks and has the SDK work them off while others read and claim.
func (x *site) workOff(tasks int) {
	x.t.Helper()
	c := x.sdk(x.server.Addr)
	ids := x.post(command, tasks, 1000)
	stop := x.inBackground(func(ctx context.Context) {
		_ = client.Work(ctx, c, command, func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{}`), nil
		}, client.Window(16))
	})
	defer stop()
	for _, id := range ids {
		x.eventually(patience, "a task is completed", func() bool { return x.read(id).Status == wire.StatusCompleted })
	}
	if answer := x.ask(http.MethodGet, "/admin/queues", ""); answer.Status != http.StatusOK {
		x.t.Errorf("the queues: %+v", answer)
	}
}
