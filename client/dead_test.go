package client

import (
	"context"
	"testing"
	"time"

	"codeq/wire"
)

func TestDeadLettersAreWorkedOnByQuery(t *testing.T) {
	before := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	q := BulkQuery{Command: "hash", Before: before, Worker: "ada & bob", ErrorPart: "50 %", Limit: 7, Cursor: "here"}

	c, asked := answering(t, 200, `{"replayed":3,"remaining":4,"cursor":"next"}`)
	got, err := c.ReplayTasks(context.Background(), q)
	if err != nil || got.Done != 3 || got.Remaining != 4 || got.Cursor != "next" {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := apiPath + "/admin/queues/hash/dlq/replay"; asked.Method != "POST" || asked.URL.String() != want {
		t.Errorf("asked %s %s", asked.Method, asked.URL)
	}

	c, asked = answering(t, 200, `{"purged":2,"remaining":0}`)
	got, err = c.PurgeTasks(context.Background(), q)
	if err != nil || got.Done != 2 || got.Remaining != 0 || got.Cursor != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	want := apiPath + "/admin/queues/hash/dlq?before=2026-01-31T12%3A00%3A00.000Z&cursor=here&error=50+%25&limit=7&worker=ada+%26+bob"
	if asked.Method != "DELETE" || asked.URL.String() != want {
		t.Errorf("asked %s %s\nwant %s", asked.Method, asked.URL, want)
	}
}

func TestDeadReasonsReadsAPart(t *testing.T) {
	c, asked := answering(t, 200, `{"reasons":[{"error":"no luck","cause":"failed","count":7,"newestTaskId":"`+taskID('a').String()+
		`","newestEndedAt":"2026-01-31T12:00:00.000Z"}],"read":9,"cursor":"next"}`)
	got, err := c.DeadReasons(context.Background(), "hash", "failed", 9, "here")
	if err != nil {
		t.Fatal(err)
	}
	r := got.Reasons[0]
	if r.Error != "no luck" || r.Cause != wire.DeadFailed || r.Count != 7 || r.TaskID != taskID('a') || r.EndedAtMs != 1_769_860_800_000 || got.Read != 9 || got.Cursor != "next" {
		t.Errorf("got %+v", got)
	}
	if want := apiPath + "/admin/queues/hash/dlq/reasons?cause=failed&cursor=here&limit=9"; asked.URL.String() != want {
		t.Errorf("asked %s", asked.URL)
	}
	for _, body := range []string{`{}`, `{"reasons":1}`, `{"reasons":[1]}`, `{"reasons":[{"newestTaskId":"x"}]}`, `[]`} {
		c, _ := answering(t, 200, body)
		if got, err := c.DeadReasons(context.Background(), "c", "", 1, ""); err == nil {
			t.Errorf("%s gave %+v", body, got)
		}
	}
}
