package session

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// The scripts in testdata are the specification of a conversation: events in,
// actions out. `go test ./session -rewrite` makes them anew; the diff is the
// review. In them #1 is a task id, t1 a token and T the moment the socket
// opened. A task's shard is its number modulo the number of shards.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			w := newScriptWorld(2)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if err := w.run(d); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return w.report()
			})
		})
	}
}

// scriptEpochMs is where the time of every script begins: 2026-01-01 UTC.
const scriptEpochMs = 1_767_225_600_000

func testTask(n int) wire.TaskID { return wire.TaskID{6: 0x70, 8: 0x80, 15: byte(n)} }
func testToken(n int) wire.Token { return wire.Token{15: byte(n)} }

// testRouter routes by the last byte of an id and draws ids in order.
type testRouter struct {
	shards int
	drawn  int
	// refusal is what Enter says.
	refusal *wire.Error
}

func (r *testRouter) Shards() int                { return r.shards }
func (r *testRouter) ShardOf(id wire.TaskID) int { return int(id[15]) % r.shards }
func (r *testRouter) Route(string, string, string) (wire.TaskID, int) {
	r.drawn++
	id := testTask(100 + r.drawn)
	return id, r.ShardOf(id)
}

// Enter says what a test wants.
func (r *testRouter) Enter(tenant, subject string, tasks, bytes int) (shard.Pass, *wire.Error) {
	return shard.Pass{}, r.refusal
}

// scriptWorld is one conversation driven by hand.
type scriptWorld struct {
	talk    *Conversation
	router  *testRouter
	nowMs   int64
	outbox  []Outgoing
	verdict map[int]mailbox.Verdict // of shards that take nothing
	out     strings.Builder
}

func newScriptWorld(shards int) *scriptWorld {
	router := &testRouter{shards: shards}
	return &scriptWorld{
		talk:    NewConversation(Facts{Router: router, Version: "v", Durability: "fsync"}, scriptEpochMs),
		router:  router,
		nowMs:   scriptEpochMs,
		verdict: make(map[int]mailbox.Verdict),
	}
}

// run carries out one block of a script.
func (w *scriptWorld) run(d *datadriven.TestData) error {
	switch d.Cmd {
	case "client":
		for line := range strings.Lines(d.Input) {
			w.step(&ClientMessage{Data: []byte(unshort(strings.TrimSpace(line)))})
		}
	case "open":
		w.step(&ClientMessage{Data: []byte(`{"type":"hello","workerId":"ada"}`)})
		return w.admit(d)
	case "admit":
		return w.admit(d)
	case "taken-back":
		w.step(&recheck{})
	case "recheck":
		p, err := w.principal(d)
		if err != nil {
			return err
		}
		w.step(&recheck{Principal: p})
	case "limit":
		limit := wire.Refuse(wire.Code(argument(d, "code")), "no")
		limit.RetryAfterSeconds, _ = strconv.Atoi(argument(d, "after")) // a wrong number shows in the output
		w.router.refusal = limit
	case "deny":
		w.step(&denied{Err: wire.Refuse(wire.Code(argument(d, "code")), "no")})
	case "effects":
		return w.effects(d.Input)
	case "binary":
		w.step(&violation{Err: wire.Refuse(wire.CodeInvalidBody, "binary")})
	case "written":
		n := len(w.outbox)
		if text := argument(d, "frames"); text != "" {
			n, _ = strconv.Atoi(text) // a wrong number shows in the output
		}
		left := w.outbox[:n]
		w.outbox = w.outbox[n:]
		w.step(&Written{Frames: left})
	case "pong":
		w.step(&Pong{Payload: []byte(argument(d, "payload"))})
	case "ping":
		w.step(&Ping{Payload: []byte(argument(d, "payload"))})
	case "continue":
		w.step(&Continue{})
	case "drains":
		w.step(&serverDrains{GraceSeconds: 30})
	case "closes":
		w.step(&serverCloses{})
	case "admin-drains":
		w.step(&adminDrains{})
	case "admin-closes":
		w.step(&adminCloses{})
	case "replaced":
		w.step(&Replaced{})
	case "socket-ended":
		w.step(&SocketEnded{})
	case "time", "wait", "shards":
		return w.world(d)
	default:
		return fmt.Errorf("unknown command %q", d.Cmd)
	}
	return nil
}

// world changes what is around the conversation: time and full shards.
func (w *scriptWorld) world(d *datadriven.TestData) error {
	switch d.Cmd {
	case "time":
		pass, err := time.ParseDuration(argument(d, "pass"))
		if err != nil {
			return err
		}
		w.nowMs += pass.Milliseconds()
		if at := w.talk.DeadlineMs(); at != 0 && at <= w.nowMs {
			w.step(&Timer{})
		}
	case "wait":
		if at := w.talk.DeadlineMs(); at != 0 {
			w.nowMs = at
			w.step(&Timer{})
		}
	case "shards":
		clear(w.verdict)
		for _, a := range d.CmdArgs {
			verdict := map[string]mailbox.Verdict{"full": mailbox.Full, "closed": mailbox.Closed}[a.Key]
			for _, v := range a.Vals {
				shard, err := strconv.Atoi(v)
				if err != nil {
					return err
				}
				w.verdict[shard] = verdict
			}
		}
	}
	return nil
}

func (w *scriptWorld) admit(d *datadriven.TestData) error {
	p, err := w.principal(d)
	if err != nil {
		return err
	}
	w.step(&Admitted{
		Principal: p, ID: wire.SessionID{15: 1}, Key: "key", Resumed: argument(d, "resumed") != "",
	})
	return nil
}

// principal is bob of acme, but for what the arguments say.
func (w *scriptWorld) principal(d *datadriven.TestData) (*auth.Principal, error) {
	p := &auth.Principal{Tenant: "acme", Subject: "bob"}
	if subject := argument(d, "subject"); subject != "" {
		p.Subject = subject
	}
	if commands := argument(d, "commands"); commands != "" {
		p.Commands = strings.Split(commands, "+")
	}
	if scopes := argument(d, "scopes"); scopes != "" {
		p.Scopes = auth.ExpandScopes(strings.Split(scopes, "+"))
	}
	if text := argument(d, "expires"); text != "" {
		in, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		p.ExpiresAtMs = w.nowMs + in.Milliseconds()
	}
	return p, nil
}

func argument(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

// step does what the session around a conversation does.
func (w *scriptWorld) step(e Event) {
	a := w.talk.Step(w.nowMs, e)
	if a.Resume != nil {
		fmt.Fprintf(&w.out, "resume ref=%d\n", a.Resume.Ref)
	}
	if a.InFlight > 0 {
		fmt.Fprintf(&w.out, "in flight %d\n", a.InFlight)
	}
	if a.SetsWindow {
		fmt.Fprintf(&w.out, "window %d\n", a.Window)
	}
	if a.Barrier != nil {
		fmt.Fprintf(&w.out, "barrier ref=%d\n", a.Barrier.Ref)
	}
	for _, p := range a.Posts {
		class := map[mailbox.Class]string{mailbox.ClassNew: "new", mailbox.ClassKeep: "keep"}[p.Class]
		verdict := w.verdict[p.Shard]
		fmt.Fprintf(&w.out, "post shard %d %s %d bytes: %v\n", p.Shard, class, p.Bytes, verdict)
		for _, m := range p.Messages {
			fmt.Fprintf(&w.out, "  %s\n", describeMessage(m))
		}
		if verdict != mailbox.Accepted {
			w.step(&Unposted{Post: p, Verdict: verdict})
		}
	}
	for _, o := range a.Frames {
		fmt.Fprintf(&w.out, "<- %s\n", short(string(wire.AppendServerFrame(nil, o.Frame))))
	}
	w.outbox = append(w.outbox, a.Frames...)
	w.reportConsumer(a)
}

func (w *scriptWorld) reportConsumer(a Actions) {
	if a.Credit > 0 {
		fmt.Fprintf(&w.out, "credit %d\n", a.Credit)
	}
	if a.WrittenBytes > 0 {
		fmt.Fprintf(&w.out, "written %d payload bytes\n", a.WrittenBytes)
	}
	if a.TakenBytes > 0 {
		fmt.Fprintf(&w.out, "taken %d payload bytes, %d may be on their way\n", a.TakenBytes, a.Bound)
	}
	if a.Pong != nil {
		fmt.Fprintf(&w.out, "pong %q\n", a.Pong)
	}
	if a.Ping != nil {
		fmt.Fprintf(&w.out, "ping %q\n", a.Ping)
	}
	if a.CloseConsumer {
		fmt.Fprintf(&w.out, "close consumer\n")
	}
	if a.Close != nil {
		fmt.Fprintf(&w.out, "close %d %s\n", a.Close.Code, a.Close.Reason)
	}
}

// report is what the block printed, and what the conversation waits for.
func (w *scriptWorld) report() string {
	defer w.out.Reset()
	switch w.talk.Needs() {
	case NeedPrincipal:
		fmt.Fprintf(&w.out, "needs a principal for token %q\n", w.talk.Asking().Token)
	case NeedAnswers:
		fmt.Fprintf(&w.out, "needs answers to leave\n")
	}
	if at := w.talk.DeadlineMs(); at != 0 {
		fmt.Fprintf(&w.out, "deadline T+%v\n", time.Duration(at-scriptEpochMs)*time.Millisecond)
	}
	if w.out.Len() == 0 {
		return "nothing\n"
	}
	return w.out.String()
}

func describeMessage(m shard.Message) string {
	switch m := m.(type) {
	case *shard.Enqueue:
		return fmt.Sprintf("enqueue ref=%d %s %s/%s payload=%s priority=%d max=%d key=%q fingerprint=%t", m.Ref, short(m.ID.String()),
			m.Tenant, m.Command, m.Payload, m.Priority, m.MaxAttempts, m.IdempotencyKey, m.Fingerprint != [32]byte{})
	case *shard.Manage:
		return fmt.Sprintf("cancel ref=%d %s of %s, may use %v", m.Ref, short(m.TaskID.String()), m.Tenant, m.Commands)
	case *shard.Subscribe:
		return fmt.Sprintf("subscribe ref=%d commands=%v lease=%dms", m.Ref, m.Commands, m.LeaseForMs)
	case *shard.Received:
		return "received " + describeRefs(m.Tasks)
	case *shard.Result:
		credit := ""
		if m.HasCredit {
			credit = " with a credit"
		}
		return fmt.Sprintf("result ref=%d by %s/%s %s%s %s %s%s", m.Ref, m.Tenant, m.Subject,
			describeRefs([]wire.TaskRef{m.TaskRef}), credit, m.Status, m.ResultRequest.Result, m.Error)
	case *shard.End:
		said := map[shard.How]string{shard.Nack: fmt.Sprintf(" delay=%d reason=%q", m.DelaySeconds, m.Reason)}[m.How]
		if m.How == shard.Release && !m.Counts() {
			said = " uncounted"
		}
		return fmt.Sprintf("%s ref=%d by %s/%s %s%s", []string{"nack", "abandon", "release"}[m.How], m.Ref, m.Tenant, m.Subject,
			describeRefs([]wire.TaskRef{m.TaskRef}), said)
	case *shard.Heartbeat:
		if m.Tasks == nil {
			return fmt.Sprintf("heartbeat ref=%d by %s/%s all extend=%dms", m.Ref, m.Tenant, m.Subject, m.ExtendForMs)
		}
		return fmt.Sprintf("heartbeat ref=%d by %s/%s %s extend=%dms", m.Ref, m.Tenant, m.Subject, describeRefs(m.Tasks), m.ExtendForMs)
	}
	return fmt.Sprintf("unexpected %T", m)
}

func describeRefs(refs []wire.TaskRef) string {
	var all []string
	for _, ref := range refs {
		all = append(all, short(ref.TaskID.String()+" "+ref.Token.String()))
	}
	return strings.Join(all, ", ")
}

var (
	longTask   = regexp.MustCompile(`00000000-0000-7000-8000-0000000000([0-9a-f]{2})`)
	longToken  = regexp.MustCompile(`0{30}([0-9a-f]{2})`)
	shortTask  = regexp.MustCompile(`#(\d+)`)
	shortToken = regexp.MustCompile(`\bt(\d+)\b`)
)

// short writes ids and tokens as scripts do; unshort is its reverse.
func short(text string) string {
	number := func(prefix string, of *regexp.Regexp) func(string) string {
		return func(long string) string {
			n, _ := strconv.ParseInt(of.FindStringSubmatch(long)[1], 16, 64) // it matched
			return prefix + strconv.FormatInt(n, 10)
		}
	}
	text = longTask.ReplaceAllStringFunc(text, number("#", longTask))
	return longToken.ReplaceAllStringFunc(text, number("t", longToken))
}

func unshort(text string) string {
	number := func(word string) int {
		n, _ := strconv.Atoi(word[1:]) // it matched
		return n
	}
	text = shortTask.ReplaceAllStringFunc(text, func(w string) string { return testTask(number(w)).String() })
	return shortToken.ReplaceAllStringFunc(text, func(w string) string { return testToken(number(w)).String() })
}
