package httpapi

import (
	"net/http"
	"testing"

	"codeq/wire"
)

func (g got) reasons(t *testing.T) *wire.DeadReasons {
	t.Helper()
	found, err := wire.ParseDeadReasons([]byte(g.body))
	if err != nil || g.status != http.StatusOK {
		t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	g.mustBeJSON(t)
	return found
}

func TestReasonsAreCountedTheMostFrequentFirst(t *testing.T) {
	b := newBench(t, setup{})
	b.mustSay("GET", deadPath+"/reasons", "", `{"reasons":[],"read":0}`)
	b.buryFor("ada", "disk full")
	b.buryFor("ada", "no such file")
	b.buryFor("ada", "disk full")
	found := b.do("GET", deadPath+"/reasons", "").reasons(t)
	if len(found.Reasons) != 2 || found.Read != 3 || found.Cursor != "" {
		t.Fatalf("%+v", found)
	}
	most := found.Reasons[0]
	if most.Error != "disk full" || most.Count != 2 || found.Reasons[1].Error != "no such file" || found.Reasons[1].Count != 1 {
		t.Errorf("%+v", found.Reasons)
	}
	if task := b.read(most.TaskID); task.Error != most.Error || task.UpdatedAtMs != most.EndedAtMs {
		t.Errorf("%+v is not what %+v says", task, most)
	}
}

func TestReasonsComeInParts(t *testing.T) {
	b := newBench(t, setup{})
	for range 5 {
		b.buryFor("ada", "disk full")
	}
	counted, parts := 0, 0
	for target := deadPath + "/reasons?limit=2"; ; parts++ {
		found := b.do("GET", target, "").reasons(t)
		for _, r := range found.Reasons {
			counted += r.Count
		}
		if found.Cursor == "" {
			break
		}
		target = deadPath + "/reasons?limit=2&cursor=" + found.Cursor
	}
	if counted != 5 || parts != 2 {
		t.Errorf("%d letters in %d parts and one more", counted, parts)
	}
	for _, query := range []string{"?limit=0", "?limit=10001", "?cursor=x", "?limit=1&limit=1"} {
		b.do("GET", deadPath+"/reasons"+query, "").mustRefuse(t, wire.CodeInvalidArgument)
	}
}
