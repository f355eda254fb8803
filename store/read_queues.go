package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// ReadAllQueues are the figures of the queues of all tenants that have a task
// waiting, in progress or dead, summed over the shards, by command and tenant.
// It serves whoever watches the server: nothing in it needs to be durable. It
// costs a copy for each queue and shard, however many tasks wait. Any goroutine,
// once the spans are loaded.
func (s *Store) ReadAllQueues() ([]wire.QueueFigures, error) { return s.readQueues(&queueStats{}) }

// ReadEveryQueue is ReadAllQueues with the settings, a pause among them, and with queues
// whose tasks have all ended.
func (s *Store) ReadEveryQueue() ([]wire.QueueFigures, error) {
	return s.readQueues(&queueStats{idle: true})
}

// ReadQueues are the figures and settings of all queues of a tenant, summed over
// the shards, by command. They come from counters, the age of the oldest ready
// task too, which is that of the head of a priority.
func (s *Store) ReadQueues(tenant string) ([]wire.QueueFigures, error) {
	return s.readQueues(&queueStats{tenant: tenant, idle: true})
}

// ReadQueue are the figures and settings of one queue, summed over the shards.
// A queue without a task and without settings has zeros.
func (s *Store) ReadQueue(q record.QueueKey) (*wire.QueueFigures, error) {
	f := &wire.QueueFigures{Command: q.Command, TenantID: q.Tenant, Unknown: true}
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		for shard, sp := range s.spans {
			v, c := s.viewOf(snapshot, shard), sp.published.of(q)
			f.Unknown = f.Unknown && c.IsZero()
			err := v.sumUp([]QueueState{{Key: q, Counters: c}}, func(record.QueueKey) *wire.QueueFigures { return f })
			if err != nil {
				return err
			}
		}
		home := s.viewOf(snapshot, wire.ShardOfQueue(q.Tenant, q.Command, s.shards))
		set, err := home.settings(q)
		if set != nil {
			show(set, f)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// QueuesWithEnded are the queues of a shard that have ended tasks, of those that
// are wanted, by command and tenant. Any goroutine, once the spans are loaded.
func (s *Store) QueuesWithEnded(shard int, wanted func(q record.QueueKey) bool) (keys []record.QueueKey) {
	for _, q := range s.spans[shard].published.all(func(q record.QueueKey, c *record.Counters) bool {
		return (c.Done > 0 || c.Dead > 0) && wanted(q)
	}) {
		keys = append(keys, q.Key)
	}
	slices.SortFunc(keys, record.QueueKey.Compare)
	return keys
}

// queueStats sums the figures of queues over the shards.
type queueStats struct {
	// tenant is whose queues are read; "" is everybody's.
	tenant string
	// idle reads queues that only have ended tasks, and the settings of all.
	idle bool

	list   []wire.QueueFigures
	places map[record.QueueKey]int
}

func (s *Store) readQueues(l *queueStats) ([]wire.QueueFigures, error) {
	l.places = make(map[record.QueueKey]int)
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		for shard := range s.shards {
			if err := l.addShard(s, s.viewOf(snapshot, shard), shard); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.list, func(a, b wire.QueueFigures) int {
		return cmp.Or(strings.Compare(a.Command, b.Command), strings.Compare(a.TenantID, b.TenantID))
	})
	return l.list, nil
}

// addShard adds the queues of a shard, and the settings of those that are at home there.
func (l *queueStats) addShard(s *Store, v view, shard int) error {
	err := v.sumUp(s.spans[shard].published.all(l.wants), l.of)
	if err != nil || !l.idle {
		return err
	}
	return v.scanFamily(record.FamilySettings, func(p *record.Key, value []byte) error {
		var set record.Settings
		if err := record.ParseSettings(value, &set); err != nil {
			return &DamagedError{Key: p.AppendTo(nil), Err: err}
		}
		q, err := v.names(p.Queue)
		if err == nil && wire.ShardOfQueue(q.Tenant, q.Command, s.shards) == shard && l.isFor(q) {
			show(&set, l.of(q))
		}
		return err
	})
}

func (l *queueStats) isFor(q record.QueueKey) bool { return l.tenant == "" || l.tenant == q.Tenant }

// wants says whether the counters of a queue are added.
func (l *queueStats) wants(q record.QueueKey, c *record.Counters) bool {
	return l.isFor(q) && (l.idle || c.ReadyTotal() > 0 || c.Limited > 0 || c.Delayed > 0 || c.InProgress > 0 || c.Dead > 0)
}

// of are the figures of a queue so far.
func (l *queueStats) of(q record.QueueKey) *wire.QueueFigures {
	place, known := l.places[q]
	if !known {
		place = len(l.list)
		l.places[q] = place
		l.list = append(l.list, wire.QueueFigures{Command: q.Command, TenantID: q.Tenant})
	}
	return &l.list[place]
}

// show puts settings among the figures of their queue.
func show(s *record.Settings, f *wire.QueueFigures) {
	f.Unknown = false
	f.Paused, f.Deleting, f.Settings = s.Paused, s.Deleting, s.QueueSettings
}

func (v *view) settings(q record.QueueKey) (*record.Settings, error) {
	var s record.Settings
	n, err := v.number(q)
	if err != nil {
		return nil, err
	}
	found, err := v.get(record.AppendQueue(v.start(), n, record.FamilySettings), func(value []byte) error {
		return record.ParseSettings(value, &s)
	})
	if !found {
		return nil, err
	}
	return &s, nil
}

// sumUp adds the counters of queues in a shard to their figures.
func (v *view) sumUp(queues []QueueState, of func(record.QueueKey) *wire.QueueFigures) (err error) {
	oldest := oldestReady{view: v}
	defer func() {
		if oldest.it != nil {
			err = cmp.Or(err, v.done(oldest.it))
		}
	}()
	for i := range queues {
		c, f := &queues[i].Counters, of(queues[i].Key)
		f.Ready += c.ReadyTotal()
		f.Limited += c.Limited
		f.Delayed += c.Delayed
		f.InProgress += c.InProgress
		f.Dead += c.Dead
		f.Ended += c.Done
		for cause, n := range c.DeadBy {
			f.DeadBy[cause] += n
		}
		for priority := record.Priorities - 1; priority >= 0; priority-- { // the order of the keys
			sinceMs, err := oldest.since(&queues[i], priority)
			if err != nil {
				return err
			}
			if sinceMs != 0 && (f.OldestReadyAtMs == 0 || sinceMs < f.OldestReadyAtMs) {
				f.OldestReadyAtMs = sinceMs
			}
		}
	}
	return nil
}

// oldestReady finds since when the heads of queues are ready. Counters say it, but for
// what follows a window of the index that ran empty; see Counters.ReadySinceMs. All
// queues share one iterator, which most reads do not open.
type oldestReady struct {
	view *view
	it   *pebble.Iterator
}

// since is the time of the first ready task of a priority, 0 if there is none.
func (o *oldestReady) since(q *QueueState, priority int) (int64, error) {
	c := &q.Counters
	if c.Ready[priority] == 0 || c.ReadySinceMs[priority] != 0 {
		return c.ReadySinceMs[priority], nil
	}
	n, err := o.view.number(q.Key)
	if err != nil {
		return 0, err
	}
	start := func() []byte { return slices.Clone(o.view.prefix) }
	lower := record.AppendPendingKey(start(), n, priority, record.PendingKey{Seq: c.ReadyWatermark[priority]})
	upper := record.UpperBound(record.AppendPriority(start(), n, priority))
	if o.it == nil {
		if o.it, err = o.view.reader.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
			return 0, fmt.Errorf("scan: %w", err)
		}
	} else {
		o.it.SetBounds(lower, upper)
	}
	if !o.it.First() {
		return 0, o.view.at(lower, o.it.Error())
	}
	value, err := o.it.ValueAndErr()
	if err != nil {
		return 0, o.view.at(lower, err)
	}
	atMs, err := record.ParseReadyAt(value)
	if err != nil {
		return 0, &DamagedError{Key: slices.Clone(o.it.Key()), Err: err}
	}
	return atMs, nil
}
