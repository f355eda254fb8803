package callback

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// notified is a site with a notifier.
type notified struct {
	*site
	notifier *Notifier
	drawn    int
}

func openNotified(t *testing.T) *notified {
	x := &notified{site: openSite(t)}
	x.notifier = NewNotifier(NotifierOptions{
		Engine: x.engine, PublicURL: "https://codeq.org",
		Ready: func(each func(tenant, command string)) {
			all, err := x.store.ReadAllQueues()
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if all[i].Ready > 0 {
					each(all[i].TenantID, all[i].Command)
				}
			}
		},
		Read: x.store.ReadQueue,
		Send: func(c *Call, done func(Answer)) { x.sent = append(x.sent, &sent{c, done}) },
		NewID: func() string {
			x.drawn++
			return fmt.Sprint("ntf-", x.drawn)
		},
	})
	return x
}

// subscribe gives acme a subscription of a name for five minutes.
func (x *notified) subscribe(name string, s wire.Subscription) {
	x.t.Helper()
	s.CallbackURL, s.TTLSeconds, s.ExpiresAtMs = "https://"+name+".org/", 300, x.nowMs+300_000
	if s.EventTypes == nil {
		s.EventTypes = []string{"push"}
	}
	x.engine.Name(&shardactor.Naming{
		What: shard.NameChange{
			Key: record.NamedKey{Tenant: "acme", Kind: record.KindSubscription, Name: name}, Value: string(wire.AppendSubscription(nil, &s)), IfVersion: -1,
		},
		Done: func(_ record.Named, refusal *wire.Error) {
			if refusal != nil {
				x.t.Error(refusal)
			}
		},
	})
	x.settle()
}

// told is who is told in the next second, and they answer with a status.
func (x *notified) told(status int) (names []string) {
	x.t.Helper()
	x.advance(1000)
	x.notifier.Tick(x.nowMs)
	for _, s := range x.sent {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(s.URL, "https://"), ".org/"))
		s.done(Answer{Status: status})
	}
	x.sent = nil
	slices.Sort(names)
	return names
}

func (x *notified) mustTell(what string, status int, want ...string) {
	x.t.Helper()
	if got := x.told(status); !slices.Equal(got, want) {
		x.t.Fatalf("%s: %v are told, want %v", what, got, want)
	}
}

// As long as a queue has work that nobody takes, its subscribers are told of it in each interval;
// not before there is some, not of other queues, and no more once it is served.
func TestASubscriberIsToldWhileWorkWaits(t *testing.T) {
	x := openNotified(t)
	x.subscribe("a", wire.Subscription{MinIntervalSeconds: 5})
	x.subscribe("b", wire.Subscription{EventTypes: []string{"pu.*", "other"}})
	x.subscribe("c", wire.Subscription{EventTypes: []string{wire.AllCommands}, MinIntervalSeconds: 7})
	x.mustTell("nothing waits", 200)
	x.post("beta")
	x.mustTell("another tenant waits", 200)
	for range window + 1 { // callbacks are nobody's work
		x.end("acme", hook)
	}
	x.sent = nil
	x.mustTell("a callback waits", 200)
	id := x.post("acme")
	x.advance(1000)
	x.notifier.Tick(x.nowMs)
	if len(x.sent) != 2 {
		t.Fatalf("%d are told", len(x.sent))
	}
	var told struct {
		EventType, ClaimURL, NotificationID, OldestReadyAt, SentAt string
		Available                                                  bool
		QueueDepth                                                 int
	}
	if err := json.Unmarshal(x.sent[0].Body, &told); err != nil {
		t.Fatal(err)
	}
	if told.EventType != "push" || !told.Available || told.QueueDepth != 1 || told.ClaimURL != "https://codeq.org/v1/codeq/tasks/claim" ||
		told.NotificationID != x.sent[0].ID || told.OldestReadyAt == "" || told.SentAt <= told.OldestReadyAt || x.sent[0].Tenant != "acme" {
		t.Errorf("%s", x.sent[0].Body)
	}
	calls := x.sent
	x.sent = nil
	for range 9 {
		x.mustTell("their calls are under way", 200)
	}
	for _, c := range calls {
		c.done(Answer{Status: 500})
	}
	x.mustTell("nobody has come", 200, "a", "c")
	for range 4 {
		x.mustTell("it is too early", 200)
	}
	x.mustTell("still", 200, "a")
	x.tell(x.engine.ShardOf(id), &shard.Manage{Do: shard.Cancel, Tenant: "acme", TaskID: id})
	x.take(hook)
	for range 10 {
		x.mustTell("nothing waits any more", 200)
	}
}

// One of a group is told, each in turn, and not one whose last call failed while others are well.
func TestOneOfAGroupIsToldInTurn(t *testing.T) {
	x := openNotified(t)
	for _, name := range []string{"a", "b", "c"} {
		x.subscribe(name, wire.Subscription{DeliveryMode: wire.DeliverGroup, GroupID: "g", MinIntervalSeconds: 1})
	}
	x.subscribe("z", wire.Subscription{DeliveryMode: wire.DeliverGroup, GroupID: "h", MinIntervalSeconds: 3})
	x.post("acme")
	x.mustTell("first", 200, "a", "z")
	x.mustTell("second", 500, "b")
	x.mustTell("third", 200, "c")
	x.mustTell("again", 200, "a", "z")
	x.mustTell("b has failed", 200, "c")
	x.mustTell("b has failed", 500, "a")
	x.mustTell("a has failed, too", 500, "c", "z")
	x.mustTell("all have failed", 200, "a")
	if n := x.notifier.Failures(record.NamedKey{Tenant: "acme", Kind: record.KindSubscription, Name: "b"}); n != 1 {
		t.Errorf("b failed %d times", n)
	}
}

// One of the subscribers by hash is told of a queue, always the same while it is there, and the queues
// are spread.
func TestAQueueChoosesOneByHash(t *testing.T) {
	x := openNotified(t)
	var commands []string
	for i := range 40 {
		commands = append(commands, fmt.Sprint("q", i))
	}
	all := []string{"a", "b", "c", "d"}
	for _, name := range all {
		x.subscribe(name, wire.Subscription{DeliveryMode: wire.DeliverHash, EventTypes: commands, MinIntervalSeconds: 1})
	}
	chosen := func() map[string]string {
		of := map[string]string{}
		for range 2 * len(commands) { // one call of each is under way at a time
			x.advance(1000)
			x.notifier.Tick(x.nowMs)
			for _, s := range x.sent {
				command := strings.Split(string(s.Body), `"`)[3]
				if had, is := of[command]; is && had != s.URL {
					t.Fatalf("%s is told to %s and to %s", command, had, s.URL)
				}
				of[command] = s.URL
				s.done(Answer{Status: 200})
			}
			x.sent = nil
		}
		return of
	}
	for _, command := range commands {
		id, shardNo := x.engine.Route("acme", command, "")
		x.tell(shardNo, &shard.Enqueue{ID: id, Tenant: "acme", EnqueueRequest: wire.EnqueueRequest{Command: command, Payload: []byte("1")}})
	}
	first := chosen()
	counts := map[string]int{}
	for _, url := range first {
		counts[url]++
	}
	if len(first) != 40 || len(counts) != 4 {
		t.Fatalf("%d queues, %v", len(first), counts)
	}
	x.engine.Name(&shardactor.Naming{
		What: shard.NameChange{Key: record.NamedKey{Tenant: "acme", Kind: record.KindSubscription, Name: "a"}, IfVersion: -1},
		Done: func(record.Named, *wire.Error) {},
	})
	x.settle()
	for command, url := range chosen() {
		if was := first[command]; url != was && was != "https://a.org/" {
			t.Errorf("%s went from %s to %s", command, was, url)
		}
	}
}

// Nobody is told of a queue that more workers would not help: one that is paused, or at its limit.
func TestNobodyIsToldOfWorkThatMayNotBegin(t *testing.T) {
	x := openNotified(t)
	x.subscribe("a", wire.Subscription{MinIntervalSeconds: 1})
	x.post("acme")
	paused := true
	x.engine.Configure(&shardactor.Change{
		Queue: record.QueueKey{Command: "push", Tenant: "acme"}, What: shard.SettingsChange{Paused: &paused}, Done: func(record.Settings, *wire.Error) {},
	})
	x.settle()
	x.mustTell("it is paused", 200)
	if lacksWorkers(&wire.QueueFigures{Ready: 3, InProgress: 2}, 2) {
		t.Error("told at its limit")
	}
}

// A subscription without a heartbeat ends, and is gone; it outlives the process until then.
func TestASubscriptionExpires(t *testing.T) {
	x := openNotified(t)
	x.subscribe("a", wire.Subscription{MinIntervalSeconds: 1})
	x.post("acme")
	x.mustTell("it is there", 200, "a")
	x.nowMs += 298_000
	x.subscribe("b", wire.Subscription{MinIntervalSeconds: 1})
	x.mustTell("a has expired", 200, "b")
	x.settle()
	if list := x.engine.Named("acme", record.KindSubscription); len(list) != 1 || list[0].Name != "b" {
		t.Errorf("%+v", list)
	}
}
