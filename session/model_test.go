package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// model is a client and its shards, played at random, that keep simple lists of
// what a conversation must not lose.
type model struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	talk    *Conversation
	nowMs   int64
	outbox  []Outgoing
	waiting []shard.Message // accepted, not answered
	tasks   []*modelTask
	pings   []string

	given         int
	requests      int // with a ref, sent
	answers       int // to them
	closeConsumer int
}

// modelTask is one delivery: what the client did with it and what its shard has
// heard.
type modelTask struct {
	ref wire.TaskRef
	// left: its frame has been written. claimed: the client has confirmed it by
	// seq. heard: the shard was told, by a confirmation or a frame with its
	// token. answered: the client has sent an end for it.
	left, claimed, heard, answered bool
}

func newModel(t *testing.T, seed uint64) *model {
	w := &model{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), nowMs: scriptEpochMs}
	w.talk = NewConversation(Facts{Router: &testRouter{shards: 3}}, w.nowMs)
	w.step(&ClientMessage{Data: []byte(`{"type":"hello"}`)})
	w.step(&Admitted{Principal: &auth.Principal{Tenant: "acme", Subject: "bob"}})
	return w
}

func (w *model) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *model) step(e Event) {
	a := w.talk.Step(w.nowMs, e)
	for _, p := range a.Posts {
		if w.random.IntN(4) == 0 {
			w.step(&Unposted{Post: p, Verdict: mailbox.Full})
			continue
		}
		for _, m := range p.Messages {
			w.hear(m)
			w.waiting = append(w.waiting, m)
		}
	}
	w.given += a.Credit
	w.outbox = append(w.outbox, a.Frames...)
	if a.Ping != nil {
		w.pings = append(w.pings, string(a.Ping))
	}
	if a.CloseConsumer {
		w.closeConsumer++
	}
	if a.Close != nil {
		w.fatalf("closed: %+v", *a.Close)
	}
}

// hear is a shard that takes a message.
func (w *model) hear(m shard.Message) {
	var refs []wire.TaskRef
	switch m := m.(type) {
	case *shard.Received:
		refs = m.Tasks
	case *shard.Heartbeat:
		refs = m.Tasks
	case *shard.End:
		refs = []wire.TaskRef{m.TaskRef}
	}
	for _, task := range w.tasks {
		task.heard = task.heard || slices.Contains(refs, task.ref)
	}
}

// answer makes a shard answer one message that waits.
func (w *model) answer() {
	if len(w.waiting) == 0 {
		return
	}
	m := w.waiting[0]
	w.waiting = w.waiting[1:]
	switch m := m.(type) {
	case *shard.Heartbeat:
		w.step(&Effects{List: []shard.Effect{&shard.Extended{Ref: m.Ref}}})
	case *shard.End:
		w.step(&Effects{List: []shard.Effect{&shard.Requeued{Ref: m.Ref, TaskID: m.TaskID, Status: wire.NackRequeued}}})
	}
}

func (w *model) grant() {
	n := len(w.tasks) + 1
	ref := wire.TaskRef{TaskID: testTask(n % 251), Token: wire.Token{14: byte(n >> 8), 15: byte(n)}}
	w.tasks = append(w.tasks, &modelTask{ref: ref})
	w.step(&Effects{List: []shard.Effect{
		&shard.Granted{Task: &wire.Task{ID: ref.TaskID, Payload: []byte("1")}, Token: ref.Token},
	}})
}

// write lets some frames leave.
func (w *model) write() {
	w.leave(w.random.IntN(len(w.outbox) + 1))
}

func (w *model) leave(n int) {
	left := w.outbox[:n:n]
	w.outbox = w.outbox[n:]
	for _, o := range left {
		switch f := o.Frame.(type) {
		case *wire.TaskFrame:
			w.tasks[f.Seq-1].left = true
		case *wire.OK, *wire.ErrorFrame:
			w.answers++
		}
	}
	w.step(&Written{Frames: left})
}

// received confirms every frame up to a task that has left.
func (w *model) received() {
	through := w.through()
	w.claim(through)
	w.say(&wire.Received{Through: uint64(through)})
}

// through is up to where the client says that all has arrived, which may be less
// than it said before.
func (w *model) through() (through int) {
	for through < len(w.tasks) && w.tasks[through].left {
		through++
	}
	return max(through-w.random.IntN(4), 0)
}

func (w *model) claim(through int) {
	for _, task := range w.tasks[:through] {
		task.claimed = true
	}
}

// pong answers the oldest ping, as a client does that has read what was in
// front of it.
func (w *model) pong() {
	if len(w.pings) == 0 {
		return
	}
	payload := w.pings[0]
	w.pings = w.pings[1:]
	through, err := strconv.Atoi(payload)
	if err != nil || through > len(w.tasks) || through > 0 && !w.tasks[through-1].left {
		w.fatalf("ping %q is in front of its tasks", payload)
	}
	w.claim(through)
	w.step(&Pong{Payload: []byte(payload)})
}

func (w *model) say(frames ...wire.ClientFrame) {
	data := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			data = append(data, ',')
		}
		data = wire.AppendClientFrame(data, f)
	}
	w.step(&ClientMessage{Data: append(data, ']')})
}

// several is a client that says in one message what it would say in some: shards
// take or refuse all of it at once, behind the last frame.
func (w *model) several() {
	frames := make([]wire.ClientFrame, 0, 4)
	for range 2 + w.random.IntN(3) {
		if task := w.someTask(); task != nil && w.random.IntN(2) == 0 {
			w.requests++
			frames = append(frames, &wire.Heartbeat{Ref: ref(3), Tasks: []wire.TaskRef{task.ref}})
			continue
		}
		through := w.through()
		w.claim(through)
		frames = append(frames, &wire.Received{Through: uint64(through)})
	}
	w.say(frames...)
}

// someTask is one that the client has, or nil.
func (w *model) someTask() *modelTask {
	if len(w.tasks) == 0 {
		return nil
	}
	if task := w.tasks[w.random.IntN(len(w.tasks))]; task.left {
		return task
	}
	return nil
}

func (w *model) end() {
	task := w.someTask()
	if task == nil {
		return
	}
	task.answered = true
	w.requests++
	w.say(&wire.Abandon{Ref: ref(1), TaskRef: task.ref})
}

// endElsewhere is a worker that answers for a task over HTTP.
func (w *model) endElsewhere() {
	if task := w.someTask(); task != nil {
		task.answered, task.heard = true, true
		w.step(&Effects{List: []shard.Effect{&shard.Answered{TaskRef: task.ref}}})
	}
}

func (w *model) beat() {
	w.requests++
	f := &wire.Heartbeat{Ref: ref(2)}
	if task := w.someTask(); task != nil {
		f.Tasks = []wire.TaskRef{task.ref}
	}
	w.say(f)
}

func (w *model) act() {
	switch w.random.IntN(12) {
	case 0, 1:
		w.grant()
	case 2:
		w.received()
	case 3:
		w.pong()
	case 4, 5:
		w.end()
	case 6:
		w.beat()
	case 7:
		w.answer()
	case 8:
		w.write()
	case 9:
		w.pass(int64(w.random.IntN(1500)))
	case 10:
		w.endElsewhere()
	case 11:
		w.several()
	}
}

// pass lets time pass; the shell never comes more than a little late.
func (w *model) pass(forMs int64) {
	until := w.nowMs + forMs
	for {
		at := w.talk.DeadlineMs()
		if at == 0 || at > until {
			w.nowMs = until
			return
		}
		w.nowMs = max(w.nowMs, at)
		w.step(&Timer{})
		w.pongs()
	}
}

func (w *model) pongs() {
	for len(w.pings) > 0 {
		w.pong()
	}
}

// finish lets everything come to rest, with shards that take everything.
func (w *model) finish() {
	w.random = rand.New(neverFull{})
	for len(w.waiting) > 0 || len(w.outbox) > 0 {
		w.answer()
		for range len(w.outbox) {
			w.leave(1)
			w.pongs()
		}
	}
	w.pass(10_000)
}

// neverFull is a source whose numbers are odd, so that no shard is full.
type neverFull struct{}

func (neverFull) Uint64() uint64 { return 1<<63 - 1 }

// confirms says that what the client has confirmed its shard has heard, or is told
// as soon as it takes anything.
func (w *model) confirms() {
	for i, task := range w.tasks {
		if task.claimed && !task.heard && !w.talk.tasks.isAgain[task.ref] {
			w.fatalf("task %d was confirmed by the client, and its shard is not told", i+1)
		}
	}
}

func (w *model) check() {
	inHand := 0
	for i, task := range w.tasks {
		if task.claimed && !task.heard {
			w.fatalf("task %d was confirmed by the client, and its shard never heard of it", i+1)
		}
		if !task.answered {
			inHand++
		}
	}
	if w.given != len(w.tasks)-inHand {
		w.fatalf("%d units came back, want %d", w.given, len(w.tasks)-inHand)
	}
	if got := w.talk.tasks.inFlight(); got != inHand {
		w.fatalf("%d in hand, want %d", got, inHand)
	}
	if w.answers != w.requests {
		w.fatalf("%d requests got %d answers", w.requests, w.answers)
	}
	if c := w.talk; c.unanswered != 0 || c.unansweredBytes != 0 || len(c.requests) != 0 || c.tasks.open != 0 || len(c.tasks.unconfirmed) != 0 {
		w.fatalf("at rest with %d unanswered of %d bytes, %d open requests, %d of %d unconfirmed",
			c.unanswered, c.unansweredBytes, len(c.requests), c.tasks.open, len(c.tasks.unconfirmed))
	}
	w.talk.Step(w.nowMs, &SocketEnded{})
}

func TestConversationLosesNoAnswerNoCreditAndNoConfirmation(t *testing.T) {
	for seed := range uint64(120) {
		w := newModel(t, seed)
		for range 400 {
			w.act()
			w.confirms()
		}
		w.finish()
		w.check()
	}
}
