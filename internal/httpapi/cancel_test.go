package httpapi

import (
	"net/http"
	"testing"
	"testing/synctest"

	"codeq/internal/auth"
	"codeq/wire"
)

func TestCancelEndsTheTaskAndAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		posted := b.post(`{"command":"c","payload":{"a":1}}`)
		path := tasksPath + "/" + posted.ID.String()
		waited := make(chan got)
		go func() { waited <- b.do("GET", path+"/result?waitSeconds=60", "") }()
		synctest.Wait()
		for range 2 {
			g := b.do("POST", path+"/cancel", "")
			task, err := wire.ParseTask([]byte(g.body))
			if err != nil || g.status != http.StatusOK || task.Status != wire.StatusCancelled || string(task.Payload) != `{"a":1}` {
				t.Errorf("cancelled: %d %s (%v)", g.status, g.body, err)
			}
		}
		g := <-waited
		record, err := wire.ParseResultRecord(g.outcome(t).Result)
		if err != nil || g.status != http.StatusOK || record.Status != wire.StatusCancelled {
			t.Errorf("who waited got %d %s (%v)", g.status, g.body, err)
		}
	})
}

func TestCancelOfAnEndedTaskAnswersWithIt(t *testing.T) {
	b := newBench(t, setup{})
	posted := b.post(`{"command":"c","payload":1}`)
	w := b.newWorker("c")
	w.finish(w.take(), `{}`)
	path := tasksPath + "/" + posted.ID.String()
	b.do("GET", path+"/result?waitSeconds=10", "").mustHaveResult(t, `{}`)
	g := b.do("POST", path+"/cancel", "{}")
	g.mustRefuse(t, wire.CodeAlreadyTerminal)
	refusal, err := wire.ParseError([]byte(g.body))
	if err != nil || refusal.Status != wire.StatusCompleted || refusal.Task == nil || refusal.Task.ID != posted.ID {
		t.Errorf("the refusal is %s (%v)", g.body, err)
	}
}

func TestCancelNeedsTheCommandOfTheTask(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"all":    {Tenant: "t", Subject: "s"},
		"other":  {Tenant: "t", Subject: "s", Scopes: auth.ExpandScopes([]string{"producer"}), Commands: []string{"d"}},
		"worker": {Tenant: "t", Subject: "s", Scopes: auth.ExpandScopes([]string{"worker"})},
	}})
	posted := b.post(okBody, "Authorization", "Bearer all")
	path := tasksPath + "/" + posted.ID.String() + "/cancel"
	b.do("POST", path, "", "Authorization", "Bearer other").mustRefuse(t, wire.CodeForbidden)
	b.do("POST", path, "", "Authorization", "Bearer worker").mustRefuse(t, wire.CodeForbidden)
	if g := b.do("POST", path, "", "Authorization", "Bearer all"); g.status != http.StatusOK {
		t.Errorf("cancelled: %d %s", g.status, g.body)
	}
}
