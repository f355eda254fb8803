package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// A body that stops coming is given up in the same time on every route that
// takes one, and one that comes late but in time is taken.
func TestSlowBodyIsGivenUpOnEveryRoute(t *testing.T) {
	for _, route := range Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		path := strings.NewReplacer("{id}", unknownID, "{command}", "c", "{name}", "w").Replace(pattern)
		// Those of the others that have a body in front of them ignore it.
		readsNone := method != http.MethodPost && method != http.MethodPut || strings.HasSuffix(path, "/pause") || strings.HasSuffix(path, "/resume") ||
			strings.Contains(path, "/artifacts/") // which has a test of its own
		if readsNone {
			continue
		}
		t.Run(route, func(t *testing.T) {
			head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n", method, path)
			wireTest(t, func(t *testing.T, b *bench, c *byHand) {
				startedAt := time.Now()
				c.say(head + "{")
				g := c.hear(method)
				g.mustRefuse(t, wire.CodeInvalidBody)
				if waited := time.Since(startedAt); waited != bodyReadFor || !strings.Contains(g.body, bodyReadFor.String()) {
					t.Errorf("given up after %v with %s", waited, g.body)
				}
			})
			wireTest(t, func(t *testing.T, b *bench, c *byHand) {
				c.say(head + "[")
				<-time.After(bodyReadFor - time.Second)
				c.say(strings.Repeat(" ", 18) + "]")
				g := c.hear(method)
				g.mustRefuse(t, wire.CodeInvalidBody) // read to its end, and no object
				if strings.Contains(g.body, bodyReadFor.String()) {
					t.Errorf("given up although it came: %s", g.body)
				}
			})
		})
	}
}

// What clients have not taken of answers has a budget: beyond it what can be large is
// refused, and what keeps work going is not. What is taken, or given up, makes room.
func TestAnswersThatAreNotTakenHaveABudget(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		large := fmt.Sprintf(`{"command":"c","payload":%q}`, strings.Repeat("x", 100_000))
		first, small := b.post(large), b.post(`{"command":"small","payload":1}`)
		held := b.claim(`{"commands":["small"]}`)
		get := func(id wire.TaskID) got { return b.do("GET", tasksPath+"/"+id.String(), "") }
		const page = "GET " + listPath + "?state=ready HTTP/1.1\r\nHost: x\r\n\r\n"
		c.say(page)
		synctest.Wait() // the answer is being written
		if n := b.api.held.Load(); n < 100_000 || n > 101_000 {
			t.Fatalf("%d bytes are held, want those of the page", n)
		}
		b.api.o.AnswerBytes = pageBytes + 100_000
		b.do("GET", listPath+"?state=ready", "").mustRefuse(t, wire.CodeOverloaded)
		b.do("GET", deadPath+"/reasons", "").mustRefuse(t, wire.CodeOverloaded)
		if g := get(first.ID); g.status != http.StatusOK {
			t.Errorf("there is room, and a task is answered %d %s", g.status, g.body)
		}
		b.api.o.AnswerBytes = 150_000
		get(first.ID).mustRefuse(t, wire.CodeOverloaded)
		b.post(large) // it is taken: an answer of its size was not foreseen
		b.api.o.AnswerBytes = 100_000
		b.do("POST", tasksPath, large).mustRefuse(t, wire.CodeOverloaded)
		b.do("POST", batchPath, batchOf(large)).mustRefuse(t, wire.CodeOverloaded)
		for _, path := range []string{claimPath, claimBatchPath} {
			b.do("POST", path, `{}`).mustRefuse(t, wire.CodeOverloaded)
		}
		for _, path := range []string{tasksPath + "/" + small.ID.String(), "/v1/codeq/admin/queues", "/v1/codeq/admin/sessions"} {
			b.do("GET", path, "").mustRefuse(t, wire.CodeOverloaded)
		}
		b.post(`{"command":"small","payload":2}`)
		for _, verb := range [][2]string{{"heartbeat", `{}`}, {"result", `{"result":{}}`}} {
			if g := b.do("POST", held.path(verb[0]), verb[1]); g.status != http.StatusOK {
				t.Errorf("%s is answered %d %s", verb[0], g.status, g.body)
			}
		}
		if g := b.do("GET", "/metrics", ""); g.status != http.StatusOK {
			t.Errorf("the metrics are answered %d", g.status)
		}
		b.api.o.AnswerBytes = pageBytes
		if g := c.hear("GET"); g.status != http.StatusOK || len(g.body) < 100_000 {
			t.Errorf("the page is answered %d with %d bytes", g.status, len(g.body))
		}
		synctest.Wait()
		if n := b.api.held.Load(); n != 0 {
			t.Errorf("%d bytes are held when all is taken", n)
		}
		c.say(page)
		synctest.Wait()
		if err := c.conn.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := b.api.held.Load(); n != 0 {
			t.Errorf("%d bytes are held when the client has left", n)
		}
	})
}
