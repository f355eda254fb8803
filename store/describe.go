package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"

	"codeq/wire"
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
			return append(append(ops, b.fresh.describe()...), b.describeGone()...)
		}
		switch kind {
		case pebble.InternalKeyKindSet:
			ops = append(ops, strings.TrimSpace(fmt.Sprintf("set %s %s", opKey(key), opValue(key, value))))
		case pebble.InternalKeyKindDelete:
			ops = append(ops, "del "+opKey(key))
		case pebble.InternalKeyKindSingleDelete:
			ops = append(ops, "del1 "+opKey(key))
		default:
			ops = append(ops, fmt.Sprintf("%v %s", kind, opKey(key)))
		}
	}
}

// describe tells what is held back until the batch is applied.
func (f *freshPending) describe() (ops []string) {
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

// opKey is the key without its span, in words.
func opKey(key []byte) string {
	p, err := parseKey(key)
	if err != nil {
		return fmt.Sprintf("%q", key)
	}
	queue := p.Queue.Command + "/" + p.Queue.Tenant
	switch p.Family {
	case familyTask, familyPayload, familyResult, familyHistory:
		return idFamilies[p.Family] + p.ID.String()
	case familyPending:
		return fmt.Sprintf("%s pending/p%d/%d/%v", queue, p.Priority, p.Seq, p.ID)
	case familyInProgress:
		return fmt.Sprintf("%s inprog/%v", queue, p.ID)
	case familyDelayed, familyExpiring, familyDead, familyDone:
		return fmt.Sprintf("%s %s%d/%v", queue, queueFamilies[p.Family], p.AtMs, p.ID)
	case familyIdempotency:
		return fmt.Sprintf("%s key/%s", queue, p.Name)
	case familySettings:
		return queue + " settings"
	case familyCounters:
		return queue + " stats"
	case familyMarks:
		return wordMarks
	default:
		return wordBad + fmt.Sprintf("%q", p.Name)
	}
}

// opValue is the value where it is text, an id where it is one.
func opValue(key, value []byte) string {
	p, err := parseKey(key)
	if err == nil && p.Family == familyIdempotency && len(value) == idBytes {
		var id [idBytes]byte
		copy(id[:], value)
		return fmt.Sprintf("%v", parsedKey{ID: id}.ID)
	}
	if readyAtMs, notTime := parseReadyAt(value); err == nil && p.Family == familyPending && notTime == nil {
		return fmt.Sprintf("%d", readyAtMs)
	}
	switch {
	case err == nil && (p.Family == familyDone || p.Family == familyDead) && len(value) > 0:
		return describeEnded(value)
	case err == nil && p.Family == familyTask:
		return inFull(recordNames, p.ID, value)
	case err == nil && p.Family == familyInProgress:
		return inFull(leaseNames, wire.TaskID{}, value)
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("%q", value)
		}
	}
	return string(value)
}
