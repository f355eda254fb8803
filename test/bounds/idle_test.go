package bounds

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/test/blackbox"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit)) }

var idleFlag = flag.Int("bounds.idle", 500, "how many sessions sit idle; 10000 is the full form")

const (
	// patience is how long one step of a client may take on a busy machine.
	patience = time.Minute
	// openers is how many sessions are opened at a time, below what a server lets
	// be open without a hello.
	openers = 32
	// idleBytes is what an idle session may cost the server, spareBytes what the
	// process may grow by beside them.
	idleBytes  = 64 << 10
	spareBytes = 64 << 20
	// pushes is how many tasks are measured, mayTake how long the median one may
	// take from its post to its worker beyond a multiple of what it took alone.
	pushes  = 200
	mayTake = 250 * time.Millisecond
)

// idle opens a session by hand and leaves it alone: no library, no goroutine.
func idle(addr string) (conn net.Conn, err error) {
	conn, err = net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if err = conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return conn, err
	}
	hello := []byte(`{"type":"hello","workerId":"idle"}`)
	// A masked text frame with a mask of zeros behind the upgrade.
	frame := append([]byte{0x81, 0x80 | byte(len(hello)), 0, 0, 0, 0}, hello...)
	upgrade := "GET /v1/codeq/session HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
	if _, err = conn.Write(append([]byte(upgrade), frame...)); err != nil {
		return conn, err
	}
	reader := bufio.NewReaderSize(conn, 1024)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return conn, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return conn, fmt.Errorf("the upgrade was answered with %s", response.Status)
	}
	said := make([]byte, 64)
	if _, err = io.ReadFull(reader, said); err != nil {
		return conn, err
	}
	if !strings.Contains(string(said), `"welcome"`) {
		return conn, fmt.Errorf("the server says %q", said)
	}
	return conn, nil
}

// openIdle opens n idle sessions.
func openIdle(t *testing.T, addr string, n int) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	var failed error
	t.Cleanup(func() {
		for _, conn := range conns {
			_ = conn.Close() // the server may have ended it
		}
	})
	var opening sync.WaitGroup
	for part := range openers {
		opening.Go(func() {
			for i := part; i < n; i += openers {
				conn, err := idle(addr)
				mu.Lock()
				if err != nil {
					failed = errors.Join(failed, err)
				} else {
					conns = append(conns, conn)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	opening.Wait()
	if failed != nil {
		t.Fatalf("%d of %d sessions are open: %v", len(conns), n, failed)
	}
}

// median is how long the median of some tasks takes from its post to the worker.
func median(t *testing.T, s *blackbox.Server) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := blackbox.Dial(ctx, s.Addr, &wire.Hello{WorkerID: "busy"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Subscribe(ctx, "c", 1, 60); err != nil {
		t.Fatal(err)
	}
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	var took []time.Duration
	for range pushes {
		began := time.Now()
		if _, err := api.Post(ctx, `{"command":"c","payload":1}`); err != nil {
			t.Fatal(err)
		}
		select {
		case f := <-p.Tasks:
			took = append(took, time.Since(began))
			if err := p.Complete(ctx, blackbox.RefOf(f), `{}`); err != nil {
				t.Fatal(err)
			}
		case <-ctx.Done():
			t.Fatal("a task does not come")
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func TestIdleSessionsCostLittleAndDisturbNobody(t *testing.T) {
	n := *idleFlag
	s := blackbox.Serve(t, "--ping-seconds", "60", "--max-sessions", fmt.Sprint(n+10))
	alone := median(t, s)
	before := s.ResidentBytes()
	began := time.Now()
	openIdle(t, s.Addr, n)
	opened := time.Since(began)
	among := median(t, s)
	grown := s.ResidentBytes() - before
	t.Logf("%d idle sessions, opened in %v: %d KiB more, %d bytes for each; the median push took %v alone and %v among them",
		n, opened.Round(time.Millisecond), grown>>10, grown/int64(n), alone, among)
	if most := int64(n)*idleBytes + spareBytes; grown > most {
		t.Errorf("the server grew by %d KiB, want at most %d", grown>>10, most>>10)
	}
	if most := mayTake + 20*alone; among > most {
		t.Errorf("the median push took %v, want at most %v", among, most)
	}
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	answer, err := api.Do(t.Context(), "GET", "/admin/sessions", "")
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := wire.ParseSessionList(answer.Body)
	if err != nil || len(list) != min(n, 500) {
		t.Errorf("the first page lists %d sessions (%v)", len(list), err)
	}
}
