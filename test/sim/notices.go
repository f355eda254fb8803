package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeq/internal/callback"
	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// Subscribers are told of queues with ready tasks for which no worker has room: again and again while
// that is so, one call of each at a time, and never of work that may not begin.

// subscriberNames are those of all subscriptions, in their order.
var subscriberNames = []string{"s1", "s2", "s3", "s4"}

const (
	// noticeEveryMs is how often the server looks.
	noticeEveryMs = 1000
	toldInterval  = 30
)

func subscriptionKey(tenant, name string) record.NamedKey {
	return record.NamedKey{Tenant: tenant, Kind: record.KindSubscription, Name: name}
}

// notices are what subscribers were told in this life.
type notices struct {
	world    *world
	notifier *callback.Notifier
	tickedMs int64
	calls    []*notice
	drawn    int
	// sentMs is when a subscription was told of a queue, turns who of a group was and when, chosen
	// who was by its hash, failed whose last call has failed.
	sentMs map[subject]int64
	turns  map[subject]turn
	chosen map[subject]string
	failed map[record.NamedKey]bool
}

type notice struct {
	key  record.NamedKey
	done func(callback.Answer)
}

// subject is a queue and a subscription, or a group of a tenant, or the names of several.
type subject struct {
	queue record.QueueKey
	of    string
}

type turn struct {
	last string
	atMs int64
}

// subscribing makes a world with subscribers.
func (s *shape) subscribing() {
	s.notices = true
	s.adds(operation{name: "subscribe", weight: 60, do: (*world).subscribeSome})
}

func (w *world) beginNotices() {
	if !w.shape.notices {
		return
	}
	n := &notices{
		world: w, sentMs: make(map[subject]int64), turns: make(map[subject]turn), chosen: make(map[subject]string), failed: make(map[record.NamedKey]bool),
	}
	w.notices = n
	n.notifier = callback.NewNotifier(callback.NotifierOptions{
		Engine: n, Read: w.server.store.ReadQueue, PublicURL: "https://codeq.org",
		Ready: func(each func(tenant, command string)) {
			eachQueue(func(q record.QueueKey) {
				if n.isReady(q) {
					each(q.Tenant, q.Command)
				}
			})
		},
		Send: n.sends,
		NewID: func() string {
			n.drawn++
			return fmt.Sprint("ntf-", n.drawn)
		},
	})
}

// AllNamed, Effective and Name implement callback.Names.
func (n *notices) AllNamed(kind record.Kind) record.NamedList {
	return n.world.server.engine.AllNamed(kind)
}
func (n *notices) Effective(command string, set wire.QueueSettings) wire.QueueSettings {
	return n.world.server.engine.Effective(command, set)
}
func (n *notices) Name(change *shardactor.Naming) { n.world.begin(change) }

// isReady says that the events have told of ready tasks.
func (n *notices) isReady(q record.QueueKey) bool {
	f := n.world.server.events.queues[q]
	return f != nil && f.Row[wire.FigureReady] > 0
}

// lacks says that more workers would take tasks of a queue.
func (n *notices) lacks(q record.QueueKey) bool {
	m, ready, running := n.world.model, 0, 0
	for shardNo := range m.leased {
		for _, t := range m.leased[shardNo] {
			if t.queue() == q {
				running++
			}
		}
		for prio := range wire.MaxPriority + 1 {
			ready += len(m.pending[orderName{shardNo, q.Tenant, q.Command, prio}])
		}
	}
	set := m.settings[m.home(q)][q]
	return ready > 0 && !set.Paused && (set.MaxInProgress == 0 || running < set.MaxInProgress)
}

// subscribers are those of a queue that are alive, in order.
func (n *notices) subscribers(q record.QueueKey) (keys []record.NamedKey, all []wire.Subscription) {
	for _, name := range subscriberNames {
		r := n.world.holds[subscriptionKey(q.Tenant, name)]
		if r.Value == "" {
			continue
		}
		s := r.Subscription()
		one := &task{command: q.Command}
		if n.world.nowMs < s.ExpiresAtMs && slices.ContainsFunc(s.EventTypes, one.isOfPattern) {
			keys, all = append(keys, r.NamedKey), append(all, s)
		}
	}
	return keys, all
}

func (n *notices) isBusy(key record.NamedKey) bool {
	return slices.ContainsFunc(n.calls, func(c *notice) bool { return c.key == key })
}

// since is when somebody was told last who counts for a subscription.
func (n *notices) since(q record.QueueKey, key record.NamedKey, s *wire.Subscription) int64 {
	if s.DeliveryMode == wire.DeliverGroup {
		return n.turnOf(subject{q, s.GroupID}).atMs
	}
	return n.sentMs[subject{q, key.Name}]
}

// turnOf is the last turn of a group, which is remembered for a day.
func (n *notices) turnOf(group subject) turn {
	if t := n.turns[group]; n.world.nowMs-t.atMs <= 86_400_000 {
		return t
	}
	return turn{}
}

func (n *notices) isDue(q record.QueueKey, key record.NamedKey, s *wire.Subscription) bool {
	return !n.isBusy(key) && n.world.nowMs >= n.since(q, key, s)+int64(cmp.Or(s.MinIntervalSeconds, toldInterval))*1000
}

// byHash are the subscribers of a queue that the hash chooses from.
func byHash(keys []record.NamedKey, all []wire.Subscription) (names string) {
	for i := range keys {
		if all[i].DeliveryMode == wire.DeliverHash {
			names += keys[i].Name + " "
		}
	}
	return names
}

// sends looks at a call.
func (n *notices) sends(c *callback.Call, done func(callback.Answer)) {
	_, rest, _ := strings.Cut(string(c.Body), `{"eventType":"`)
	command, _, _ := strings.Cut(rest, `"`)
	name := strings.TrimSuffix(strings.TrimPrefix(c.URL, "https://"), ".org/")
	q, key := record.QueueKey{Command: command, Tenant: c.Tenant}, subscriptionKey(c.Tenant, name)
	keys, all := n.subscribers(q)
	i := slices.Index(keys, key)
	switch {
	case i < 0:
		violate("who is subscribed is told, and nobody else", "%s of %s is told of %s, subscribed are %v", name, c.Tenant, command, keys)
	case !n.lacks(q):
		violate("nobody is told of work that may not begin", "%s is told of %+v", name, q)
	case !n.isDue(q, key, &all[i]):
		violate("nobody is told too often", "%s is told of %+v, last at %d: %+v", name, q, n.since(q, key, &all[i]), all[i])
	}
	switch s := &all[i]; s.DeliveryMode {
	case wire.DeliverHash:
		from := subject{q, byHash(keys, all)}
		if was := cmp.Or(n.chosen[from], name); was != name {
			violate("a queue chooses the same subscriber", "%+v chose %s and now %s of %s", q, was, name, from.of)
		}
		n.chosen[from] = name
	case wire.DeliverGroup:
		group := subject{q, s.GroupID}
		for j := range keys {
			other := keys[j] != key && all[j].DeliveryMode == wire.DeliverGroup && all[j].GroupID == s.GroupID && n.isDue(q, keys[j], &all[j]) && !n.failed[keys[j]]
			if other && (n.failed[key] || n.turnOf(group).last == name) {
				violate("the members of a group are told in turn", "%s of %s is told of %+v before %s", name, s.GroupID, q, keys[j].Name)
			}
		}
		n.turns[group] = turn{name, n.world.nowMs}
	}
	n.sentMs[subject{q, name}] = n.world.nowMs
	n.calls = append(n.calls, &notice{key, done})
	n.world.trace.say("  %s of %s is told of %s", name, c.Tenant, command)
}

// tellSome is the second of the server, and subscribers that answer.
func (w *world) tellSome() {
	n := w.notices
	if n == nil {
		return
	}
	c := w.chance
	if len(n.calls) > 0 && c.oneIn(3) {
		i := c.IntN(len(n.calls))
		call, status := n.calls[i], pick(c, []int{200, 202, 500, 0})
		n.calls = slices.Delete(n.calls, i, i+1)
		n.failed[call.key] = status/100 != 2
		call.done(callback.Answer{Status: status})
	}
	if w.nowMs < n.tickedMs+noticeEveryMs {
		return
	}
	n.tickedMs = w.nowMs
	eachName(n.forgets)
	n.notifier.Tick(w.nowMs)
	eachQueue(n.nobodyIsForgotten)
}

// nobodyIsForgotten says that who is to be told of a queue has been.
func (n *notices) nobodyIsForgotten(q record.QueueKey) {
	if !n.isReady(q) || !n.lacks(q) {
		return
	}
	keys, all := n.subscribers(q)
	for i, key := range keys {
		if all[i].DeliveryMode == wire.DeliverHash && n.chosen[subject{q, byHash(keys, all)}] != key.Name {
			continue
		}
		if n.isDue(q, key, &all[i]) {
			violate("who is subscribed is told, and nobody else", "%s of %s is not told of %s, last at %d: %+v", key.Name, key.Tenant, q.Command, n.since(q, key, &all[i]), all[i])
		}
	}
}

// subscribeSome is somebody who subscribes, says that he is there, or leaves.
func (w *world) subscribeSome() {
	c := w.chance
	key := subscriptionKey(pick(c, w.shape.tenants), pick(c, subscriberNames))
	seconds := pick(c, []int{10, 60, 300})
	s := wire.Subscription{
		CallbackURL: "https://" + key.Name + ".org/", EventTypes: pick(c, [][]string{{wire.AllCommands}, {"a"}, {"b", "c.*"}}),
		MinIntervalSeconds: pick(c, []int{0, 1, 5}), TTLSeconds: seconds, ExpiresAtMs: w.nowMs + int64(seconds)*1000,
	}
	// The mode is that of the name, so that two of a kind meet.
	switch key.Name {
	case "s1":
		s.DeliveryMode = wire.DeliverFanout
	case "s2":
		s.DeliveryMode = pick(c, []string{wire.DeliverHash, wire.DeliverGroup})
	default:
		s.DeliveryMode = pick(c, []string{wire.DeliverHash, wire.DeliverGroup, wire.DeliverGroup})
	}
	if s.DeliveryMode == wire.DeliverGroup {
		s.GroupID = "g"
	}
	value := string(wire.AppendSubscription(nil, &s))
	if c.oneIn(8) {
		value = ""
	}
	w.setNamed(key, value, func(record.Named) {})
}

// forgets forgets a subscription that is gone when the server looks.
func (n *notices) forgets(key record.NamedKey) {
	if key.Kind != record.KindSubscription || n.world.holds[key].Value != "" {
		return
	}
	eachQueue(func(q record.QueueKey) {
		if q.Tenant == key.Tenant {
			delete(n.sentMs, subject{q, key.Name})
		}
	})
	n.calls = slices.DeleteFunc(n.calls, func(c *notice) bool { return c.key == key })
	delete(n.failed, key)
}
