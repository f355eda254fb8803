package client

import (
	"context"
	"testing"
	"time"

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

func TestFindSendsTheQueryAndReadsThePage(t *testing.T) {
	c, asked := answering(t, 200, `{"tasks":[`+taskBody('a')+`],"scanned":20000,"cursor":"next"}`)
	got, err := c.Find(context.Background(), FindQuery{
		ID: taskID('a').String(), Labels: []string{"customer=acme", "run=1"}, Command: "billing.*", State: "dlq", ErrorPart: "50 %", PayloadPart: "x",
		Worker: "ada", OlderThan: 90 * time.Minute, MinAttempts: 3, Limit: 2, Cursor: "here",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tasks) != 1 || got.Scanned != 20000 || got.Cursor != "next" {
		t.Errorf("got %+v", got)
	}
	want := apiPath + "/admin/tasks?attempts%3E=3&command=billing.%2A&cursor=here&error~=50+%25&id=" + taskID('a').String() +
		"&label=customer%3Dacme&label=run%3D1&limit=2&olderThan=1h30m0s&payload~=x&state=dlq&worker=ada"
	if asked.URL.String() != want {
		t.Errorf("asked %s\nwant %s", asked.URL, want)
	}
}

func TestLabelsOfATaskAreChecked(t *testing.T) {
	r, err := newRequest(t.Context(), "c", 1, []EnqueueOption{Label("run", "1"), Label("customer", "a=b")})
	if err != nil || r.Labels != "customer=a=b\nrun=1" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, option := range []EnqueueOption{Label("a=b", "c"), Label("", "c"), Label("a", ""), Label("a", "\n")} {
		if r, err := newRequest(t.Context(), "c", 1, []EnqueueOption{option}); err == nil {
			t.Errorf("%q passes", r.Labels)
		}
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
