package httpapi

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// slowTaker takes an answer after some time.
type slowTaker struct {
	*httptest.ResponseRecorder
	takes time.Duration
}

func (s slowTaker) Write(body []byte) (int, error) {
	time.Sleep(s.takes) // in the bubble of its test
	return s.ResponseRecorder.Write(body)
}

// A run begins when the answer of the claim has been written: until then only the
// lease counts, which is kept. Then no heartbeat passes its end.
func TestU04ARunBeginsWhenTheAnswerIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1,"timeoutSeconds":5,"maxAttempts":1}`)
		w := slowTaker{httptest.NewRecorder(), 20 * time.Second}
		b.api.ServeHTTP(w, httptest.NewRequest("POST", claimPath, strings.NewReader(`{"leaseSeconds":9}`)))
		written := time.Now()
		claimed, token, err := wire.ParseClaimed(w.Body.Bytes())
		if err != nil || claimed.RunUntilMs == 0 || claimed.LeaseUntilMs > claimed.RunUntilMs {
			t.Fatalf("claimed %+v, %v", claimed, err)
		}
		synctest.Wait()
		end := written.Add(5 * time.Second)
		for time.Now().Before(end) {
			g := b.do("POST", tasksPath+"/"+task.ID.String()+"/heartbeat", fmt.Sprintf(`{"leaseToken":%q,"extendSeconds":600}`, token))
			at := end.UTC().Format("2006-01-02T15:04:05.000Z")
			if want := fmt.Sprintf(`{"ok":true,"leaseUntil":%q,"runUntil":%q}`, at, at); g.body != want {
				t.Fatalf("a heartbeat says %s, want %s", g.body, want)
			}
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		seen := b.read(task.ID)
		if seen.Status != wire.StatusFailed || seen.Error != wire.ErrorTimeout || len(seen.History) != 1 || seen.History[0].Cause != "timeout" ||
			seen.History[0].ToMs != end.UnixMilli() {
			t.Errorf("after its run the task is %+v", seen)
		}
	})
}

// Batches have the limits of each item, and an item that cannot begin is refused alone.
func TestU04LimitsInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		g := b.do("POST", tasksPath+"/batch", `{"tasks":[
			{"command":"c","payload":1,"timeoutSeconds":7,"ttlSeconds":60},
			{"command":"c","payload":2,"ttlSeconds":60,"delaySeconds":60},
			{"command":"c","payload":3,"expiresAt":"2000-01-01T00:00:00Z"},
			{"command":"c","payload":4,"expiresAt":"2100-01-01T00:00:00Z","ttlSeconds":1},
			{"command":"c","payload":5,"timeoutSeconds":0},
			{"command":"c","payload":6,"ttlSecond":1}]}`)
		for _, want := range []string{
			`"timeoutSeconds":7`, `"expiresAt":"`, `the task would expire at`, `tasks[3].expiresAt and ttlSeconds must not be given together`,
			`tasks[4].timeoutSeconds must be an integer from 1 to 2592000`, `did you mean ttlSeconds?`,
		} {
			if !strings.Contains(g.body, want) {
				t.Errorf("the answer has no %s: %s", want, g.body)
			}
		}
		if n := strings.Count(g.body, `"code":"invalid_time"`); n != 3 {
			t.Errorf("%d items are refused for their time: %s", n, g.body)
		}
	})
}
