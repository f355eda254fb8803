package scale

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"codeq/test/blackbox"
)

var sizesMiB = flag.Int("scale.sizes", 0, "MiB of payloads of each length whose space on the disk is measured; 0 is a thousand of the shortest")

// payloadBytes are the lengths of the payloads that are measured.
var payloadBytes = []int{100, 1 << 10, 16 << 10}

// TestBytesOfATask shows the space that a task takes in the tables of the database while it waits, and
// when it has ended with a result of 100 bytes. It fails only if tables have less than the payloads.
func TestBytesOfATask(t *testing.T) {
	t.Logf("%14s %10s %18s %18s", "payload, bytes", "tasks", "waiting, bytes", "ended, bytes")
	sizes := payloadBytes
	if *sizesMiB == 0 {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		s := blackbox.Serve(t, "--memory", "128MiB")
		b := &bench{t: t, server: s, api: blackbox.NewAPI(s.Addr)}
		tasks := max(*sizesMiB<<20/size/batchTasks, 1) * batchTasks
		b.postSized(tasks, size)
		waiting := b.tableBytes() / tasks
		b.endAll(tasks)
		ended := b.tableBytes() / tasks
		b.api.Close()
		t.Logf("%14d %10d %18d %18d", size, tasks, waiting, ended)
		if waiting < size || ended < size {
			t.Errorf("a task with a payload of %d bytes takes %d, and %d when it has ended", size, waiting, ended)
		}
	}
}

// postSized posts tasks with payloads that no compression makes much smaller.
func (b *bench) postSized(tasks, size int) {
	b.t.Helper()
	batches, posted := b.poster()
	random := rand.NewChaCha8([32]byte{})
	for n := 0; n < tasks; n += batchTasks / 10 {
		items := make([]string, 0, batchTasks/10)
		for range cap(items) {
			raw := make([]byte, size)
			_, _ = random.Read(raw) // it never fails
			items = append(items, fmt.Sprintf(`{"command":"sized","payload":%q}`, base64.StdEncoding.EncodeToString(raw)[:size-2]))
		}
		batches <- items
	}
	posted()
}

// endAll completes tasks that wait.
func (b *bench) endAll(tasks int) {
	b.t.Helper()
	result := `{"text":"` + strings.Repeat("r", 89) + `"}`
	for left := tasks; left > 0; {
		var got struct {
			Tasks []struct{ ID, LeaseToken string }
		}
		b.do(http.MethodPost, "/tasks/claim/batch", `{"commands":["sized"],"count":100,"leaseSeconds":3600}`, &got)
		results := make([]string, 0, len(got.Tasks))
		for _, task := range got.Tasks {
			results = append(results, fmt.Sprintf(`{"taskId":%q,"leaseToken":%q,"result":%s}`, task.ID, task.LeaseToken, result))
		}
		var said struct{ Results []json.RawMessage }
		b.do(http.MethodPost, "/tasks/batch/results", `{"results":[`+strings.Join(results, ",")+`]}`, &said)
		if left -= len(said.Results); len(said.Results) == 0 {
			b.t.Fatalf("%d tasks are left, and none was taken", left)
		}
	}
}

// tableBytes is the space of the database without its logs. A start writes what they have into tables.
func (b *bench) tableBytes() int {
	b.t.Helper()
	b.server.Kill()
	b.server.Start()
	page := b.server.Metrics()
	return int(blackbox.Figure(page, "codeq_pebble_disk_usage_bytes") - blackbox.Figure(page, "codeq_pebble_wal_physical_bytes"))
}
