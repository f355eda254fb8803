package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"codeq/wire"
)

// MaxShards is the most shards that a data directory can be made with.
const MaxShards = 32

// CreationKey and PositionKey are the keys outside the spans: read as a shard number, "co"
// is far beyond the last shard. A node of a cluster keeps under PositionKey up to where of
// the shared log its database is.
const (
	CreationKey = "codeq/meta/creation"
	PositionKey = "codeq/meta/position"
)

const (
	spanBytes  = 2
	queueBytes = 4
	idBytes    = len(wire.TaskID{})
)

// Family is the kind of a key: the byte behind the number of its shard.
type Family byte

// The families, in the order in which a span has them. The table in the doc of the
// package says what is in their keys.
const (
	FamilyTask Family = 1 + iota
	FamilyPayload
	FamilyResult
	FamilyHistory
	FamilyIdempotency
	FamilyPending
	FamilyInProgress
	FamilyDelayed
	FamilyExpiring
	FamilyDead
	FamilyDone
	FamilyCounters
	FamilySettings
	FamilyNames
	FamilyMarks
	FamilyBad
	FamilyLabels
	FamilyNamed
	FamilyLimited
)

// families have for each its word in a description and in a sentence.
var families = [...]struct{ word, what string }{
	FamilyTask:        {"tasks/", "record of task"},
	FamilyPayload:     {"payload/", "payload of task"},
	FamilyResult:      {"results/", "result of task"},
	FamilyHistory:     {"history/", "history of task"},
	FamilyIdempotency: {"key/", "idempotency key"},
	FamilyPending:     {"pending/", "pending entry of task"},
	FamilyInProgress:  {"inprog/", "lease of task"},
	FamilyDelayed:     {"delayed/", "delayed entry of task"},
	FamilyExpiring:    {"expiring/", "expiring entry of task"},
	FamilyDead:        {"dlq/", "dead-letter entry of task"},
	FamilyDone:        {"done/", "ended entry of task"},
	FamilyCounters:    {"stats", "counters"},
	FamilySettings:    {"settings", "settings"},
	FamilyNames:       {"names", "name"},
	FamilyMarks:       {"meta/marks", "marks"},
	FamilyBad:         {"bad/", "set-aside value"},
	FamilyLabels:      {"label/", "label of task"},
	FamilyNamed:       {"named/", "named record"},
	FamilyLimited:     {"limited/", "limited entry of task"},
}

// String names the family in a sentence.
func (f Family) String() string { return families[f].what }

// TaskFamilies are the families with at most one key for each task.
var TaskFamilies = [...]Family{FamilyTask, FamilyPayload, FamilyResult, FamilyHistory}

// Orders are the families whose keys are the tasks of a queue.
var Orders = [...]Family{FamilyPending, FamilyInProgress, FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone, FamilyLimited}

// Key is a key taken apart. Which fields are set depends on Family.
type Key struct {
	Shard    int
	Family   Family
	Queue    uint32
	Priority int
	Seq      uint64
	AtMs     int64
	ID       wire.TaskID
	// More are the ids behind ID in a key of ended tasks, one behind the other.
	More string
	// Name is the idempotency key, the label as name=value, the concurrency key, or what a bad
	// key was inside its span.
	Name string
	// Tenant is whose label or named record it is; other keys have a queue for that.
	Tenant string
	// Kind is the kind of a named record.
	Kind Kind
}

// AppendSpan begins a key of the shard.
func AppendSpan(dst []byte, shard int) []byte {
	if shard < 0 || shard >= MaxShards {
		panic(fmt.Sprintf("record: shard %d of at most %d", shard, MaxShards))
	}
	return binary.BigEndian.AppendUint16(dst, uint16(shard))
}

// AppendIDKey adds family and id behind a span prefix.
func AppendIDKey(dst []byte, f Family, id wire.TaskID) []byte {
	return append(append(dst, byte(f)), id[:]...)
}

// AppendQueue adds what all keys of a queue in a family begin with, which is the whole
// key of its counters, its settings and its name.
func AppendQueue(dst []byte, queue uint32, f Family) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(f)), queue)
}

// AppendPriority adds all pending keys of one priority.
func AppendPriority(dst []byte, queue uint32, priority int) []byte {
	if priority < 0 || priority >= Priorities {
		panic(fmt.Sprintf("record: priority %d of %d", priority, Priorities))
	}
	return append(AppendQueue(dst, queue, FamilyPending), byte(wire.MaxPriority-priority))
}

// AppendPendingKey adds the key of a ready task.
func AppendPendingKey(dst []byte, queue uint32, priority int, k PendingKey) []byte {
	dst = binary.BigEndian.AppendUint64(AppendPriority(dst, queue, priority), k.Seq)
	return append(dst, k.ID[:]...)
}

// AppendLeaseKey adds the key of a task in progress.
func AppendLeaseKey(dst []byte, queue uint32, id wire.TaskID) []byte {
	return append(AppendQueue(dst, queue, FamilyInProgress), id[:]...)
}

// AppendLeaseWatermark adds the first key that a lease of an id of that rank can have.
func AppendLeaseWatermark(dst []byte, queue uint32, watermark uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendQueue(dst, queue, FamilyInProgress), watermark)
}

// AppendTimedKey adds the key of an entry in an order by time, which begins in 1970.
func AppendTimedKey(dst []byte, queue uint32, f Family, k TimedKey) []byte {
	if k.AtMs < 0 {
		panic(fmt.Sprintf("record: time %d of task %v is before 1970", k.AtMs, k.ID))
	}
	dst = binary.BigEndian.AppendUint64(AppendQueue(dst, queue, f), uint64(k.AtMs))
	return append(dst, k.ID[:]...)
}

// MaxTogether is how many ended tasks may share a key.
const MaxTogether = 64

// AppendDoneKey adds the key of tasks of a queue that ended at one time, other than dead letters.
// Their ids rise, and are at most MaxTogether.
func AppendDoneKey(dst []byte, queue uint32, atMs int64, ids []wire.TaskID) []byte {
	dst = AppendTimedKey(dst, queue, FamilyDone, TimedKey{AtMs: atMs, ID: ids[0]})
	for i := range ids[1:] {
		dst = append(dst, ids[1+i][:]...)
	}
	return dst
}

// Tasks is how many tasks a key names, which is more than one only in FamilyDone.
func (p *Key) Tasks() int { return 1 + len(p.More)/idBytes }

// AppendTasks adds the ids of the tasks that a key names. They rise.
func (p *Key) AppendTasks(dst []wire.TaskID) []wire.TaskID {
	dst = append(dst, p.ID)
	for more := p.More; more != ""; more = more[idBytes:] {
		dst = append(dst, wire.TaskID([]byte(more[:idBytes])))
	}
	return dst
}

// AppendIdempotencyKey adds one idempotency key of a queue.
func AppendIdempotencyKey(dst []byte, queue uint32, key string) []byte {
	return appendName(AppendQueue(dst, queue, FamilyIdempotency), key)
}

// AppendLimited adds what all keys of the tasks that wait for a concurrency key begin with.
func AppendLimited(dst []byte, queue uint32, key string) []byte {
	return appendName(AppendQueue(dst, queue, FamilyLimited), key)
}

// AppendLimitedKey adds the key of a task that waits for a concurrency key.
func AppendLimitedKey(dst []byte, queue uint32, e *LimitedEntry) []byte {
	dst = append(AppendLimited(dst, queue, e.Key), byte(wire.MaxPriority-e.Priority))
	return append(binary.BigEndian.AppendUint64(dst, e.Seq), e.ID[:]...)
}

// AppendLabel adds what all keys of a label of a tenant begin with.
func AppendLabel(dst []byte, tenant, label string) []byte {
	return appendName(appendName(append(dst, byte(FamilyLabels)), tenant), label)
}

// AppendLabelKey adds the key of a label of a task.
func AppendLabelKey(dst []byte, tenant, label string, queue uint32, id wire.TaskID) []byte {
	return append(binary.BigEndian.AppendUint32(AppendLabel(dst, tenant, label), queue), id[:]...)
}

// AppendNamedKey adds the key of a named record.
func AppendNamedKey(dst []byte, k NamedKey) []byte {
	return appendName(appendName(appendName(append(dst, byte(FamilyNamed)), k.Tenant), string(k.Kind)), k.Name)
}

// AppendTo adds the key that ParseKey takes apart like that.
func (p *Key) AppendTo(dst []byte) []byte {
	dst = AppendSpan(dst, p.Shard)
	switch p.Family {
	case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory:
		return AppendIDKey(dst, p.Family, p.ID)
	case FamilyIdempotency:
		return AppendIdempotencyKey(dst, p.Queue, p.Name)
	case FamilyPending:
		return AppendPendingKey(dst, p.Queue, p.Priority, PendingKey{Seq: p.Seq, ID: p.ID})
	case FamilyLimited:
		return AppendLimitedKey(dst, p.Queue, &LimitedEntry{Key: p.Name, LimitedPlace: LimitedPlace{Priority: p.Priority, PendingKey: PendingKey{Seq: p.Seq, ID: p.ID}}})
	case FamilyInProgress:
		return AppendLeaseKey(dst, p.Queue, p.ID)
	case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
		return append(AppendTimedKey(dst, p.Queue, p.Family, TimedKey{AtMs: p.AtMs, ID: p.ID}), p.More...)
	case FamilyCounters, FamilySettings, FamilyNames:
		return AppendQueue(dst, p.Queue, p.Family)
	case FamilyMarks:
		return append(dst, byte(FamilyMarks))
	case FamilyLabels:
		return AppendLabelKey(dst, p.Tenant, p.Name, p.Queue, p.ID)
	case FamilyNamed:
		return AppendNamedKey(dst, p.Named())
	}
	return append(append(dst, byte(p.Family)), p.Name...)
}

var errUnknownKey = errors.New("not a key of this version")

// ParseKey takes a key apart and accepts only what AppendTo makes.
func ParseKey(key []byte) (Key, error) {
	var p Key
	if len(key) <= spanBytes {
		return p, errUnknownKey
	}
	p.Shard, p.Family = int(binary.BigEndian.Uint16(key)), Family(key[spanBytes])
	if p.Shard >= MaxShards || p.Family < FamilyTask || p.Family > FamilyLimited {
		return p, errUnknownKey
	}
	rest := key[spanBytes+1:]
	switch {
	case p.Family <= FamilyHistory:
		return p, p.parseID(rest)
	case p.Family == FamilyBad:
		p.Name = string(rest)
		return p, nil
	case p.Family == FamilyMarks:
		return p, end(rest)
	case p.Family == FamilyLabels:
		return p, p.parseLabel(string(rest))
	case p.Family == FamilyNamed:
		rest, err := parseNames(string(rest), &p.Tenant, (*string)(&p.Kind), &p.Name)
		return p, cmp.Or(err, end([]byte(rest)))
	case len(rest) < queueBytes:
		return p, errUnknownKey
	}
	p.Queue, rest = binary.BigEndian.Uint32(rest), rest[queueBytes:]
	switch {
	case p.Queue == 0:
		return p, errUnknownKey
	case p.Family == FamilyIdempotency:
		var err error
		p.Name, err = parseName(string(rest))
		return p, err
	case p.Family >= FamilyCounters && p.Family != FamilyLimited:
		return p, end(rest)
	}
	return p, p.ParsePlace(rest)
}

func end(rest []byte) error {
	if len(rest) > 0 {
		return errUnknownKey
	}
	return nil
}

// parseLabel reads what the key of a label has behind its family.
func (p *Key) parseLabel(text string) error {
	text, err := parseNames(text, &p.Tenant, &p.Name)
	if err != nil {
		return err
	}
	return p.ParsePlace([]byte(text))
}

// parseNames reads escaped names and returns what is behind them.
func parseNames(text string, parts ...*string) (rest string, err error) {
	for _, part := range parts {
		name := text[:strings.IndexByte(text, '/')+1]
		if *part, err = parseName(name); err != nil {
			return "", err
		}
		text = text[len(name):]
	}
	return text, nil
}

// Named is which named record a key is of.
func (p *Key) Named() NamedKey { return NamedKey{Tenant: p.Tenant, Kind: p.Kind, Name: p.Name} }

// ParsePlace reads what a key of an order has behind its queue, or that of a label behind it.
func (p *Key) ParsePlace(place []byte) error {
	if p.Family == FamilyLabels {
		if len(place) < queueBytes {
			return errUnknownKey
		}
		if p.Queue, place = binary.BigEndian.Uint32(place), place[queueBytes:]; p.Queue == 0 {
			return errUnknownKey
		}
		return p.parseID(place)
	}
	if p.Family == FamilyInProgress {
		return p.parseID(place)
	}
	if p.Family == FamilyLimited {
		rest, err := parseNames(string(place), &p.Name)
		if err != nil {
			return err
		}
		place = place[len(place)-len(rest):]
	}
	hasPriority := p.Family == FamilyPending || p.Family == FamilyLimited
	if hasPriority {
		if len(place) == 0 || place[0] > wire.MaxPriority {
			return errUnknownKey
		}
		p.Priority = wire.MaxPriority - int(place[0])
		place = place[1:]
	}
	if len(place) < 8+idBytes {
		return errUnknownKey
	}
	number := binary.BigEndian.Uint64(place)
	if hasPriority {
		p.Seq = number
	} else if p.AtMs = int64(number); p.AtMs < 0 {
		return errUnknownKey
	}
	place = place[8:]
	copy(p.ID[:], place)
	return p.parseMore(place)
}

// parseMore reads what is behind the first of the ids.
func (p *Key) parseMore(ids []byte) error {
	p.More = ""
	if len(ids) == idBytes {
		return nil
	}
	if p.Family != FamilyDone || len(ids)%idBytes != 0 || len(ids) > MaxTogether*idBytes {
		return errUnknownKey
	}
	for at := idBytes; at < len(ids); at += idBytes {
		if bytes.Compare(ids[at-idBytes:at], ids[at:at+idBytes]) >= 0 {
			return errUnknownKey
		}
	}
	p.More = string(ids[idBytes:])
	return nil
}

func (p *Key) parseID(raw []byte) error {
	if len(raw) != idBytes {
		return errUnknownKey
	}
	copy(p.ID[:], raw)
	return nil
}

// UpperBound is the first key behind all keys that begin with prefix, which is no
// 0xff alone.
func UpperBound(prefix []byte) []byte {
	bound := append([]byte(nil), prefix...)
	for i := len(bound) - 1; i >= 0; i-- {
		if bound[i] != 0xff {
			bound[i]++
			return bound[:i+1]
		}
	}
	panic(fmt.Sprintf("record: no key follows prefix %x", prefix))
}

const upperHex = "0123456789ABCDEF"

// appendName escapes every byte but letters, digits and ._:- as %XX and adds a
// closing slash.
func appendName(dst []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		if isPlain(c) {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
	}
	return append(dst, '/')
}

func isPlain(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '.' || c == '_' || c == ':' || c == '-'
}

// parseName reads an escaped name with its slash. A byte that is escaped without need
// is refused, so that one name has one spelling.
func parseName(text string) (string, error) {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '/' && i == len(text)-1:
			return string(out), nil
		case isPlain(c):
			out = append(out, c)
		case c == '%' && i+2 < len(text):
			high, low := strings.IndexByte(upperHex, text[i+1]), strings.IndexByte(upperHex, text[i+2])
			raw := byte(high<<4 | low)
			if high < 0 || low < 0 || isPlain(raw) {
				return "", errUnknownKey
			}
			out = append(out, raw)
			i += 2
		default:
			return "", errUnknownKey
		}
	}
	return "", errUnknownKey
}

// NameForLog says what a key is in words that may be logged: idempotency keys are
// secrets of their users. q is the queue that has the number in the key, if it is
// known.
func NameForLog(key []byte, q QueueKey) string {
	p, err := ParseKey(key)
	if err != nil {
		return fmt.Sprintf("unknown key of %d bytes", len(key))
	}
	words := p.Family.String()
	if !p.ID.IsZero() {
		words += " " + p.ID.String()
	}
	switch {
	case p.Family == FamilyNamed:
		words += fmt.Sprintf(" %q of kind %q of tenant %q", p.Name, p.Kind, p.Tenant)
	case p.Queue == 0:
	case q == QueueKey{}:
		words += fmt.Sprintf(" in queue number %d of shard %d", p.Queue, p.Shard)
	default:
		words += fmt.Sprintf(" in queue %q of tenant %q", q.Command, q.Tenant)
	}
	return words
}
