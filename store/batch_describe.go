package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"

	"codeq/record"
)

// Describe tells the operations of the open batch as text, in order: for
// golden scripts and for a person who looks at a database, not for programs.
// Ids are in their text form, numbers in decimal.
func (b *Batch) Describe() []string {
	var ops []string
	reader := batchrepr.Read(b.pebble.Repr())
	for {
		kind, key, value, ok, err := reader.Next()
		if err != nil {
			return append(ops, "unreadable batch: "+err.Error())
		}
		if !ok {
			ops = append(ops, b.pending.describe()...)
			ops = append(ops, b.describeEnded()...)
			for _, key := range b.labels {
				ops = append(ops, "set "+record.DescribeKey(key, b.span.store.queueOf(key)))
			}
			return append(ops, b.describeRemovals()...)
		}
		p, err := record.ParseKey(key)
		if err == nil && p.Family == record.FamilyNames {
			continue // the store gives names and numbers by itself
		}
		name := record.DescribeKey(key, b.span.store.queueOf(key))
		switch kind {
		case pebble.InternalKeyKindSet:
			ops = append(ops, strings.TrimSpace(fmt.Sprintf("set %s %s", name, record.DescribeValue(key, value))))
		case pebble.InternalKeyKindDelete:
			ops = append(ops, "del "+name)
		case pebble.InternalKeyKindSingleDelete:
			ops = append(ops, "del1 "+name)
		default:
			ops = append(ops, fmt.Sprintf("%v %s", kind, name))
		}
	}
}

// describe tells what is held back until the batch is applied.
func (f *pendingInBatch) describe() (ops []string) {
	for i := range f.entries {
		e := &f.entries[i]
		if e.taken {
			continue
		}
		ops = append(ops, fmt.Sprintf("set %s/%s pending/p%d/%d/%v %d",
			e.queue.Command, e.queue.Tenant, e.priority, e.key.Seq, e.key.ID, e.readyAtMs))
	}
	return ops
}
