package callback

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// Names is what a Notifier needs of a shardactor.Engine.
type Names interface {
	AllNamed(kind record.Kind) record.NamedList
	Effective(command string, set wire.QueueSettings) wire.QueueSettings
	Name(n *shardactor.Naming)
}

// NotifierOptions configure a Notifier. All fields but PublicURL are required.
type NotifierOptions struct {
	Engine Names
	// Ready calls each with every queue that has ready tasks, Read reads the figures of one.
	Ready func(each func(tenant, command string))
	Read  func(q record.QueueKey) (*wire.QueueFigures, error)
	// Send is that of a Worker. NewID draws the id of a call.
	Send  func(call *Call, done func(Answer))
	NewID func() string
	// PublicURL begins the address at which tasks are claimed.
	PublicURL string
}

// Notifier tells subscribers that a queue has tasks for which no worker has room, again and again
// while that is so. A call that fails is not repeated before the next is due. Its methods may be
// called from any goroutine, and none blocks but for reads.
type Notifier struct {
	o NotifierOptions

	mu          sync.Mutex
	subscribers map[record.NamedKey]*subscriber
	groups      map[group]turn
	// toldMs is when somebody was told last of each queue that has ready tasks.
	toldMs map[record.QueueKey]int64
}

// subscriber is a subscription and what was sent to it.
type subscriber struct {
	wire.Subscription
	key record.NamedKey
	// version is that of the record.
	version  int64
	inFlight bool
	// failures counts the calls in a row that failed.
	failures int
	// sentMs is when it was told of each queue.
	sentMs map[string]int64
}

// group is a group for one queue, turn who of it was told last, and when.
type group struct{ tenant, name, command string }
type turn struct {
	last string
	atMs int64
}

// NewNotifier makes a notifier that knows no subscriber before Tick.
func NewNotifier(o NotifierOptions) *Notifier {
	return &Notifier{o: o, subscribers: make(map[record.NamedKey]*subscriber), groups: make(map[group]turn)}
}

// Tick tells who is to be told at that time, in Unix milliseconds. Without a subscription it looks
// at no queue.
func (n *Notifier) Tick(nowMs int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.follow(nowMs)
	if len(of) == 0 {
		return
	}
	told := make(map[record.QueueKey]int64)
	n.o.Ready(func(tenant, command string) {
		if q := (record.QueueKey{Command: command, Tenant: tenant}); len(of[tenant]) > 0 && !wire.IsSystemCommand(command) {
			told[q] = n.toldMs[q]
		}
	})
	n.toldMs = told
	// A subscriber has one call under way, so the queue of which nobody was told for longest comes first.
	for _, q := range slices.SortedFunc(maps.Keys(told), func(a, b record.QueueKey) int { return cmp.Or(cmp.Compare(told[a], told[b]), a.Compare(b)) }) {
		n.tell(q, of[q.Tenant], nowMs)
	}
	maps.DeleteFunc(n.groups, func(_ group, t turn) bool { return nowMs-t.atMs > forgetTurnMs })
}

// forgetTurnMs is the longest time between two calls about one queue.
const forgetTurnMs = 86_400_000

// follow is the subscribers of each tenant by id. Those that have expired are removed.
func (n *Notifier) follow(nowMs int64) map[string][]*subscriber {
	of, list := make(map[string][]*subscriber), n.o.Engine.AllNamed(record.KindSubscription)
	had := n.subscribers
	n.subscribers = make(map[record.NamedKey]*subscriber, len(list))
	for i := range list {
		r := &list[i]
		s := had[r.NamedKey]
		if s == nil {
			s = &subscriber{key: r.NamedKey, sentMs: make(map[string]int64)}
		}
		if s.version != r.Version {
			s.Subscription, s.version = r.Subscription(), r.Version
		}
		n.subscribers[r.NamedKey] = s
		if nowMs < s.ExpiresAtMs {
			of[r.Tenant] = append(of[r.Tenant], s)
		} else {
			n.o.Engine.Name(&shardactor.Naming{
				What: shard.NameChange{Key: r.NamedKey, IfVersion: r.Version},
				Done: func(record.Named, *wire.Error) {}, // a heartbeat that came before keeps it, and a full disk until it has space
			})
		}
	}
	return of
}

// tell tells of a queue each that is to be told now.
func (n *Notifier) tell(q record.QueueKey, all []*subscriber, nowMs int64) {
	var hashed *subscriber
	var to []*subscriber
	groups := make(map[string][]*subscriber)
	for _, s := range all {
		switch {
		case !wire.CommandIsAmong(s.EventTypes, q.Command):
		case s.DeliveryMode == wire.DeliverGroup:
			groups[s.GroupID] = append(groups[s.GroupID], s)
		case s.DeliveryMode != wire.DeliverHash:
			to = append(to, s)
		case hashed == nil || s.weight(q.Command) > hashed.weight(q.Command):
			hashed = s
		}
	}
	if hashed != nil {
		to = append(to, hashed)
	}
	to = slices.DeleteFunc(to, func(s *subscriber) bool { return !s.isDue(s.sentMs[q.Command], nowMs) })
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if s := n.nextOf(group{q.Tenant, name, q.Command}, groups[name], nowMs); s != nil {
			to = append(to, s)
		}
	}
	if len(to) == 0 {
		return
	}
	// What cannot be read now is read with the next tick.
	if f, err := n.o.Read(q); err == nil && lacksWorkers(f, n.o.Engine.Effective(q.Command, f.Settings).MaxInProgress) {
		for _, s := range to {
			n.send(q, s, f, nowMs)
		}
	}
}

// lacksWorkers reports whether more workers would take tasks of a queue that may have so many in
// progress, 0 for any number.
func lacksWorkers(f *wire.QueueFigures, most int) bool {
	return f.Ready > 0 && !f.Paused && (most == 0 || f.InProgress < int64(most))
}

func (s *subscriber) isDue(sentMs, nowMs int64) bool {
	return !s.inFlight && nowMs >= sentMs+int64(cmp.Or(s.MinIntervalSeconds, wire.DefaultIntervalSeconds))*1000
}

// weight orders the subscribers of a queue; who leaves or joins changes the first of few queues.
func (s *subscriber) weight(command string) uint64 {
	sum := sha256.Sum256([]byte(s.key.Name + "\x00" + command))
	return binary.BigEndian.Uint64(sum[:])
}

// nextOf is the member whose turn it is, nil for none: one behind the last whose last call did not
// fail, or the next if all have.
func (n *Notifier) nextOf(g group, members []*subscriber, nowMs int64) *subscriber {
	t := n.groups[g]
	at, _ := slices.BinarySearchFunc(members, t.last+"\x00", func(s *subscriber, last string) int { return cmp.Compare(s.key.Name, last) })
	var next *subscriber
	for i := range members {
		s := members[(at+i)%len(members)]
		if s.isDue(t.atMs, nowMs) && (next == nil || next.failures > 0 && s.failures == 0) {
			next = s
		}
	}
	return next
}

func (n *Notifier) send(q record.QueueKey, s *subscriber, f *wire.QueueFigures, nowMs int64) {
	s.inFlight, s.sentMs[q.Command], n.toldMs[q] = true, nowMs, nowMs
	if s.DeliveryMode == wire.DeliverGroup {
		n.groups[group{q.Tenant, s.GroupID, q.Command}] = turn{s.key.Name, nowMs}
	}
	id := n.o.NewID()
	body := wire.AppendNotification(nil, &wire.Notification{
		ID: id, Command: q.Command, Ready: f.Ready, OldestReadyAtMs: f.OldestReadyAtMs, ClaimURL: n.o.PublicURL + "/v1/codeq/tasks/claim", SentAtMs: nowMs,
	})
	n.o.Send(&Call{Callback: wire.Callback{ID: id, URL: s.CallbackURL, Body: body}, Tenant: q.Tenant, Attempt: 1}, func(a Answer) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s.inFlight = false
		if s.failures++; a.succeeded() {
			s.failures = 0
		}
	})
}

// Failures is how many calls to a subscription in a row have failed.
func (n *Notifier) Failures(key record.NamedKey) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subscribers[key]; s != nil {
		return s.failures
	}
	return 0
}
