package audit

import (
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Line is one key of a data directory in words, for people.
type Line struct {
	Shard int    `json:"shard"`
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// Dump visits every key of the shards in order; with an id only what belongs to that
// task. It reads the database twice, because a key has only the number of its queue and
// names come last. The key outside the shards is left out: it has the secret of the
// directory. Errors are those of Store.EachKey; any goroutine may call it while no
// engine writes.
func Dump(s *store.Store, id wire.TaskID, visit func(Line)) error {
	type numbered struct {
		shard  int
		number uint32
	}
	names := make(map[numbered]record.QueueKey)
	err := s.EachKey(func(key, value []byte) {
		p, err := record.ParseKey(key)
		if err != nil || p.Family != record.FamilyNames {
			return
		}
		// A name that cannot be read is printed as it is, and so are the keys below it.
		if q, err := record.ParseNames(value); err == nil {
			names[numbered{p.Shard, p.Queue}] = q
		}
	})
	if err != nil {
		return err
	}
	return s.EachKey(func(key, value []byte) {
		p, err := record.ParseKey(key)
		if string(key) == record.CreationKey || string(key) == record.PositionKey || !id.IsZero() && (err != nil || !belongs(&p, value, id)) {
			return
		}
		visit(Line{
			Shard: p.Shard,
			Key:   record.DescribeKey(key, names[numbered{p.Shard, p.Queue}]),
			Value: record.DescribeValue(key, value),
		})
	})
}

// belongs reports whether a key is one of a task: its record, a place, or the
// idempotency key that names it.
func belongs(p *record.Key, value []byte, id wire.TaskID) bool {
	if p.Family != record.FamilyIdempotency {
		return p.ID == id
	}
	var named wire.TaskID
	return record.ParseID(value, &named) == nil && named == id
}
