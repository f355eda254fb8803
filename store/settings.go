package store

import (
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"codeq/wire"
)

// Settings are what a queue was set to. Every shard has a copy; the one of the
// queue's home, wire.ShardOfQueue, is the newest.
type Settings struct {
	// Version counts the changes; 0 means that nothing was ever set.
	Version int64
	// Paused keeps the tasks of the queue from workers.
	Paused bool
	// Deleting: the queue takes no task, and goes when it has none left.
	Deleting bool
	wire.QueueSettings
}

// SettingsState are the settings of one queue as recovery finds them.
type SettingsState struct {
	Key      QueueKey
	Settings Settings
	// Unsaved: they were found in another shard and this one has older ones on
	// disk, or none.
	Unsaved bool
}

// PutSettings writes the shard's copy of the settings of a queue.
func (b *Batch) PutSettings(q QueueKey, s *Settings) {
	b.value = appendSettings(b.value[:0], s)
	b.set(appendSettingsKey(b.start(), q), b.value)
}

// DeleteSettings forgets the settings of a queue.
func (b *Batch) DeleteSettings(q QueueKey) { b.remove(appendSettingsKey(b.start(), q)) }

func appendSettings(dst []byte, s *Settings) []byte {
	dst = append(dst, `{"version":`...)
	dst = strconv.AppendInt(dst, s.Version, 10)
	dst = appendFlagMember(dst, `,"paused":`, s.Paused)
	dst = appendFlagMember(dst, `,"deleting":`, s.Deleting)
	dst = appendFlagMember(dst, `,"spread":`, s.Spread)
	dst = appendIntMember(dst, `,"maxAttempts":`, int64(s.MaxAttempts))
	dst = appendIntMember(dst, `,"leaseSeconds":`, int64(s.LeaseSeconds))
	dst = appendIntMember(dst, `,"timeoutSeconds":`, s.TimeoutSeconds)
	dst = appendIntMember(dst, `,"ttlSeconds":`, s.TTLSeconds)
	dst = appendStringMember(dst, `,"backoff":`, s.Backoff.Policy)
	dst = appendIntMember(dst, `,"backoffBaseSeconds":`, s.Backoff.BaseSeconds)
	dst = appendIntMember(dst, `,"backoffMaxSeconds":`, s.Backoff.MaxSeconds)
	dst = appendIntMember(dst, `,"retentionSeconds":`, s.RetentionSeconds)
	dst = appendIntMember(dst, `,"dlqRetentionSeconds":`, s.DLQRetentionSeconds)
	return append(dst, '}')
}

// appendFlagMember writes what is true as 1.
func appendFlagMember(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(append(dst, name...), '1')
}

func parseSettings(data []byte, set *Settings) error {
	s := scanner{text: string(data)}
	*set = Settings{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "version":
			set.Version = s.int64()
		case "paused":
			set.Paused = s.int64() == 1
		case "deleting":
			set.Deleting = s.int64() == 1
		case "spread":
			set.Spread = s.int64() == 1
		case "maxAttempts":
			set.MaxAttempts = s.int()
		case "leaseSeconds":
			set.LeaseSeconds = s.int()
		case "timeoutSeconds":
			set.TimeoutSeconds = s.int64()
		case "ttlSeconds":
			set.TTLSeconds = s.int64()
		case "backoff":
			set.Backoff.Policy = s.str()
		case "backoffBaseSeconds":
			set.Backoff.BaseSeconds = s.int64()
		case "backoffMaxSeconds":
			set.Backoff.MaxSeconds = s.int64()
		case "retentionSeconds":
			set.RetentionSeconds = s.int64()
		case "dlqRetentionSeconds":
			set.DLQRetentionSeconds = s.int64()
		default:
			s.skip(0)
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if set.Version < 1 {
		return errDamaged
	}
	return nil
}

func (sp *Span) loadSettings(r *Recovered) error {
	var damaged [][]byte
	prefix := append(sp.view.start(), wordSettings...)
	err := sp.view.scanPrefix(prefix, func(key, value []byte) (bool, error) {
		p, err := parseKey(key)
		state := SettingsState{Key: p.Queue}
		if err != nil || parseSettings(value, &state.Settings) != nil {
			damaged = append(damaged, append([]byte(nil), key...))
			return true, nil
		}
		r.Settings = append(r.Settings, state)
		return true, nil
	})
	if err != nil {
		return err
	}
	// A copy of another shard takes the place of one that cannot be read.
	for _, key := range damaged {
		if err := sp.setAside(key); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) settings(q QueueKey) (*Settings, error) {
	var s Settings
	found, err := v.get(appendSettingsKey(v.start(), q), func(value []byte) error {
		return parseSettings(value, &s)
	})
	if !found {
		return nil, err
	}
	return &s, nil
}

// judgeSettings holds copies against those of the home shard, which are never
// older, and the same when they are as new.
func (a *audit) judgeSettings(audits []*audit) {
	for _, q := range a.queues {
		if q.settings == nil {
			continue
		}
		home := audits[wire.ShardOfQueue(q.key.Tenant, q.key.Command, a.shards)]
		key := appendSettingsKey(append([]byte(nil), a.prefix...), q.key)
		known := home.queueAt[q.key]
		switch {
		case known == nil || known.settings == nil:
			a.find(findSettings, key, "the home shard %d has no settings of the queue", home.shard)
		case known.settings.Version < q.settings.Version:
			a.find(findSettings, key, "the copy has version %d, the home shard %d only %d",
				q.settings.Version, home.shard, known.settings.Version)
		case known.settings.Version == q.settings.Version && *known.settings != *q.settings:
			a.find(findSettings, key, "the copy differs from version %d of the home shard %d",
				q.settings.Version, home.shard)
		}
	}
}

// judgePlacement wants a task at the home of its queue, unless the queue is spread
// and the task has no idempotency key. What holds is what the home says; the
// others follow it.
func (a *audit) judgePlacement(audits []*audit) {
	for _, t := range a.tasks {
		r := t.record
		if r == nil {
			continue
		}
		home := wire.ShardOfQueue(r.Tenant, r.Command, a.shards)
		known := audits[home].queueAt[r.Queue()]
		spread := known != nil && known.settings != nil && known.settings.Spread
		switch {
		case a.shard == home:
		case !spread:
			a.find(findWrongShard, a.idKey(familyTask, t.id), "the queue is not spread and has its tasks in shard %d", home)
		case r.IdempotencyKey != "":
			a.find(findWrongShard, a.idKey(familyTask, t.id), "the task has an idempotency key and belongs to shard %d", home)
		}
	}
}

// ReadQueue are the figures and settings of one queue, summed over the shards.
// A queue without a task and without settings has zeros.
func (s *Store) ReadQueue(q QueueKey) (*wire.QueueFigures, error) {
	f := &wire.QueueFigures{Command: q.Command, TenantID: q.Tenant, Unknown: true}
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		for shard := range s.shards {
			v := s.viewOf(snapshot, shard)
			c := s.spans[shard].published.of(q)
			f.Unknown = f.Unknown && c.IsZero()
			if err := addQueue(&v, q, &c, f); err != nil {
				return err
			}
			if shard != wire.ShardOfQueue(q.Tenant, q.Command, s.shards) {
				continue
			}
			if err := addSettings(&v, q, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// addQueue adds one shard's figures of a queue.
func addQueue(v *view, q QueueKey, c *Counters, f *wire.QueueFigures) error {
	heads := heads{view: v}
	err := heads.sumUp(q, c, f)
	if closeErr := heads.close(); err == nil {
		err = closeErr
	}
	return err
}

func addSettings(v *view, q QueueKey, f *wire.QueueFigures) error {
	set, err := v.settings(q)
	if set != nil {
		set.show(f)
	}
	return err
}

// show puts them among the figures of their queue.
func (s *Settings) show(f *wire.QueueFigures) {
	f.Unknown = false
	f.Paused, f.Deleting, f.Settings = s.Paused, s.Deleting, s.QueueSettings
}

// eachSettings visits the settings of the queues that are at home in one shard.
func (v *view) eachSettings(shard, shards int, each func(QueueKey, *Settings)) error {
	prefix := append(v.start(), wordSettings...)
	return v.scanPrefix(append([]byte(nil), prefix...), func(key, value []byte) (bool, error) {
		p, err := parseKey(key)
		var set Settings
		if err == nil {
			err = parseSettings(value, &set)
		}
		if err != nil {
			return false, &DamagedError{Key: append([]byte(nil), key...), Err: err}
		}
		if wire.ShardOfQueue(p.Queue.Tenant, p.Queue.Command, shards) == shard {
			each(p.Queue, &set)
		}
		return true, nil
	})
}
