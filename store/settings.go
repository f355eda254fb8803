package store

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// SettingsState are the settings of one queue as recovery finds them.
type SettingsState struct {
	Key      record.QueueKey
	Settings record.Settings
	// Unsaved: they were found in another shard and this one has older ones on
	// disk, or none.
	Unsaved bool
}

// PutSettings writes the shard's copy of the settings of a queue.
func (b *Batch) PutSettings(q record.QueueKey, s *record.Settings) {
	n := b.number(q)
	b.put(q, record.FamilySettings)
	b.value = record.AppendSettings(b.value[:0], s)
	b.set(record.AppendQueue(b.start(), n, record.FamilySettings), b.value)
}

// DeleteSettings forgets the settings of a queue.
func (b *Batch) DeleteSettings(q record.QueueKey) {
	n := b.number(q)
	b.dropped(q, record.FamilySettings)
	b.remove(record.AppendQueue(b.start(), n, record.FamilySettings))
}

func (sp *Span) loadSettings(r *Recovered, queues map[uint32]record.QueueKey) error {
	var damaged []uint32
	err := sp.view.scanFamily(record.FamilySettings, func(p *record.Key, value []byte) error {
		q, named := queues[p.Queue]
		state := SettingsState{Key: q}
		if !named || record.ParseSettings(value, &state.Settings) != nil {
			damaged = append(damaged, p.Queue)
			return nil
		}
		sp.keeps(q, record.FamilySettings, true)
		r.Settings = append(r.Settings, state)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(r.Settings, func(a, b SettingsState) int { return a.Key.Compare(b.Key) })
	// A copy of another shard takes the place of one that cannot be read.
	for _, n := range damaged {
		if err := sp.setAside(record.AppendQueue(sp.view.start(), n, record.FamilySettings)); err != nil {
			return err
		}
		sp.batch.dropped(queues[n], record.FamilySettings)
	}
	return nil
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

// ReadQueue are the figures and settings of one queue, summed over the shards.
// A queue without a task and without settings has zeros.
func (s *Store) ReadQueue(q record.QueueKey) (*wire.QueueFigures, error) {
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
func addQueue(v *view, q record.QueueKey, c *record.Counters, f *wire.QueueFigures) error {
	heads := heads{view: v}
	err := heads.sumUp(q, c, f)
	if closeErr := heads.close(); err == nil {
		err = closeErr
	}
	return err
}

func addSettings(v *view, q record.QueueKey, f *wire.QueueFigures) error {
	set, err := v.settings(q)
	if set != nil {
		show(set, f)
	}
	return err
}

// show puts settings among the figures of their queue.
func show(s *record.Settings, f *wire.QueueFigures) {
	f.Unknown = false
	f.Paused, f.Deleting, f.Settings = s.Paused, s.Deleting, s.QueueSettings
}

// eachSettings visits the settings of the queues that are at home in one shard.
func (v *view) eachSettings(shard, shards int, each func(record.QueueKey, *record.Settings)) error {
	return v.scanFamily(record.FamilySettings, func(p *record.Key, value []byte) error {
		var set record.Settings
		if err := record.ParseSettings(value, &set); err != nil {
			return &DamagedError{Key: p.AppendTo(nil), Err: err}
		}
		q, err := v.names(p.Queue)
		if err == nil && wire.ShardOfQueue(q.Tenant, q.Command, shards) == shard {
			each(q, &set)
		}
		return err
	})
}
