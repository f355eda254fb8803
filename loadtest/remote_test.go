package loadtest_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/server"
	"codeq/loadtest"
)

// openServer is a real server on a directory of the test.
func openServer(t *testing.T) (url string) {
	t.Helper()
	s, err := server.Open(server.Options{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr()
}

func TestRealServerHoldsUnderLoad(t *testing.T) {
	url := openServer(t)
	for name, change := range map[string]func(*loadtest.Workload){
		"canonical":        func(*loadtest.Workload) {},
		"pipeline":         func(w *loadtest.Workload) { w.Pipeline, w.Window = 16, 1024 },
		"batch":            func(w *loadtest.Workload) { w.Batch, w.Producers = 10, 4 },
		"sessions":         func(w *loadtest.Workload) { w.Sessions, w.Window = 3, 5 },
		"HTTP":             func(w *loadtest.Workload) { w.OverHTTP, w.Producers = true, 4 },
		"creates":          func(w *loadtest.Workload) { w.OverHTTP, w.WorkAfter, w.Producers = true, true, 4 },
		"watchers":         func(w *loadtest.Workload) { w.Watchers = 5 },
		"rate and payload": func(w *loadtest.Workload) { w.RatePerSecond, w.PayloadBytes = 300, 5000 },
	} {
		t.Run(name, func(t *testing.T) {
			w := loadtest.Canonical()
			w.Commands = []string{"bench-" + rand.Text()}
			w.WarmUpFor, w.MeasureFor = 50*time.Millisecond, 250*time.Millisecond
			change(&w)
			target, err := loadtest.NewRemote(url, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			self := loadtest.ProcessOf(os.Getpid())
			o, err := loadtest.Run(t.Context(), loadtest.Options{Workload: w, Target: target, Server: self, Generator: self})
			if err != nil {
				t.Fatal(err)
			}
			if !o.Verdict.Holds() || o.Verdict.Created == 0 || o.Durability != "fsync" {
				t.Errorf("%s, durability %q", o.Verdict, o.Durability)
			}
			if w.WorkAfter && (o.CyclesPerSecond != 0 || o.Delivery.Count != 0) {
				t.Errorf("workers worked while creates were measured: %f cycles/s, %d deliveries", o.CyclesPerSecond, o.Delivery.Count)
			}
			if messages, size := target.Watched(); messages < int64(w.Watchers)*2 || size < messages*20 {
				t.Errorf("%d watchers were sent %d messages, %d bytes", w.Watchers, messages, size)
			}
			if o.ServerRSSMiB == nil || *o.ServerRSSMiB < 1 {
				t.Error("the memory of the server was not measured")
			}
		})
	}
}

func TestNoServerIsSaid(t *testing.T) {
	target, err := loadtest.NewRemote("127.0.0.1:1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = loadtest.Run(t.Context(), loadtest.Options{Workload: loadtest.Canonical(), Target: target})
	if err == nil || !strings.Contains(err.Error(), "open session at http://127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}

func TestN08AServerThatHasMovedIsSaid(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		moved := httptest.NewServer(http.RedirectHandler("http://new.test/", status))
		for _, overHTTP := range []bool{false, true} {
			target, err := loadtest.NewRemote(moved.URL, "secret", nil)
			if err != nil {
				t.Fatal(err)
			}
			workload := loadtest.Canonical()
			workload.OverHTTP = overHTTP
			_, err = loadtest.Run(t.Context(), loadtest.Options{Workload: workload, Target: target})
			if err == nil || !strings.Contains(err.Error(), `and names "http://new.test/": set --url to the server itself`) {
				t.Errorf("%d: error %v", status, err)
			}
		}
		moved.Close()
	}
}

func TestServerThatEndsEndsTheRun(t *testing.T) {
	s, err := server.Open(server.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(200*time.Millisecond, func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	defer timer.Stop()
	target, err := loadtest.NewRemote("http://"+s.Addr(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = loadtest.Run(t.Context(), loadtest.Options{Workload: loadtest.Canonical(), Target: target})
	if err == nil {
		t.Error("the run has an outcome although its server ended")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
