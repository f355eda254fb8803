package main

import "testing"

func TestQueueKeepsEndedTasksAsLongAsItSays(t *testing.T) {
	h := newHouse(t)
	has(t, h.fine("queue", "set", "hash", "--create", "--retention", "2h", "--dlq-retention", "48h"), "2h (queue)", "2d (queue)")
	has(t, h.fine("queue", "show", "hash", "--json"), `"retentionSeconds":7200,"dlqRetentionSeconds":172800`)
	code, out, err := h.run("", "queue", "set", "hash", "--retention", "87601h")
	if code != exitWrong || out != "" {
		t.Errorf("longer than ten years: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "--retention must be an integer from 1 to 315360000")
}
