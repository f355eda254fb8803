package session

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/shard"
	"codeq/wire"
)

// openConversation is one that has said hello.
func openConversation(router Router) *Conversation {
	c := NewConversation(Facts{Router: router}, scriptEpochMs)
	c.Step(scriptEpochMs, &ClientMessage{Data: []byte(`{"type":"hello"}`)})
	c.Step(scriptEpochMs, &Admitted{Principal: &auth.Principal{Tenant: "acme", Subject: "bob"}})
	return c
}

func TestReaderStopsInTheMiddleOfAMessageAtTheBoundOfRequests(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	const extra = 10
	message := "[" + strings.Repeat(`{"type":"x"},`, wire.MaxUnansweredRequests+extra-1) + `{"type":"x"}]`
	a := c.Step(scriptEpochMs, &ClientMessage{Data: []byte(message)})
	if len(a.Frames) != wire.MaxUnansweredRequests || c.Needs() != NeedAnswers {
		t.Fatalf("%d answers and need %d, want %d and the bound", len(a.Frames), c.Needs(), wire.MaxUnansweredRequests)
	}
	half := wire.MaxUnansweredRequests / 2
	c.Step(scriptEpochMs, &Written{Frames: a.Frames[:half-1]})
	if c.MayContinue() {
		t.Error("it goes on above half of the bound")
	}
	c.Step(scriptEpochMs, &Written{Frames: a.Frames[half-1 : half]})
	if !c.MayContinue() {
		t.Error("it does not go on at half of the bound")
	}
	if b := c.Step(scriptEpochMs, &Continue{}); len(b.Frames) != extra || c.Needs() != NeedNothing {
		t.Errorf("%d answers and need %d after it goes on, want %d and none", len(b.Frames), c.Needs(), extra)
	}
}

func TestPongsThatTheServerDidNotReadAreNotMissed(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	at := func(seconds int64, e Event) Actions { return c.Step(scriptEpochMs+seconds*1000, e) }
	message := "[" + strings.Repeat(`{"type":"x"},`, wire.MaxUnansweredRequests-1) + `{"type":"x"}]`
	a := at(1, &ClientMessage{Data: []byte(message)})
	at(20, &Timer{})
	at(40, &Timer{})
	at(59, &Written{Frames: a.Frames})
	at(59, &Continue{})
	for seconds := int64(60); !c.Over(); seconds += 20 {
		a = at(seconds, &Timer{})
		if c.Over() && seconds != 100 {
			t.Errorf("closed %d seconds after the start, want two pings after the reader went on", seconds)
		}
	}
	if a.Close == nil || a.Close.Code != CloseIdle {
		t.Errorf("closed by %+v", a.Close)
	}
}

// A ping that stands behind bytes which the client takes is not missed, and its time
// begins when its last byte has left.
func TestN11PingBehindOtherBytesIsNotMissed(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	at := func(seconds int64, ping PingState) Actions {
		return c.Step(scriptEpochMs+seconds*1000, &Timer{Ping: ping})
	}
	for seconds := int64(20); seconds <= 400; seconds += 20 {
		if at(seconds, PingMoves); c.Over() {
			t.Fatalf("closed after %d seconds, while the client takes what is in front of the ping", seconds)
		}
	}
	for seconds := int64(420); !c.Over(); seconds += 20 {
		if a := at(seconds, PingArrived); c.Over() && (seconds != 460 || a.Close.Code != CloseIdle) {
			t.Errorf("closed after %d seconds by %+v, want two pings after the last byte had left", seconds, a.Close)
		}
	}
}

// A client that takes less than it must is cut, though it says all the time that it
// lives.
func TestN11PingThatDoesNotGetThroughIsMissed(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	states := []PingState{PingArrived, PingWaits, PingStuck, PingWaits, PingStuck}
	for n, ping := range states {
		if c.Over() {
			t.Fatalf("closed before ping %d", n)
		}
		c.Step(scriptEpochMs+int64(n)*20_000+1, &Pong{})
		c.Step(scriptEpochMs+int64(n+1)*20_000, &Timer{Ping: ping})
	}
	if !c.Over() {
		t.Error("it lives on")
	}
}

// Nor is one whose pong stands behind a message that is still coming.
func TestN11PongBehindAMessageIsNotMissed(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	for seconds := int64(20); seconds <= 400; seconds += 20 {
		if c.Step(scriptEpochMs+seconds*1000, &Timer{Hears: true}); c.Over() {
			t.Fatalf("closed after %d seconds, while a message comes", seconds)
		}
	}
	c.Step(scriptEpochMs+420_000, &Timer{})
	if c.Step(scriptEpochMs+440_000, &Timer{}); !c.Over() {
		t.Error("it lives on when nothing comes any more")
	}
}

func TestN11PaceFollowsTheLine(t *testing.T) {
	const kib = 1 << 10
	for _, one := range []struct {
		name          string
		bytes, tookMs int
		leaseMs       int64
		least, atMost int
	}{
		{"a fast line", 100 * kib, 5, 30_000, mostUntakenBytes, mostUntakenBytes},
		{"a task now and then, far away", 100, 300, 30_000, mostUntakenBytes, mostUntakenBytes},
		{"64 KiB/s", 200 * kib, 3125, 30_000, 470 * kib, 490 * kib},
		{"64 KiB/s and short leases", 200 * kib, 3125, 4_000, 60 * kib, 65 * kib},
		{"hardly anything", 4 * kib, 10_000, 30_000, leastUntakenBytes, leastUntakenBytes},
	} {
		var p pace
		nowMs, bound := int64(scriptEpochMs), 0
		for range 20 {
			p.sends(one.bytes, one.leaseMs, nowMs)
			nowMs += int64(one.tookMs)
			p.sends(one.bytes, one.leaseMs, nowMs) // there is always more
			bound = p.takes(one.bytes, nowMs)
			p.untakenBytes -= one.bytes
		}
		if bound < one.least || bound > one.atMost {
			t.Errorf("%s: %d bytes may be on their way, want %d to %d", one.name, bound, one.least, one.atMost)
		}
	}
}

func TestReaderStopsAtTheBoundOfBytes(t *testing.T) {
	c := openConversation(&testRouter{shards: 1})
	message := []byte(`{"type":"enqueue","command":"a","payload":"` + strings.Repeat("x", wire.MaxPayloadBytes-2) + `"}`)
	sent := 0
	for c.Needs() == NeedNothing {
		c.Step(scriptEpochMs, &ClientMessage{Data: bytes.Clone(message)})
		sent++
	}
	if want := wire.MaxUnansweredBytes / wire.MaxPayloadBytes; sent != want {
		t.Errorf("stopped after %d payloads of 1 MiB, want %d", sent, want)
	}
	for n := range shard.Ref(sent) {
		c.Step(scriptEpochMs, &Effects{List: []shard.Effect{&shard.Enqueued{Ref: n + 1}}})
	}
	if !c.MayContinue() {
		t.Error("it does not go on when all is answered, though nobody wanted to know")
	}
}

func TestDeliveryThatIsNeverConfirmedDoesNotMakeTheListGrow(t *testing.T) {
	d := newDeliveries()
	stuck := wire.TaskRef{TaskID: testTask(1)}
	d.add(stuck, 1)
	for n := range 100_000 {
		ref := wire.TaskRef{TaskID: testTask(2), Token: wire.Token{0: 1, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}}
		d.add(ref, 1)
		d.confirmNamed(ref)
		d.remove(ref)
	}
	if len(d.unconfirmed) > 200 || d.inFlight() != 1 {
		t.Errorf("%d in the list, %d in hand", len(d.unconfirmed), d.inFlight())
	}
	if fresh := d.through(d.lastSeq); len(fresh) != 1 || fresh[0] != stuck {
		t.Errorf("confirmed %v, want the one", fresh)
	}
}

func TestAnswerThatNobodyAskedForIsAFault(t *testing.T) {
	for _, e := range []shard.Effect{
		&shard.Subscribed{Ref: 1}, &shard.Enqueued{Ref: 9}, &shard.Ended{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is taken", e)
				}
			}()
			openConversation(&testRouter{shards: 1}).Step(scriptEpochMs, &Effects{List: []shard.Effect{e}})
		}()
	}
}

// Whatever a client sends, every frame of it has at most one answer, and
// nothing but a message that is no JSON ends the session.
func FuzzClientMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"hello"}`, `[]`, `[{"type":"subscribe","ref":1,"commands":["*"]},{"type":"drain","ref":2}]`,
		`{"type":"received","through":2}`, `{"type":"received","through":3}`, `{"type":"heartbeat","ref":1}`,
		`{"type":"enqueue","ref":-1,"command":"a","payload":null,"idempotencyKey":"k"}`, `{"type":"hello","token":"t"}`,
		fmt.Sprintf(`{"type":"result","ref":1,"taskId":"%v","leaseToken":"%v","result":{}}`, testTask(1), testToken(1)),
		fmt.Sprintf(`{"type":"nack","ref":1,"taskId":"%v","leaseToken":"%v"}`, testTask(2), testToken(2)),
		fmt.Sprintf(`{"type":"heartbeat","tasks":[{"taskId":"%v","leaseToken":"%v"}]}`, testTask(1), testToken(1)),
		`{`, "\xff", `null`, `[1,{"type":7}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := openConversation(&testRouter{shards: 2})
		for n := range 2 {
			c.Step(scriptEpochMs, &Effects{List: []shard.Effect{
				&shard.Granted{Task: &wire.Task{ID: testTask(n + 1)}, Token: testToken(n + 1)},
			}})
		}
		frames, violation := wire.ParseClientMessage(bytes.Clone(data))
		a := c.Step(scriptEpochMs, &ClientMessage{Data: bytes.Clone(data)})
		if (violation != nil) != c.Over() || (a.Close != nil) != c.Over() {
			t.Fatalf("violation %v, over %t, close %v", violation, c.Over(), a.Close)
		}
		if violation != nil {
			return
		}
		messages := 0
		for _, p := range a.Posts {
			messages += len(p.Messages)
		}
		if len(a.Frames) > len(frames) || c.unanswered > len(frames) {
			t.Fatalf("%d frames have %d answers and count as %d", len(frames), len(a.Frames), c.unanswered)
		}
		asked := len(c.requests) > 0 || c.barrier.waits > 0
		if (a.Barrier != nil) != (c.barrier.waits > 0) {
			t.Fatalf("%d shards have not answered, and the consumer asks %v", c.barrier.waits, a.Barrier)
		}
		if c.Needs() == NeedNothing && !asked && c.unanswered != len(a.Frames) {
			t.Fatalf("%d are unanswered, but %d answers wait and no shard is asked", c.unanswered, len(a.Frames))
		}
	})
}

// The parser sees a whole message before the conversation can stop it, so what
// it makes of the worst one must be bounded too.
func TestMessageOfTooManyFramesIsRefusedWithoutKeepingThem(t *testing.T) {
	message := func(frames int) []byte { return []byte("[" + strings.Repeat("{},", frames-1) + "{}]") }
	if frames, violation := wire.ParseClientMessage(message(wire.MaxMessageFrames)); violation != nil || len(frames) != wire.MaxMessageFrames {
		t.Errorf("%d frames, %v at the limit", len(frames), violation)
	}
	worst := message((wire.MaxClientMessageBytes - 2) / 3)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := openConversation(&testRouter{shards: 1}).Step(scriptEpochMs, &ClientMessage{Data: worst})
	runtime.ReadMemStats(&after)
	if a.Close == nil || a.Close.Code != CloseProtocol {
		t.Errorf("closed by %+v, want %d", a.Close, CloseProtocol)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 8*wire.MaxClientMessageBytes {
		t.Errorf("%d bytes of memory for %d bytes", made, len(worst))
	}
}
