package client

import (
	"context"
	"testing"

	"codeq/wire"
)

func TestTasksSendsTheQueryAndReadsThePage(t *testing.T) {
	c, asked := answering(t, 200, `{"tasks":[`+taskBody('a')+`,`+taskBody('b')+`],"cursor":"next"}`)
	got, err := c.Tasks(context.Background(), ListQuery{
		Command: "hash", State: "done", Status: wire.StatusFailed, Worker: "ada & bob", ErrorPart: "50 %", Limit: 2, Cursor: "here",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tasks) != 2 || got.Tasks[1].ID != taskID('b') || got.Cursor != "next" {
		t.Errorf("got %+v", got)
	}
	want := apiPath + "/admin/queues/hash/tasks?cursor=here&error=50+%25&limit=2&state=done&status=FAILED&worker=ada+%26+bob"
	if asked.URL.String() != want {
		t.Errorf("asked %s\nwant %s", asked.URL, want)
	}
}

func TestTasksRefusesAPageThatIsNone(t *testing.T) {
	for _, body := range []string{`{}`, `{"tasks":1}`, `{"tasks":[1]}`, `{"tasks":[{"id":"x"}]}`, `[]`} {
		c, _ := answering(t, 200, body)
		if got, err := c.Tasks(context.Background(), ListQuery{Command: "c", State: "done"}); err == nil {
			t.Errorf("%s gave %+v", body, got)
		}
	}
}
