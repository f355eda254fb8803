package shard

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/index"
	"codeq/internal/audit"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// The scripts in testdata are the specification of the core: messages in, keys
// and effects out, one round a block. `go test ./shard -rewrite` makes
// them anew; the diff is the review.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			w := newScriptWorld(t)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				out, err := w.run(d)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return out
			})
			w.checkStore(t)
		})
	}
}

// scriptEpochMs is where the time of every script begins: 2026-01-01 UTC.
const scriptEpochMs = 1_767_225_600_000

// scriptWorld is one shard driven by hand over a real store in memory.
type scriptWorld struct {
	t         *testing.T
	store     *store.Store
	core      *Shard
	shard     int
	limits    Limits
	keys      index.Limits
	retention Retention
	nowMs     int64
	consumers map[string]*scriptConsumer
	// ids are those of the sessions by the name that had them last, former the
	// sockets that a resume replaced.
	ids    map[string]wire.SessionID
	former map[string]*scriptConsumer
	// control are messages that consumers posted, for the next round.
	control []Message
	rounds  uint64
	// takeover is that of the next core.
	takeover bool
	tokens   []wire.Token
	// drawn are the tasks whose ids the shard has drawn itself.
	drawn []wire.TaskID
	sinks map[Sink]string
	// limiters are those of the queues, freed what is to be told to them.
	limiters map[record.QueueKey]*scriptLimiter
	freed    []Addressed
}

// scriptSink remembers nothing: the script reads the outcome of the round.
type scriptSink struct{ name string }

func (*scriptSink) Deliver([]Effect) {}

func newScriptWorld(t *testing.T) *scriptWorld {
	t.Helper()
	w := &scriptWorld{
		t: t, nowMs: scriptEpochMs, consumers: make(map[string]*scriptConsumer), sinks: make(map[Sink]string),
		ids: make(map[string]wire.SessionID), former: make(map[string]*scriptConsumer),
		limiters: make(map[record.QueueKey]*scriptLimiter),
	}
	w.open(1)
	return w
}

// open begins over an empty store of so many shards.
func (w *scriptWorld) open(shards int) {
	w.t.Helper()
	s, err := store.Open(store.Options{
		FS: vfs.NewMem(), Dir: "data", Shards: shards, Log: zerolog.Nop(),
		Random: strings.NewReader(strings.Repeat("codeq", 1000)),
		Fatal:  func(err error) { w.t.Fatalf("fatal: %v", err) },
	})
	if err != nil {
		w.t.Fatalf("open store: %v", err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Errorf("close store: %v", err)
		}
	})
	w.store = s
	w.load()
}

func (w *scriptWorld) load() {
	w.t.Helper()
	recovered, err := w.store.Span(w.shard).Load()
	if err != nil {
		w.t.Fatalf("load: %v", err)
	}
	w.rounds++
	w.core = New(Config{
		Shards: w.store.Shards(), Shard: w.shard, Seed: [32]byte{byte(w.rounds)}, Index: w.keys, Limits: w.limits, Retention: w.retention,
		LimiterOf: w.limiterOf, Takeover: w.takeover,
	}, w.store.Span(w.shard), recovered, w.nowMs)
}

func (w *scriptWorld) checkStore(t *testing.T) {
	t.Helper()
	findings, err := audit.Check(w.store)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, f := range findings {
		t.Errorf("finding: %+v", f)
	}
}

func (w *scriptWorld) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "round":
		return w.round(d.Input)
	case "advance":
		span, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			return "", err
		}
		w.nowMs += span.Milliseconds()
		return w.round(d.Input)
	case "shard":
		w.shard = scriptInt(d.CmdArgs, "number")
		w.open(scriptInt(d.CmdArgs, "of"))
		return fmt.Sprintf("home of %s\n", strings.Join(w.homeOf("a", "b", "c", "d"), ", ")), nil
	case "home":
		return "", w.decide(scriptQueue(d.CmdArgs), &record.Settings{
			Version: int64(scriptInt(d.CmdArgs, "version")), QueueSettings: wire.QueueSettings{
				Spread: scriptString(d.CmdArgs, "spread", "") == "true", PerKey: wire.PerKey{InProgress: scriptInt(d.CmdArgs, "key-in-progress")},
			},
		})
	case "limits":
		w.keys = index.Limits{Run: scriptInt(d.CmdArgs, "run"), Refill: scriptInt(d.CmdArgs, "refill")}
		w.limits = Limits{Releases: scriptInt(d.CmdArgs, "releases"), Removals: scriptInt(d.CmdArgs, "expiries"), Compared: scriptInt(d.CmdArgs, "compared"), Failed: scriptInt(d.CmdArgs, "failed")}
		w.load()
		return "", nil
	case "retention":
		w.retention = Retention{DoneForMs: int64(scriptInt(d.CmdArgs, "done")) * 1000, DeadForMs: int64(scriptInt(d.CmdArgs, "dead")) * 1000}
		w.load()
		return "", nil
	case "restart", "takeover":
		w.takeover = d.Cmd == "takeover"
		w.nowMs += 1000 * int64(scriptInt(d.CmdArgs, "after"))
		w.consumers = make(map[string]*scriptConsumer)
		w.control = nil
		clear(w.limiters)
		w.load()
		return w.round("")
	case "space":
		for _, level := range []store.Level{store.Ok, store.NoEnqueue, store.NoGrant, store.OnlyDelete} {
			if level.String() == d.CmdArgs[0].Key {
				w.core.SetSpace(level)
			}
		}
		return w.round("")
	case "consumer":
		return w.consumer(d.CmdArgs)
	case "places":
		// What another shard takes, or gives back.
		l := w.limiters[scriptQueue(d.CmdArgs)]
		for range scriptInt(d.CmdArgs, "take") {
			l.Take(w.shard+1, 0)
		}
		l.Return(scriptInt(d.CmdArgs, "give"))
		return fmt.Sprintf("%d taken, %d control messages wait\n", l.InFlight(), len(w.control)), nil
	case "check":
		findings, err := audit.Check(w.store)
		return fmt.Sprintf("%d findings\n", len(findings)), err
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

// consumer does to a consumer what its session would do, outside any round.
func (w *scriptWorld) consumer(args []datadriven.CmdArg) (string, error) {
	if scriptInt(args, "resume") != 0 {
		w.resume(args[0].Key, uint64(scriptInt(args, "resume")))
	}
	consumer := w.consumerOf(args[0].Key)
	for _, a := range args[1:] {
		switch a.Key {
		case "hold":
			consumer.Hold(scriptInt(args, "hold"))
		case "window":
			consumer.SetWindow(scriptInt(args, "window"))
		case "drain":
			consumer.post(&DrainBarrier{Asker: Asker{Sink: consumer.Sink, Ref: Ref(scriptInt(args, "drain"))}, Consumer: consumer.Consumer})
		case "give":
			consumer.Return(scriptInt(args, "give"))
		case "taken":
			consumer.Taken(scriptInt(args, "taken"), MaxUntakenBytes)
		case "close":
			consumer.close(uint16(scriptInt(args, "code")))
			delete(w.consumers, args[0].Key)
		}
	}
	return fmt.Sprintf("in flight %d, %d control messages wait\n", consumer.InFlight(), len(w.control)), nil
}

// consumerOf finds or makes a consumer. A name that begins with curl is a claim over
// HTTP, curl-target the worker within the server.
func (w *scriptWorld) consumerOf(name string) *scriptConsumer {
	if consumer, ok := w.consumers[name]; ok {
		return consumer
	}
	sink := &scriptSink{name: name}
	w.sinks[sink] = name
	return w.newConsumer(name, wire.SessionID{15: byte(len(w.sinks)), 0: 0x5e}, sink)
}

// newConsumer makes one of the tenant default, or as name@tenant says.
func (w *scriptWorld) newConsumer(name string, id wire.SessionID, sink Sink) *scriptConsumer {
	_, tenant, _ := strings.Cut(name, "@")
	subject := "anonymous"
	if strings.HasPrefix(name, "curl-target") {
		subject = OwnSubject
	}
	consumer := newScriptConsumer(Consumer{
		ID: id, Tenant: cmp.Or(tenant, "default"), Subject: subject, WorkerID: name, Sink: sink,
		OverHTTP: strings.HasPrefix(name, "curl"),
	}, func(m Message) { w.control = append(w.control, m) })
	w.consumers[name], w.ids[name] = consumer, id
	return consumer
}

// resume gives the session of a name its socket of an epoch. The one before, if
// its end has not been told, is left for a later `gone`.
func (w *scriptWorld) resume(name string, epoch uint64) {
	w.former[name] = w.consumers[name]
	sink := &scriptSink{name: name}
	w.sinks[sink] = name
	consumer := w.newConsumer(name, w.ids[name], sink)
	consumer.Epoch = epoch
	consumer.post(&Resume{Asker: Asker{Sink: sink}, Consumer: consumer.Consumer})
}

// round runs messages and everything that follows at once, and tells the
// keys and effects of each round.
func (w *scriptWorld) round(input string) (string, error) {
	messages := w.control
	w.control = nil
	for line := range strings.Lines(input) {
		m, err := w.parse(strings.TrimSpace(line))
		if err != nil {
			return "", err
		}
		messages = append(messages, m)
	}
	var b strings.Builder
	for n := 1; ; n++ {
		out := w.core.Round(w.nowMs, messages)
		if n > 1 {
			b.WriteString("and at once:\n")
		}
		if wrong := w.core.books(w.allTasks(40)); wrong != "" {
			return "", errors.New(wrong)
		}
		w.describe(&b, out)
		messages = messages[out.Taken:]
		if _, err := w.store.Span(w.shard).Apply(); err != nil {
			return "", err
		}
		for _, u := range out.CreditReturns {
			u.Consumer.Credit.Return(u.Credits)
		}
		if len(messages) == 0 && !out.Again {
			if out.NextAtMs != 0 {
				fmt.Fprintf(&b, "sleeps %v\n", time.Duration(out.NextAtMs-w.nowMs)*time.Millisecond)
			}
			break
		}
		if n > 50 {
			return "", fmt.Errorf("the shard does not come to rest")
		}
	}
	if err := w.store.Barrier(); err != nil {
		return "", err
	}
	w.deliverFreed()
	return b.String(), nil
}

func (w *scriptWorld) describe(b *strings.Builder, out Outcome) {
	for _, op := range w.store.Span(w.shard).Batch().Describe() {
		if strings.Contains(op, "meta/marks") {
			continue
		}
		fmt.Fprintf(b, "  %s\n", w.named(op))
	}
	for _, a := range out.Effects {
		if freed, ok := a.Effect.(*Freed); ok {
			fmt.Fprintf(b, "-> limiter: %d places\n", freed.Places)
			w.freed = append(w.freed, a)
			continue
		}
		fmt.Fprintf(b, "-> %s: %s\n", a.Sink.(*scriptSink).name, w.named(describeEffect(a.Effect)))
	}
	for _, e := range out.Events {
		if e.Files {
			fmt.Fprintf(b, "-> files: those of %s that no result names may go\n", w.named(e.TaskID.String()))
		}
	}
	for _, u := range out.CreditReturns {
		fmt.Fprintf(b, "unused: %d of %s\n", u.Credits, u.Consumer.WorkerID)
	}
}

var (
	scriptUUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	scriptToken = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	scriptTime  = regexp.MustCompile(`\b17672\d{8}\b`)
	scriptPad   = regexp.MustCompile(`x{40,}`)
)

// named puts short names for ids and tokens, spans for times, and the length
// for long padding.
func (w *scriptWorld) named(text string) string {
	text = scriptPad.ReplaceAllStringFunc(text, func(pad string) string { return fmt.Sprintf("x*%d", len(pad)) })
	text = scriptUUID.ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(id, "5e") {
			n, err := strconv.ParseInt(id[len(id)-2:], 16, 32)
			if err == nil {
				return w.consumerName(int(n))
			}
		}
		if !strings.HasPrefix(id, "7a") && !strings.HasPrefix(id, "00000000") {
			return w.drawnName(id)
		}
		return "#" + strings.TrimLeft(id[len(id)-4:], "0")
	})
	text = scriptToken.ReplaceAllStringFunc(text, func(hex string) string {
		token, _ := wire.ParseToken(hex)
		return w.tokenName(token)
	})
	return scriptTime.ReplaceAllStringFunc(text, func(ms string) string {
		n, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			return ms
		}
		return "T+" + (time.Duration(n-scriptEpochMs) * time.Millisecond).String()
	})
}

func (w *scriptWorld) consumerName(n int) string {
	for name, consumer := range w.consumers {
		if int(consumer.ID[15]) == n {
			return name
		}
	}
	return fmt.Sprintf("session%d", n)
}

func (w *scriptWorld) tokenName(token wire.Token) string {
	if token.IsZero() {
		return "t0"
	}
	for i, known := range w.tokens {
		if known == token {
			return fmt.Sprintf("t%d", i+1)
		}
	}
	w.tokens = append(w.tokens, token)
	return fmt.Sprintf("t%d", len(w.tokens))
}

// drawnName is #1001 for the first task whose id the shard has drawn, and so on.
func (w *scriptWorld) drawnName(text string) string {
	id, _ := wire.ParseTaskID(text)
	i := slices.Index(w.drawn, id)
	if i < 0 {
		i, w.drawn = len(w.drawn), append(w.drawn, id)
	}
	return fmt.Sprintf("#%d", 1001+i)
}

// allTasks are the ids of the first n tasks, and those that the shard has drawn.
func (w *scriptWorld) allTasks(n int) (ids []wire.TaskID) {
	ids = append(ids, w.drawn...)
	for n := range n {
		ids = append(ids, w.taskID(n+1))
	}
	return ids
}

// taskID is the id of the n-th task, one that belongs to the shard.
func (w *scriptWorld) taskID(n int) wire.TaskID {
	if n > 1000 {
		return w.drawn[n-1001]
	}
	id := wire.TaskID{0: 0x7a, 14: byte(n >> 8), 15: byte(n)}
	for wire.ShardOfTask(id, w.store.Shards()) != w.shard {
		id[1]++
	}
	return id
}

// decide writes what the home of a queue of another shard has decided.
func (w *scriptWorld) decide(q record.QueueKey, decided *record.Settings) error {
	home := w.store.Span(wire.ShardOfQueue(q.Tenant, q.Command, w.store.Shards()))
	home.Batch().PutSettings(q, decided)
	_, err := home.Apply()
	return err
}

// homeOf are those of some queues that are at home in the shard.
func (w *scriptWorld) homeOf(commands ...string) (home []string) {
	for _, command := range commands {
		if wire.ShardOfQueue("default", command, w.store.Shards()) == w.shard {
			home = append(home, command)
		}
	}
	return home
}

func scriptInt(args []datadriven.CmdArg, key string) int {
	n, err := strconv.Atoi(scriptString(args, key, "0"))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", key, err))
	}
	return n
}

func scriptString(args []datadriven.CmdArg, key, missing string) string {
	for _, a := range args {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return missing
}

// runText says when a run ends that does, and how long it is if that is known.
func runText(forMs, untilMs int64) string {
	switch {
	case untilMs == 0:
		return ""
	case forMs == 0:
		return fmt.Sprintf(", runs until %d", untilMs)
	}
	return fmt.Sprintf(", runs for %v until %d", time.Duration(forMs)*time.Millisecond, untilMs)
}

func leasesText(leases []ToldLease) (text string) {
	for _, l := range leases {
		text += fmt.Sprintf(" %v delivery %d until %d%s", l.TaskID, l.Delivery, l.LeaseUntilMs, runText(0, l.RunUntilMs))
	}
	return text
}

func describeUploaded(e *Uploaded) string {
	if e.Artifact != nil {
		return fmt.Sprintf("uploaded ref=%d %s at %s in place of %q", e.Ref, e.Artifact.File, e.Artifact.URL, e.Replaced)
	}
	return fmt.Sprintf("uploaded ref=%d delivery %d from %d on", e.Ref, e.Delivery, e.First)
}

func describeEffect(e Effect) string {
	switch e := e.(type) {
	case *Enqueued:
		return fmt.Sprintf("enqueued ref=%d %v replayed=%v", e.Ref, e.TaskID, e.Replayed)
	case *Refused:
		return fmt.Sprintf("refused ref=%d %v %s: %s", e.Ref, e.TaskID, e.Err.Code, e.Err.Sentence)
	case *Subscribed:
		return fmt.Sprintf("subscribed ref=%d", e.Ref)
	case *Claimed:
		return fmt.Sprintf("claimed ref=%d", e.Ref)
	case *Granted:
		return fmt.Sprintf("granted %v %v until %d delivery %d attempts %d payload %s%s",
			e.Task.ID, e.Token, e.LeaseUntilMs, e.Task.Deliveries, e.Task.Attempts, e.Task.Payload, runText(e.RunForMs, e.RunUntilMs))
	case *Completed:
		text := fmt.Sprintf("completed ref=%d %v %s %s%s", e.Ref, e.Record.TaskID, e.Record.Status, e.Record.Result, e.Record.Error)
		if e.CreditReused {
			text += ", credit reused"
		}
		return text
	case *Requeued:
		return fmt.Sprintf("requeued ref=%d %v %s delay %ds", e.Ref, e.TaskID, e.Status, e.DelaySeconds)
	case *Reported:
		return fmt.Sprintf("reported ref=%d", e.Ref)
	case *Uploaded:
		return describeUploaded(e)
	case *Extended:
		lost := make([]string, 0, len(e.Lost))
		for _, r := range e.Lost {
			lost = append(lost, r.TaskID.String())
		}
		sort.Strings(lost)
		return fmt.Sprintf("extended ref=%d until %d lost %v%s", e.Ref, e.LeaseUntilMs, lost, runText(0, e.RunUntilMs))
	case *Revoked:
		return fmt.Sprintf("revoked %v %v %s", e.TaskID, e.Token, e.Reason)
	case *Drained:
		return fmt.Sprintf("drained ref=%d", e.Ref)
	case *Answered:
		return fmt.Sprintf("answered %v %v", e.TaskID, e.Token)
	case *Resumed:
		held := make([]string, 0, len(e.Held))
		for _, r := range e.Held {
			held = append(held, r.TaskID.String()+" "+r.Token.String())
		}
		return fmt.Sprintf("resumed ref=%d held [%s]", e.Ref, strings.Join(held, ", "))
	case *Frozen:
		return fmt.Sprintf("frozen ref=%d", e.Ref)
	case *Configured:
		return strings.Replace(fmt.Sprintf("configured ref=%d %+v", e.Ref, e.Settings), " Deleting:false", "", 1)
	case *Dropped:
		return fmt.Sprintf("dropped ref=%d", e.Ref)
	case *Named:
		return fmt.Sprintf("named ref=%d %s %s %q version %d %s", e.Ref, e.Record.Tenant, e.Record.Kind, e.Record.Name, e.Record.Version, e.Record.Value)
	case *Cleaned:
		return fmt.Sprintf("cleaned ref=%d: %d deleted", e.Ref, e.Deleted)
	case *Managed:
		return fmt.Sprintf("%s ref=%d %v", [...]string{"cancelled", "replayed", "purged", "moved", "moved", "taken back"}[e.Did], e.Ref, e.TaskID)
	case *Explained:
		if e.Waiting == nil {
			return fmt.Sprintf("explained ref=%d %v: does not wait", e.Ref, e.TaskID)
		}
		return fmt.Sprintf("explained ref=%d %v: %+v since %d", e.Ref, e.TaskID, *e.Waiting, e.UpdatedAtMs)
	case *LeasesTold:
		return fmt.Sprintf("leases ref=%d", e.Ref) + leasesText(e.Leases)
	case *Ended:
		return fmt.Sprintf("ended ref=%d %v", e.Ref, e.TaskID)
	default:
		return fmt.Sprintf("%T", e)
	}
}
