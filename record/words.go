package record

import (
	"fmt"

	"codeq/wire"
)

// DescribeKey is the key without its span, in words.
func DescribeKey(key []byte) string {
	p, err := ParseKey(key)
	if err != nil {
		return fmt.Sprintf("%q", key)
	}
	queue := p.Queue.Command + "/" + p.Queue.Tenant
	switch p.Family {
	case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory:
		return IDFamilies[p.Family] + p.ID.String()
	case FamilyPending:
		return fmt.Sprintf("%s pending/p%d/%d/%v", queue, p.Priority, p.Seq, p.ID)
	case FamilyInProgress:
		return fmt.Sprintf("%s inprog/%v", queue, p.ID)
	case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
		return fmt.Sprintf("%s %s%d/%v", queue, queueFamilies[p.Family], p.AtMs, p.ID)
	case FamilyIdempotency:
		return fmt.Sprintf("%s key/%s", queue, p.Name)
	case FamilySettings:
		return queue + " settings"
	case FamilyCounters:
		return queue + " stats"
	case FamilyMarks:
		return WordMarks
	default:
		return WordBad + fmt.Sprintf("%q", p.Name)
	}
}

// DescribeValue is the value where it is text, an id where it is one.
func DescribeValue(key, value []byte) string {
	p, err := ParseKey(key)
	if err == nil && p.Family == FamilyIdempotency && len(value) == idBytes {
		var id [idBytes]byte
		copy(id[:], value)
		return fmt.Sprintf("%v", Key{ID: id}.ID)
	}
	if readyAtMs, notTime := ParseReadyAt(value); err == nil && p.Family == FamilyPending && notTime == nil {
		return fmt.Sprintf("%d", readyAtMs)
	}
	switch {
	case err == nil && (p.Family == FamilyDone || p.Family == FamilyDead) && len(value) > 0:
		return describeEnded(value)
	case err == nil && p.Family == FamilyTask:
		return inFull(recordNames, p.ID, value)
	case err == nil && p.Family == FamilyInProgress:
		return inFull(leaseNames, wire.TaskID{}, value)
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("%q", value)
		}
	}
	return string(value)
}
