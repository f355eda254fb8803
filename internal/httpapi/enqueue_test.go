package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/mailbox"
	"codeq/wire"
)

func newChance() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{7}) }

func TestPostedPayloadComesBackByteForByte(t *testing.T) {
	b := newBench(t, setup{})
	for _, payload := range []string{
		`null`, `true`, `""`, `{"b":1,"a":2,"b2":[1,2 , 3]}`, `123456789012345678901234567890`, `1e400`, `-0.0`,
		`"\u0000"`, `"\ud800"`, `"\/\u00e9é😀"`, `[[],{},  "x"]`, strings.Repeat("[", 63) + strings.Repeat("]", 63),
	} {
		posted := b.post(`{"command":"c","payload":` + payload + `}`)
		if string(posted.Payload) != payload {
			t.Errorf("posted %s, answered %s", payload, posted.Payload)
		}
		g := b.do("GET", "/v1/codeq/tasks/"+posted.ID.String(), "")
		task, err := wire.ParseTask([]byte(g.body))
		if err != nil || g.status != http.StatusOK || string(task.Payload) != payload {
			t.Errorf("posted %s, read %d %s (%v)", payload, g.status, g.body, err)
		}
	}
}

func TestPostAnswersWithTheWholeTaskAndWhereItIs(t *testing.T) {
	b := newBench(t, setup{})
	g := b.do("POST", "/v1/codeq/tasks", `{"command":"c","payload":{"a":1},"priority":3,"maxAttempts":7}`)
	task, err := wire.ParseTask([]byte(g.body))
	if err != nil {
		t.Fatalf("%s: %v", g.body, err)
	}
	if g.status != http.StatusAccepted || g.header.Get("Location") != "/v1/codeq/tasks/"+task.ID.String() {
		t.Errorf("answered %d, Location %q", g.status, g.header.Get("Location"))
	}
	if task.Command != "c" || task.Priority != 3 || task.MaxAttempts != 7 || task.Status != wire.StatusPending ||
		task.TenantID != "default" || task.CreatedAtMs == 0 {
		t.Errorf("answered %+v", task)
	}
	if g.header.Get("Idempotent-Replayed") != "" {
		t.Error("a new task is called a replay")
	}
	g.mustBeJSON(t)
}

func TestATaskHasTheTraceOfItsRequestUnlessItHasOne(t *testing.T) {
	b := newBench(t, setup{})
	const ofHeader, own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, c := range []struct{ body, header, parent, state string }{
		{`{"command":"c","payload":1}`, ofHeader, ofHeader, "a=b"},
		{`{"command":"c","payload":1,"traceParent":"` + own + `"}`, ofHeader, own, ""},
		{`{"command":"c","payload":1,"traceParent":"` + own + `","traceState":"c=d"}`, "", own, "c=d"},
		{`{"command":"c","payload":1,"traceState":"c=d"}`, ofHeader, ofHeader, "a=b"},
		{`{"command":"c","payload":1}`, "00-x", "", ""},
		{`{"command":"c","payload":1}`, "", "", ""},
	} {
		if task := b.post(c.body, "traceparent", c.header, "tracestate", "a=b"); task.TraceParent != c.parent || task.TraceState != c.state {
			t.Errorf("%s with the header %q got %q, %q", c.body, c.header, task.TraceParent, task.TraceState)
		}
	}
	g := b.do("POST", "/v1/codeq/tasks/batch", `{"tasks":[{"command":"c","payload":1},{"command":"c","payload":2,"traceParent":"`+own+`"}]}`, "traceparent", ofHeader)
	if !strings.Contains(g.body, ofHeader) || !strings.Contains(g.body, own) {
		t.Errorf("the batch got %s", g.body)
	}
	b.do("POST", "/v1/codeq/tasks", `{"command":"c","payload":1,"traceParent":"00-x"}`).mustRefuse(t, wire.CodeInvalidArgument)
	// It is not part of what a key compares.
	first := b.post(`{"command":"c","payload":1,"idempotencyKey":"k"}`, "traceparent", ofHeader)
	if again := b.post(`{"command":"c","payload":1,"idempotencyKey":"k","traceParent":"` + own + `"}`); again.ID != first.ID || again.TraceParent != ofHeader {
		t.Errorf("the second post got %+v", again)
	}
}

func TestSameKeyGivesTheSameTask(t *testing.T) {
	b := newBench(t, setup{})
	body := `{"command":"c","payload":1,"idempotencyKey":"k"}`
	first := b.post(body)
	g := b.do("POST", "/v1/codeq/tasks", body)
	again, err := wire.ParseTask([]byte(g.body))
	if err != nil || g.status != http.StatusAccepted || again.ID != first.ID || g.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated: %d %s %v", g.status, g.body, g.header)
	}
	g = b.do("POST", "/v1/codeq/tasks", `{"command":"c","payload":2,"idempotencyKey":"k"}`)
	g.mustRefuse(t, wire.CodeIdempotencyConflict)
	if !strings.Contains(g.body, first.ID.String()) {
		t.Errorf("the conflict does not name the first task: %s", g.body)
	}
}

func TestManyProducersEachGetTheirOwnTask(t *testing.T) {
	b := newBench(t, setup{})
	var producers sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[wire.TaskID]string)
	for producer := range 8 {
		producers.Go(func() {
			for n := range 20 {
				payload := fmt.Sprintf(`"%d.%d"`, producer, n)
				task := b.post(`{"command":"c","payload":` + payload + `}`)
				mu.Lock()
				if string(task.Payload) != payload || seen[task.ID] != "" {
					t.Errorf("posted %s, got %s of %s", payload, task.Payload, task.ID)
				}
				seen[task.ID] = payload
				mu.Unlock()
			}
		})
	}
	producers.Wait()
	g := b.do("GET", "/v1/codeq/admin/queues", "")
	queues, err := wire.ParseQueueList([]byte(g.body))
	if err != nil || len(queues) != 1 || queues[0].Ready != 160 || queues[0].Command != "c" {
		t.Errorf("queues: %d %s %v", g.status, g.body, err)
	}
}

func TestFullMailboxRefusesForTheMoment(t *testing.T) {
	b := newBench(t, setup{idle: true, mailbox: mailbox.Limits{Messages: 4, Bytes: 4096}})
	big := fmt.Sprintf(`{"command":"c","payload":"%04000d"}`, 0)
	g := b.do("POST", "/v1/codeq/tasks", big)
	g.mustRefuse(t, wire.CodeOverloaded)
	if g.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", g.header.Get("Retry-After"))
	}
}

func TestStoppedEngineRefusesAsDraining(t *testing.T) {
	b := newBench(t, setup{})
	task := b.post(`{"command":"c","payload":1}`)
	b.stopEngine()
	b.do("POST", "/v1/codeq/tasks", `{"command":"c","payload":1}`).mustRefuse(t, wire.CodeDraining)
	b.do("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=1", "").mustRefuse(t, wire.CodeDraining)
	if g := b.do("GET", "/v1/codeq/tasks/"+task.ID.String(), ""); g.status != http.StatusOK {
		t.Errorf("a read after the stop: %d %s", g.status, g.body)
	}
}

// smallDisk reports as much free space as it is told.
type smallDisk struct {
	vfs.FS
	availBytes atomic.Uint64
}

// GetDiskUsage implements vfs.FS.
func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	const total = 64 << 20
	avail := d.availBytes.Load()
	return vfs.DiskUsage{AvailBytes: avail, TotalBytes: total, UsedBytes: total - avail}, nil
}

func TestNearlyFullDiskRefusesTasksAndSaysSo(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.availBytes.Store(60 << 20)
	b := newBench(t, setup{fs: disk})
	b.post(okBody)
	disk.availBytes.Store(24 << 20)
	b.store.Guard().Tick(time.Now())
	b.do("POST", tasksPath, okBody).mustRefuse(t, wire.CodeStorageFull)
	if g := b.do("GET", "/readyz", ""); g.status != http.StatusOK || !strings.Contains(g.body, `"diskGuard":"no-enqueue"`) {
		t.Errorf("readyz: %d %s", g.status, g.body)
	}
	b.do("POST", claimPath, "").claimed(t)
	b.do("POST", claimPath, "").mustBeNothing(t)
	for _, left := range []uint64{12 << 20, 2 << 20} {
		disk.availBytes.Store(left)
		b.store.Guard().Tick(time.Now())
		for _, body := range []string{"", `{"waitSeconds":1}`} {
			b.do("POST", claimPath, body).mustRefuse(t, wire.CodeStorageFull)
			b.do("POST", claimBatchPath, body).mustRefuse(t, wire.CodeStorageFull)
		}
		if g := b.do("GET", "/readyz", ""); g.status != http.StatusServiceUnavailable || !strings.Contains(g.body, `"code":"storage_full"`) {
			t.Errorf("readyz with %d bytes left: %d %s", left, g.status, g.body)
		}
	}
	disk.availBytes.Store(60 << 20)
	b.store.Guard().Tick(time.Now())
	b.post(okBody)
}
