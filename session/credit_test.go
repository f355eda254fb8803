package session

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// call is one request over HTTP: it waits for its one answer.
type call chan shard.Effect

// Deliver implements shard.Sink.
func (c call) Deliver(effects []shard.Effect) { c <- effects[0] }

// ask has a shard answer a message as it answers a call over HTTP.
func (b *bench) ask(id wire.TaskID, message func(to shard.Asker) shard.Message) shard.Effect {
	b.t.Helper()
	answer := make(call, 1)
	m := message(shard.Asker{Sink: answer, Ref: 1})
	if v := b.engine.Post(b.engine.ShardOf(id), []shard.Message{m}, 0, mailbox.ClassKeep); v != mailbox.Accepted {
		b.t.Fatalf("the shard took %T: %v", m, v)
	}
	return <-answer
}

func done() wire.ResultRequest {
	return wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)}
}

// endings are the verbs by which a worker answers for a delivery.
func endings(owner shard.Owner, ref wire.TaskRef) map[string]func(shard.Asker) shard.Message {
	return map[string]func(shard.Asker) shard.Message{
		"result": func(to shard.Asker) shard.Message {
			return &shard.Result{Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, ResultRequest: done()}
		},
		"nack": func(to shard.Asker) shard.Message {
			return &shard.End{How: shard.Nack, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}}
		},
		"abandon": func(to shard.Asker) shard.Message {
			return &shard.End{How: shard.Abandon, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}}
		},
		"release": func(to shard.Asker) shard.Message {
			return &shard.End{How: shard.Release, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}}
		},
	}
}

// fates are what may become of a delivery before its worker answers for it.
var fates = map[string]func(b *bench, c *client, task wire.TaskRef){
	"in hand": func(*bench, *client, wire.TaskRef) {},
	"cancelled": func(b *bench, c *client, task wire.TaskRef) {
		b.ask(task.TaskID, func(to shard.Asker) shard.Message {
			return &shard.Manage{Do: shard.Cancel, Asker: to, Tenant: "default", TaskID: task.TaskID}
		})
		c.told(wire.RevokedCancelled)
	},
	"expired": func(_ *bench, c *client, _ wire.TaskRef) { c.told(wire.RevokedExpired) },
	"replayed": func(b *bench, c *client, task wire.TaskRef) {
		c.told(wire.RevokedExpired) // its only attempt
		e := b.ask(task.TaskID, func(to shard.Asker) shard.Message {
			return &shard.Manage{Do: shard.Replay, Asker: to, Tenant: "default", TaskID: task.TaskID}
		})
		if _, ok := e.(*shard.Managed); !ok {
			b.t.Fatalf("replay got %+v", e)
		}
	},
	"taken over": func(b *bench, c *client, task wire.TaskRef) {
		other, _ := b.open(`{"type":"hello"}`)
		other.send(&wire.Heartbeat{Ref: ref(1), Tasks: []wire.TaskRef{task}})
		next[*wire.OK](other)
		c.told(wire.RevokedSuperseded)
	},
}

// told waits for the word that a delivery is lost.
func (c *client) told(reason string) {
	c.t.Helper()
	if got := next[*wire.Revoked](c); got.Reason != reason {
		c.t.Fatalf("revoked as %s, want %s", got.Reason, reason)
	}
}

// spoil gives a session of window 1 a task and lets a fate come over it.
func (b *bench) spoil(fate string) (*client, wire.TaskRef) {
	b.t.Helper()
	c, _ := b.open(`{"type":"hello"}`)
	attempts := 5
	if fate == "replayed" {
		attempts = 1
	}
	c.say(fmt.Sprintf(`[{"type":"subscribe","commands":["a"],"window":1,"leaseSeconds":20},`+
		`{"type":"enqueue","command":"a","payload":1,"maxAttempts":%d}]`, attempts))
	frame := next[*wire.TaskFrame](c)
	task := wire.TaskRef{TaskID: frame.Task.ID, Token: frame.Token}
	synctest.Wait() // the pong confirms it
	fates[fate](b, c, task)
	// There is work, but no room until somebody answers.
	for n := range 4 {
		c.say(fmt.Sprintf(`{"type":"enqueue","command":"a","payload":%d}`, 10+n))
	}
	c.silent()
	return c, task
}

// hasCreditForOne fails unless the session gets one task, and one only.
func (c *client) hasCreditForOne() {
	c.t.Helper()
	next[*wire.TaskFrame](c)
	c.silent()
}

func TestCreditComesBackHoweverAWorkerAnswersForADelivery(t *testing.T) {
	owner := shard.Owner{Tenant: "default", Subject: "anonymous"}
	for fate := range fates {
		for verb := range endings(owner, wire.TaskRef{}) {
			t.Run(fate+" "+verb+" over HTTP", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, setup{})
					c, task := b.spoil(fate)
					b.ask(task.TaskID, endings(owner, task)[verb])
					c.hasCreditForOne()
					// Once is enough, and the session's own word comes too late.
					b.ask(task.TaskID, endings(owner, task)[verb])
					c.send(&wire.Release{TaskRef: task})
					next[*wire.ErrorFrame](c)
					c.silent()
				})
			})
		}
		t.Run(fate+" result over another session", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, setup{})
				c, task := b.spoil(fate)
				other, _ := b.open(`{"type":"hello"}`)
				other.send(&wire.Result{TaskRef: task, ResultRequest: done()})
				c.hasCreditForOne()
			})
		})
	}
}

func TestStrangersReturnNoCredit(t *testing.T) {
	for _, owner := range []shard.Owner{
		{Tenant: "default", Subject: "mallory"}, {Tenant: "acme", Subject: "anonymous"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, setup{})
			c, task := b.spoil("cancelled")
			for _, message := range endings(owner, task) {
				b.ask(task.TaskID, message)
			}
			for _, message := range endings(shard.Owner{Tenant: "default", Subject: "anonymous"}, wire.TaskRef{TaskID: task.TaskID}) {
				b.ask(task.TaskID, message)
			}
			c.silent()
		})
	}
}

// A server that goes waits for what a session has in hand, not for what was
// answered for elsewhere.
func TestSessionLeavesWhenItsTaskIsAnsweredForOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, task := b.spoil("in hand")
		c.say(`{"type":"window","size":0}`)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		left := make(chan error, 1)
		go func() { left <- b.registry.Shutdown(ctx) }()
		next[*wire.Draining](c)
		time.Sleep(5 * time.Second) // time of the bubble that this runs in
		owner := shard.Owner{Tenant: "default", Subject: "anonymous"}
		b.ask(task.TaskID, endings(owner, task)["result"])
		if code := c.closeCode(); code != CloseRestart {
			t.Errorf("closed with %d, want %d", code, CloseRestart)
		}
		if err := <-left; err != nil || ctx.Err() != nil {
			t.Errorf("shutdown says %v, its time is over: %v", err, ctx.Err())
		}
	})
}
