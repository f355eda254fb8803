package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/wire"
)

const batchPath = tasksPath + "/batch"

// batchResult is one result of a batch as a client reads it.
type batchResult struct {
	Task      json.RawMessage
	ID        string
	Error     string
	Code      wire.Code
	Retryable bool
	TaskID    string
}

// task is the task of the result, nil if it has none.
func (r *batchResult) task(t *testing.T) *wire.Task {
	t.Helper()
	if r.Task == nil {
		return nil
	}
	task, err := wire.ParseTask(r.Task)
	if err != nil {
		t.Fatalf("%s: %v", r.Task, err)
	}
	return task
}

func results(t *testing.T, g got) []batchResult {
	t.Helper()
	var body struct{ Results []batchResult }
	if err := json.Unmarshal([]byte(g.body), &body); err != nil || g.status != http.StatusOK {
		t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	g.mustBeJSON(t)
	return body.Results
}

func batchOf(items ...string) string { return `{"tasks":[` + strings.Join(items, ",") + `]}` }

// manyItems is n good items, each with its number as payload.
func manyItems(n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"command":"c","payload":%d}`, i)
	}
	return items
}

func TestBatchGivesEachItemItsTaskInOrder(t *testing.T) {
	b := newBench(t, setup{})
	b.spread("c")
	got := results(t, b.do("POST", batchPath, batchOf(manyItems(wire.MaxBatchTasks)...)))
	if len(got) != wire.MaxBatchTasks {
		t.Fatalf("%d results", len(got))
	}
	shards := make(map[int]bool)
	for i := range got {
		task := got[i].task(t)
		if task == nil || string(task.Payload) != fmt.Sprint(i) || task.Status != wire.StatusPending {
			t.Fatalf("result %d is %+v", i, got[i])
		}
		shards[b.engine.ShardOf(task.ID)] = true
	}
	if len(shards) != b.engine.Shards() {
		t.Errorf("the batch went to %d shards", len(shards))
	}
	list := b.do("GET", "/v1/codeq/admin/queues", "")
	if !strings.Contains(list.body, `"ready":1000`) {
		t.Errorf("queues: %s", list.body)
	}
}

func TestBatchKeepsPayloadsByteForByte(t *testing.T) {
	b := newBench(t, setup{})
	payloads := []string{
		`null`, `1e400`, `{"b":1,"a":2,"a":[1, 2 ]}`, `"\u0000\ud800\/é"`, `123456789012345678901234567890`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
	}
	var items []string
	for _, payload := range payloads {
		items = append(items, `{"command":"c","payload": `+payload+` }`)
	}
	for i, r := range results(t, b.do("POST", batchPath, batchOf(items...))) {
		id := r.task(t).ID
		g := b.do("GET", tasksPath+"/"+id.String(), "")
		read, err := wire.ParseTask([]byte(g.body))
		if err != nil || string(read.Payload) != payloads[i] || string(r.task(t).Payload) != payloads[i] {
			t.Errorf("posted %s, answered %s, read %s", payloads[i], r.Task, g.body)
		}
	}
}

func TestBatchItemsStandAlone(t *testing.T) {
	b := newBench(t, setup{auth: keys{"p": {Tenant: "t", Subject: "s", Commands: []string{"c"}}}})
	items := []string{
		okBody, `7`, `{"command":"c"}`, `{"command":"d","payload":1}`, `{"command":"c","payload":1,"priority":10}`,
		`{"command":"c","payload":1,"runAt":"2999-01-01T00:00:00Z"}`, `{"command":"c","payload":1,"webhook":"ftp://x"}`, okBody,
	}
	want := []wire.Code{
		"", wire.CodeInvalidBody, wire.CodeInvalidBody, wire.CodeForbidden, wire.CodeInvalidPriority,
		wire.CodeInvalidTime, wire.CodeInvalidWebhook, "",
	}
	for i, r := range results(t, b.do("POST", batchPath, batchOf(items...), "Authorization", "Bearer p")) {
		if r.Code != want[i] || (r.task(t) != nil) != (want[i] == "") || (r.Error == "") != (want[i] == "") || r.Retryable {
			t.Errorf("%s: %+v", items[i], r)
		}
		if r.Error != "" && r.Code != wire.CodeForbidden && i != 5 && !strings.Contains(r.Error, fmt.Sprintf("tasks[%d]", i)) {
			t.Errorf("the sentence does not say which: %s", r.Error)
		}
	}
}

func TestBatchOfRefusedItemsIsStillAnswered(t *testing.T) {
	b := newBench(t, setup{idle: true})
	got := results(t, b.do("POST", batchPath, batchOf(`{}`, `null`)))
	if len(got) != 2 || got[0].Code != wire.CodeInvalidCommand || got[1].Code != wire.CodeInvalidBody {
		t.Errorf("%+v", got)
	}
}

func TestBatchAsAWholeIsRefused(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"p": {Tenant: "t", Subject: "s", Scopes: []string{auth.ScopeProduce}},
		"a": {Tenant: "t", Subject: "s", Scopes: []string{auth.ScopeAdmin}},
	}})
	for body, want := range map[string]wire.Code{
		``:                       wire.CodeInvalidBody,
		`[` + okBody + `]`:       wire.CodeInvalidBody,
		batchOf(okBody) + `x`:    wire.CodeInvalidBody,
		`{"tasks":[],"tasks":1}`: wire.CodeInvalidBody,
		`{}`:                     wire.CodeInvalidArgument,
		batchOf():                wire.CodeInvalidArgument,
		`{"tasks":{}}`:           wire.CodeInvalidArgument,
		batchOf(manyItems(wire.MaxBatchTasks + 1)...):                      wire.CodeInvalidArgument,
		batchOf(okBody, strings.Repeat(" ", wire.MaxHTTPBodyBytes)+okBody): wire.CodeTooLarge,
	} {
		b.do("POST", batchPath, body, "Authorization", "Bearer p").mustRefuse(t, want)
	}
	b.do("POST", batchPath, batchOf(okBody), "Authorization", "Bearer a").mustRefuse(t, wire.CodeForbidden)
	if list := b.do("GET", "/v1/codeq/admin/queues", "", "Authorization", "Bearer a"); list.body != `{"queues":[]}` {
		t.Errorf("a refused batch made tasks: %s", list.body)
	}
}

func TestKeysHoldInsideABatchAndAcross(t *testing.T) {
	b := newBench(t, setup{})
	first := b.post(`{"command":"c","payload":0,"idempotencyKey":"before"}`)
	keyed := func(key string, payload int) string {
		return fmt.Sprintf(`{"command":"c","payload":%d,"idempotencyKey":%q}`, payload, key)
	}
	got := results(t, b.do("POST", batchPath,
		batchOf(keyed("k", 1), keyed("k", 1), keyed("k", 2), keyed("before", 0), keyed("other", 1), keyed("before", 9))))
	made := got[0].task(t)
	if again := got[1].task(t); again == nil || again.ID != made.ID || string(again.Payload) != "1" {
		t.Errorf("the same key in one batch: %+v, first %s", got[1], got[0].Task)
	}
	if got[2].Code != wire.CodeIdempotencyConflict || got[2].TaskID != made.ID.String() {
		t.Errorf("the same key with other content: %+v", got[2])
	}
	if again := got[3].task(t); again == nil || again.ID != first.ID {
		t.Errorf("the key of an earlier task: %+v", got[3])
	}
	if other := got[4].task(t); other == nil || other.ID == made.ID {
		t.Errorf("another key: %+v", got[4])
	}
	if got[5].Code != wire.CodeIdempotencyConflict || got[5].TaskID != first.ID.String() {
		t.Errorf("the key of an earlier task with other content: %+v", got[5])
	}
	minimal := results(t, b.do("POST", batchPath, batchOf(keyed("k", 1), keyed("k", 3)), "Prefer", "return=minimal"))
	if minimal[0].ID != made.ID.String() || minimal[1].Code != wire.CodeIdempotencyConflict {
		t.Errorf("repeated: %+v", minimal)
	}
	if list := b.do("GET", "/v1/codeq/admin/queues", ""); !strings.Contains(list.body, `"ready":3`) {
		t.Errorf("queues: %s", list.body)
	}
}

func TestBatchAnswersWithIDsOnlyIfAskedTo(t *testing.T) {
	b := newBench(t, setup{})
	for prefer, want := range map[string]bool{
		"return=minimal": true, "Return = MINIMAL": true, `respond-async, return="minimal"; x=1, wait=3`: true,
		"": false, "return=representation": false, "return=representation, return=minimal": false, "return": false, "minimal": false,
	} {
		g := b.do("POST", batchPath, batchOf(okBody, `{}`), "Prefer", prefer)
		got := results(t, g)
		if applied := g.header.Get("Preference-Applied") == "return=minimal"; applied != want {
			t.Errorf("Prefer %q: Preference-Applied is %q", prefer, g.header.Get("Preference-Applied"))
		}
		_, known := wire.ParseTaskID(got[0].ID)
		if known != want || (got[0].Task == nil) != want || got[1].Code != wire.CodeInvalidCommand {
			t.Errorf("Prefer %q: %s", prefer, g.body)
		}
		if want && !strings.HasPrefix(g.body, `{"results":[{"id":"`+got[0].ID+`"},{"error":`) {
			t.Errorf("Prefer %q: %s", prefer, g.body)
		}
	}
}

func TestFullShardRefusesItsItemsOfABatchOnly(t *testing.T) {
	// A shard takes 60 KiB of new work, and one gets 100 kB of this batch.
	b := newBench(t, setup{mailbox: mailbox.Limits{Messages: 1000, Bytes: 80 << 10}})
	big := fmt.Sprintf(`{"command":"c","payload":"%050000d"}`, 0)
	keyed := func(n int) string { return fmt.Sprintf(`{"command":"c","payload":%d,"idempotencyKey":"same"}`, n) }
	items := append(manyItems(20), keyed(1))
	b.spread("c")
	shard := wire.ShardOfQueue(wire.DefaultTenant, "c", b.engine.Shards()) // where tasks with keys are
	items = append(items, strings.Replace(big, `"payload"`, `"idempotencyKey":"same","payload"`, 1),
		strings.Replace(big, `"payload"`, `"idempotencyKey":"same","payload"`, 1))
	var taken, refused int
	for i, r := range results(t, b.do("POST", batchPath, batchOf(items...))) {
		if task := r.task(t); task != nil {
			taken++
			if b.engine.ShardOf(task.ID) == shard {
				t.Errorf("item %d went to the shard that had too much", i)
			}
			continue
		}
		refused++
		if r.Code != wire.CodeOverloaded || !r.Retryable {
			t.Errorf("item %d: %+v", i, r)
		}
	}
	if taken == 0 || refused < 3 {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

func TestBatchOfWhichNothingIsTakenIsRefused(t *testing.T) {
	b := newBench(t, setup{idle: true, mailbox: mailbox.Limits{Messages: 4, Bytes: 600}})
	g := b.do("POST", batchPath, batchOf(okBody, okBody))
	g.mustRefuse(t, wire.CodeOverloaded)
	if g = b.do("POST", batchPath, batchOf(okBody, `{}`)); g.status != http.StatusOK {
		t.Errorf("not every item was turned away: %d %s", g.status, g.body)
	}
	b = newBench(t, setup{})
	b.stopEngine()
	b.do("POST", batchPath, batchOf(okBody, okBody), "Prefer", "return=minimal").mustRefuse(t, wire.CodeDraining)
}

func TestNearlyFullDiskRefusesEachItem(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.availBytes.Store(60 << 20)
	b := newBench(t, setup{fs: disk})
	disk.availBytes.Store(20 << 20)
	b.store.Guard().Tick(time.Now())
	got := results(t, b.do("POST", batchPath, batchOf(okBody, `{}`, okBody)))
	codes := []wire.Code{got[0].Code, got[1].Code, got[2].Code}
	if !slices.Equal(codes, []wire.Code{wire.CodeStorageFull, wire.CodeInvalidCommand, wire.CodeStorageFull}) || !got[0].Retryable {
		t.Errorf("%+v", got)
	}
}

// TestBatchIsOneCommitPerShard looks at the numbers of the batches that each
// shard has applied.
func TestBatchIsOneCommitPerShard(t *testing.T) {
	b := newBench(t, setup{})
	b.spread("c")
	var before, drained []uint64
	for shard := range b.engine.Shards() {
		before = append(before, b.store.Submitted(shard))
		drained = append(drained, b.engine.MailboxFigures(shard).Batches)
	}
	results(t, b.do("POST", batchPath, batchOf(manyItems(1000)...)))
	for shard, was := range before {
		if n := b.store.Submitted(shard) - was; n != 1 {
			t.Errorf("shard %d made %d commits", shard, n)
		}
		if pushed := b.engine.MailboxFigures(shard).Batches - drained[shard]; pushed != 1 {
			t.Errorf("shard %d drained %d times", shard, pushed)
		}
	}
}

func TestBatchIsToldWhenAllOfItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted := make(chan got, 1)
		go func() { posted <- b.do("POST", batchPath, batchOf(manyItems(50)...)) }()
		synctest.Wait()
		select {
		case g := <-posted:
			t.Errorf("answered without a sync: %d %s", g.status, g.body)
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		if got := results(t, <-posted); len(got) != 50 || got[49].Task == nil {
			t.Errorf("%+v", got)
		}
	})
}

func BenchmarkBatch(b *testing.B) {
	x := newBench(b, setup{})
	for _, n := range []int{1, 10, 100, 1000} {
		body := batchOf(manyItems(n)...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g := x.do("POST", batchPath, body, "Prefer", "return=minimal"); g.status != http.StatusOK {
					b.Fatalf("%d %s", g.status, g.body)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

func TestBatchSaysWhichOfItsItemsAreReplays(t *testing.T) {
	b := newBench(t, setup{})
	first := b.post(`{"command":"c","payload":1,"idempotencyKey":"k"}`)
	const item, other = `{"command":"c","payload":1,"idempotencyKey":"k"}`, `{"command":"c","payload":1,"idempotencyKey":"l"}`
	for _, prefer := range []string{"return=minimal", "return=representation"} {
		var answer struct {
			Results []struct {
				ID       string
				Task     struct{ ID string }
				Replayed bool
			}
		}
		g := b.do("POST", batchPath, batchOf(item, other, other), "Prefer", prefer)
		if err := json.Unmarshal([]byte(g.body), &answer); err != nil || len(answer.Results) != 3 {
			t.Fatalf("%s: %v", g.body, err)
		}
		for i, r := range answer.Results {
			// The second of the others repeats the first, and both the batch before.
			if want := i != 1 || prefer != "return=minimal"; r.Replayed != want {
				t.Errorf("%s: item %d is a replay: %t, want %t", prefer, i, r.Replayed, want)
			}
		}
		if got := answer.Results[0]; got.ID+got.Task.ID != first.ID.String() {
			t.Errorf("%s: item 0 is %+v, want %v", prefer, got, first.ID)
		}
	}
}
