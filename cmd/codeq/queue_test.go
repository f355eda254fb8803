package main

import "testing"

func TestQueueIsPausedResumedAndSet(t *testing.T) {
	h := newHouse(t)
	h.fine("enqueue", "hash", "1")
	has(t, h.fine("pause", "hash"), "paused", "yes", "ready")
	has(t, h.fine("pause", "hash", "--json"), `"paused":true`, `"ready":1`)
	has(t, h.fine("queues"), "hash     1      0        0            0     yes")
	has(t, h.fine("queue", "set", "hash", "--max-attempts", "2", "--backoff", "fixed", "--backoff-base", "1m"),
		"max attempts       2 (queue)", "backoff            fixed (queue)", "backoff base       1m (queue)", "yes")
	has(t, h.fine("queue", "set", "hash", "--lease", "30s", "--max-attempts", "0"), "lease              30s (queue)", "fixed", "max attempts       5 (server)", "retention          for ever (server)")
	has(t, h.fine("queue", "show", "hash", "--json"),
		`"paused":true`, `"leaseSeconds":30`, `"backoff":{"policy":"fixed","baseSeconds":60}`)
	has(t, h.fine("queue", "set", "hash", "--timeout", "10m", "--ttl", "24h"), "timeout            10m (queue)", "ttl                1d (queue)")
	has(t, h.fine("queue", "set", "hash", "--ttl", "0s"), "timeout            10m (queue)", "ttl                for ever (server)")
	has(t, h.fine("resume", "hash"), "no")
	has(t, h.fine("queue", "show", "hash"), "spread             no (server)")
	has(t, h.fine("queue", "set", "clicks", "--create", "--spread"), "spread             yes (queue)")
	for range 40 {
		h.fine("enqueue", "clicks", "1")
	}
	has(t, h.fine("queue", "set", "clicks", "--max-attempts", "3", "--json"), `"spread":true`, `"maxAttempts":3`)
	code, out, err := h.run("", "queue", "set", "clicks", "--no-spread")
	if code != exitFailed || out != "" {
		t.Errorf("a queue with tasks on all shards got one order: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "a spread queue can be put into one order only while no shard but its home holds a task of it")
	code, out, err = h.run("", "queue", "set", "hash", "--backoff", "never")
	if code != exitWrong || out != "" {
		t.Errorf("a policy that does not exist: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "--backoff must be one of")
}
