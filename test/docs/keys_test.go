package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/wire"
)

// keysHeading is above the table that says what a post with a used key gets.
const keysHeading = "## Idempotency keys"

// fate is a row of the table: what becomes of the first tasks of their keys.
type fate struct {
	row string
	// command is the queue that has all of them, set members of its settings,
	// maxAttempts (0 is 2) and more are what they are posted with.
	command     string
	set         string
	maxAttempts int
	more        string
	bring       func(x *site, command string, ids []string)
}

const spreadMember = `"spread":true`

// allFates are those of the rows, each in a queue like most, in one that is spread,
// and in one that is spread over the first tasks.
func allFates() (all []fate) {
	for _, f := range fates {
		all = append(all, f)
		spread, later := f, f
		spread.command += "-spread"
		spread.set = strings.Trim(spreadMember+","+f.set, ",")
		later.command += "-later"
		later.bring = func(x *site, command string, ids []string) {
			f.bring(x, command, ids)
			x.must("PUT", "/admin/queues/"+command, "{"+strings.Trim(spreadMember+","+f.set, ",")+"}")
		}
		all = append(all, spread, later)
	}
	return all
}

// fates are the rows of the table, those first that reach beyond their queue.
var fates = []fate{
	{row: "was removed by a cleanup", command: "cleaned", bring: func(x *site, command string, ids []string) { x.remove(command, ids) }},
	{row: "was removed when its time was over", command: "over", set: `"retentionSeconds":1`, bring: func(x *site, command string, ids []string) {
		x.complete(command, ids, `"result":{}`)
		x.mustBeGone(ids)
	}},
	{row: "is ready", command: "ready", bring: func(*site, string, []string) {}},
	{row: "waits for its time", command: "delayed", more: `,"delaySeconds":3600`, bring: func(*site, string, []string) {}},
	{row: "is with a worker", command: "held", bring: func(x *site, command string, ids []string) { x.claim(command, ids) }},
	{row: "is `COMPLETED`", command: "completed", bring: func(x *site, command string, ids []string) {
		x.complete(command, ids, `"result":{}`)
	}},
	{row: "is `FAILED` by its worker", command: "failed", bring: func(x *site, command string, ids []string) {
		x.complete(command, ids, `"error":"no"`)
	}},
	{row: "is `CANCELLED`", command: "cancelled", bring: func(x *site, _ string, ids []string) {
		for _, id := range ids {
			x.must("POST", "/tasks/"+id+"/cancel", "")
		}
	}},
	{row: "is a dead letter", command: "dead", maxAttempts: 1, bring: bury},
	{row: "was purged as a dead letter", command: "purged", maxAttempts: 1, bring: func(x *site, command string, ids []string) {
		bury(x, command, ids)
		x.must("DELETE", "/admin/queues/"+command+"/dlq", "")
		x.mustBeGone(ids)
	}},
	{row: "was replayed", command: "replayed", maxAttempts: 1, bring: func(x *site, command string, ids []string) {
		bury(x, command, ids)
		for _, id := range ids {
			x.must("POST", "/admin/tasks/"+id+"/replay", "")
		}
	}},
}

// remove ends all tasks of a queue and has them removed, with all others that have
// ended.
func (x *site) remove(command string, ids []string) {
	x.t.Helper()
	x.complete(command, ids, `"result":{}`)
	x.must("POST", "/admin/tasks/cleanup", fmt.Sprintf(`{"before":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339)))
	x.mustBeGone(ids)
}

// bury makes dead letters of tasks with one attempt.
func bury(x *site, command string, ids []string) {
	x.claim(command, ids)
	for _, id := range ids {
		x.must("POST", "/tasks/"+id+"/nack", `{"reason":"no"}`)
	}
}

// must sends a request that succeeds.
func (x *site) must(method, path, body string) string {
	x.t.Helper()
	e := x.ask(method, "/v1/codeq"+path, body, nil)
	if e.status >= 300 {
		x.t.Fatalf("%s %s %s: %d %s", method, path, body, e.status, e.body)
	}
	return e.body
}

// claim takes all tasks of a queue.
func (x *site) claim(command string, ids []string) {
	x.t.Helper()
	for left := len(ids); left > 0; {
		var got struct{ Tasks []struct{ ID string } }
		body := x.must("POST", "/tasks/claim/batch", fmt.Sprintf(`{"commands":[%q],"count":%d,"leaseSeconds":3600}`, command, left))
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Tasks) == 0 {
			x.t.Fatalf("%d tasks of %s are left, and the claim is answered %s (%v)", left, command, body, err)
		}
		left -= len(got.Tasks)
	}
}

// complete ends all tasks of a queue with that outcome.
func (x *site) complete(command string, ids []string, outcome string) {
	x.t.Helper()
	x.claim(command, ids)
	for _, id := range ids {
		x.must("POST", "/tasks/"+id+"/result", "{"+outcome+"}")
	}
}

// mustBeGone waits until nothing is known of tasks.
func (x *site) mustBeGone(ids []string) {
	x.t.Helper()
	late := time.Now().Add(patience)
	for _, id := range ids {
		for x.ask("GET", "/v1/codeq/tasks/"+id, "", nil).status != 404 {
			if time.Now().After(late) {
				x.t.Fatalf("task %s is still there", id)
			}
			time.Sleep(20 * time.Millisecond) // its time passes, and nobody tells of its end
		}
	}
}

// posted is what came back for a post.
type posted struct {
	id       string
	replayed bool
	code     wire.Code
	conflict string
}

// way is one way to post a task; other makes another content of its body.
type way struct {
	name  string
	other [2]string
	post  func(x *site, k *socket, body string) posted
}

// ways are all there are. Each has another difference between two contents.
var ways = []way{
	{"alone", [2]string{`"payload":{"n":1}`, `"payload":{"n":1 }`}, postAlone},
	{"in a batch", [2]string{`"priority":3`, `"priority":4`}, postTwice},
	{"over a session", [2]string{`"maxAttempts":`, `"maxAttempts":10`}, postInSession},
}

// answerTo is an answer that has a task or a refusal.
type answerTo struct {
	ID, TaskID string
	Task       struct{ ID string }
	Code       wire.Code
	Replayed   bool
}

func postAlone(x *site, _ *socket, body string) posted {
	e := x.ask("POST", "/v1/codeq/tasks", body, nil)
	var a answerTo
	if err := json.Unmarshal([]byte(e.body), &a); err != nil {
		x.t.Fatalf("%d %s: %v", e.status, e.body, err)
	}
	return posted{a.ID, e.header.Get("Idempotent-Replayed") == "true", a.Code, a.TaskID}
}

// postTwice has the same item twice in one batch, which must be one task.
func postTwice(x *site, _ *socket, body string) posted {
	var a struct{ Results []answerTo }
	said := x.must("POST", "/tasks/batch", `{"tasks":[`+body+`,`+body+`]}`)
	if err := json.Unmarshal([]byte(said), &a); err != nil || len(a.Results) != 2 {
		x.t.Fatalf("%s: %v", said, err)
	}
	first, again := a.Results[0], a.Results[1]
	if again.Replayed != (again.Code == "") {
		x.t.Errorf("the second of two is told from the first by %t in %s", again.Replayed, said)
	}
	if again.Replayed = first.Replayed; again != first {
		x.t.Errorf("one body twice in a batch is answered %s", said)
	}
	return posted{first.Task.ID, first.Replayed, first.Code, first.TaskID}
}

func postInSession(x *site, k *socket, body string) posted {
	k.say(`{"type":"enqueue","ref":1,` + body[1:])
	var a answerTo
	if said := k.hear(); json.Unmarshal([]byte(said), &a) != nil {
		x.t.Fatalf("the session says %s", said)
	}
	if a.Code != "" {
		return posted{code: a.Code, conflict: a.TaskID}
	}
	return posted{id: a.TaskID, replayed: a.Replayed}
}

// verdicts are what a cell of the table may say, with what it means for a post
// after the first task.
var verdicts = map[string]func(first string, got posted) bool{
	"that task": func(first string, got posted) bool {
		return got.id == first && got.code == "" && got.replayed
	},
	"refused": func(first string, got posted) bool {
		return got.id == "" && got.code == wire.CodeIdempotencyConflict && got.conflict == first
	},
	"a new task": func(first string, got posted) bool {
		return got.id != "" && got.id != first && got.code == "" && !got.replayed
	},
}

// cell is one of the table, posted to in one way, before or after a restart.
type cell struct {
	*fate
	way           *way
	same, restart bool
	says          string
	first         string
}

func (c *cell) String() string {
	return fmt.Sprintf("the first task of %s %s, %s, same %v, after a kill %v", c.command, c.row, c.way.name, c.same, c.restart)
}

// body is the post of the cell: the first one, or one with other content.
func (c *cell) body(other bool) string {
	body := fmt.Sprintf(`{"command":%q,"payload":{"n":1},"priority":3,"maxAttempts":%d,"idempotencyKey":"%s/%v/%v"`,
		c.command, cmp.Or(c.maxAttempts, 2), c.way.name, c.same, c.restart)
	if other {
		body = strings.Replace(body, c.way.other[0], c.way.other[1], 1)
	}
	return body + c.more + "}"
}

// cellsOfKeys are all cells of the page for some fates; a row without a fate here,
// or a fate without a row, is an error.
func cellsOfKeys(t *testing.T, fates []fate) (all []*cell) {
	t.Helper()
	rows, tested := map[string][]string{}, map[string]bool{}
	for _, row := range cells(t, readPage(t, "reference/tasks.md"), keysHeading) {
		rows[row[0]] = row[1:]
	}
	for i := range fates {
		f := &fates[i]
		row := rows[f.row]
		if len(row) != 2 {
			t.Fatalf("the page has no row of two cells for a first task that %s", f.row)
		}
		tested[f.row] = true
		for n, says := range row {
			if verdicts[says] == nil {
				t.Fatalf("a first task that %s: the cell says %q", f.row, says)
			}
			for w := range ways {
				for _, restart := range []bool{false, true} {
					all = append(all, &cell{fate: f, way: &ways[w], same: n == 0, restart: restart, says: says})
				}
			}
		}
	}
	for row := range rows {
		if tested[row] {
			continue
		}
		t.Errorf("nothing tests the row of a first task that %s", row)
	}
	return all
}

// Every cell of the table of keys, in queues that are spread and in those that are
// not, for each way to post and before and after the server is killed with nothing left of what it had not synced.
func TestEveryCellOfTheTableOfKeysIsTrue(t *testing.T) {
	disk := vfs.NewCrashableMem()
	x := openSiteOn(t, disk, nil)
	fates := allFates()
	all := cellsOfKeys(t, fates)
	for i := range fates {
		f := &fates[i]
		if f.set != "" {
			x.must("PUT", "/admin/queues/"+f.command, "{"+f.set+"}")
		}
		var ids []string
		for _, c := range all {
			if c.fate == f {
				c.first = postAlone(x, nil, c.body(false)).id
				ids = append(ids, c.first)
			}
		}
		f.bring(x, f.command, ids)
	}
	checkKeys(t, x, all, false)
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	checkKeys(t, openSiteOn(t, left, nil), all, true)
}

func checkKeys(t *testing.T, x *site, all []*cell, restarted bool) {
	t.Helper()
	k := x.dial()
	k.say(`{"type":"hello"}`)
	k.hear()
	for _, c := range all {
		if c.restart != restarted {
			continue
		}
		got := c.way.post(x, k, c.body(!c.same))
		if !verdicts[c.says](c.first, got) {
			t.Errorf("%v: the page says %q, the server %+v; the first is %s", c, c.says, got, c.first)
		}
		if c.says != "a new task" {
			continue
		}
		// From now on the key is the new task's.
		if again := c.way.post(x, k, c.body(!c.same)); again.id != got.id {
			t.Errorf("%v: the new task is %s, and then %+v", c, got.id, again)
		}
	}
	if slices.ContainsFunc(all, func(c *cell) bool { return c.first == "" }) {
		t.Error("a first task was not made")
	}
}
