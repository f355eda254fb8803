package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"codeq/wire"
)

// The keyspace. A span begins with "codeq/", two bytes of the shard number
// and "/". Families with an id hold its 16 raw bytes; every name is escaped
// and followed by "/", so that no two names can ever be equal or cut one
// another short; numbers are eight bytes, big end first, so that keys sort as
// the numbers do.
//
//	tasks/<id>  payload/<id>  results/<id>  history/<id>
//	idempo/<command>/<tenant>/<key>/
//	q/<command>/<tenant>/pending/<9-priority><seq><id>
//	q/<command>/<tenant>/inprog/<id>
//	q/<command>/<tenant>/delayed/<due><id>    expiring/<expires><id>
//	q/<command>/<tenant>/dlq/<ended><id>      done/<ended><id>
//	stats/<command>/<tenant>/
//	settings/<command>/<tenant>/
//	meta/marks
//	bad/<what the key was>
//
// A small payload or result has no key: it stands within tasks/<id>.
//
// Outside every span there is one key, codeq/meta/creation; "me" read as a
// shard number is far beyond the last shard.
// MaxShards is the most shards that a data directory can be made with.
const MaxShards = 32

// CreationKey is the one key outside the spans.
const (
	rootPrefix  = "codeq/"
	CreationKey = rootPrefix + "meta/creation"

	spanPrefixBytes = len(rootPrefix) + 3
	idBytes         = len(wire.TaskID{})
)

// Family is the kind of a key inside a span.
type Family int

// The families.
const (
	FamilyTask Family = iota
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
	FamilyMarks
	FamilySettings
	FamilyBad
)

// IDFamilies are the families whose key is a word and an id.
var IDFamilies = [...]string{
	FamilyTask:    "tasks/",
	FamilyPayload: "payload/",
	FamilyResult:  "results/",
	FamilyHistory: "history/",
}

// queueFamilies are the orders below q/<command>/<tenant>/.
var queueFamilies = [...]string{
	FamilyPending:    "pending/",
	FamilyInProgress: "inprog/",
	FamilyDelayed:    "delayed/",
	FamilyExpiring:   "expiring/",
	FamilyDead:       "dlq/",
	FamilyDone:       "done/",
}

// The words that families begin with.
const (
	wordIdempotency = "idempo/"
	WordQueue       = "q/"
	WordCounters    = "stats/"
	WordSettings    = "settings/"
	WordMarks       = "meta/marks"
	WordBad         = "bad/"
)

// Key is a key taken apart. Which fields are set depends on Family.
type Key struct {
	Shard    int
	Family   Family
	Queue    QueueKey
	Priority int
	Seq      uint64
	AtMs     int64
	ID       wire.TaskID
	// Name is the idempotency key, or what a bad key was inside its span.
	Name string
}

// AppendSpan begins a key of the shard.
func AppendSpan(dst []byte, shard int) []byte {
	if shard < 0 || shard >= MaxShards {
		panic(fmt.Sprintf("record: shard %d of at most %d", shard, MaxShards))
	}
	dst = append(dst, rootPrefix...)
	return append(dst, byte(shard>>8), byte(shard), '/')
}

// AppendIDKey adds family and id behind a span prefix.
func AppendIDKey(dst []byte, f Family, id wire.TaskID) []byte {
	dst = append(dst, IDFamilies[f]...)
	return append(dst, id[:]...)
}

// AppendQueue adds a family of one queue behind a span prefix.
func AppendQueue(dst []byte, q QueueKey, f Family) []byte {
	dst = append(dst, WordQueue...)
	dst = AppendNames(dst, q)
	return append(dst, queueFamilies[f]...)
}

// AppendPriority adds all pending keys of one priority.
func AppendPriority(dst []byte, q QueueKey, priority int) []byte {
	if priority < 0 || priority >= Priorities {
		panic(fmt.Sprintf("record: priority %d of %d", priority, Priorities))
	}
	dst = AppendQueue(dst, q, FamilyPending)
	return append(dst, byte(wire.MaxPriority-priority))
}

// AppendPendingKey adds the key of a ready task.
func AppendPendingKey(dst []byte, q QueueKey, priority int, k PendingKey) []byte {
	dst = AppendPriority(dst, q, priority)
	dst = binary.BigEndian.AppendUint64(dst, k.Seq)
	return append(dst, k.ID[:]...)
}

// AppendLeaseKey adds the key of a task in progress.
func AppendLeaseKey(dst []byte, q QueueKey, id wire.TaskID) []byte {
	dst = AppendQueue(dst, q, FamilyInProgress)
	return append(dst, id[:]...)
}

// AppendLeaseFloor adds the first key that a lease of an id of that rank can have.
func AppendLeaseFloor(dst []byte, q QueueKey, floor uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendQueue(dst, q, FamilyInProgress), floor)
}

// AppendTimedKey adds the key of an entry in an order by time, which begins in 1970.
func AppendTimedKey(dst []byte, q QueueKey, f Family, k TimedKey) []byte {
	if k.AtMs < 0 {
		panic(fmt.Sprintf("record: time %d of task %v is before 1970", k.AtMs, k.ID))
	}
	dst = AppendQueue(dst, q, f)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.AtMs))
	return append(dst, k.ID[:]...)
}

// AppendSettingsKey adds the key of the settings of a queue.
func AppendSettingsKey(dst []byte, q QueueKey) []byte {
	dst = append(dst, WordSettings...)
	return AppendNames(dst, q)
}

// AppendCountersKey adds the key of the counters of a queue.
func AppendCountersKey(dst []byte, q QueueKey) []byte {
	dst = append(dst, WordCounters...)
	return AppendNames(dst, q)
}

// AppendIdempotencyPrefix adds what all idempotency keys of one queue share.
func AppendIdempotencyPrefix(dst []byte, q QueueKey) []byte {
	dst = append(dst, wordIdempotency...)
	return AppendNames(dst, q)
}

// AppendIdempotencyKey adds one idempotency key of a queue.
func AppendIdempotencyKey(dst []byte, q QueueKey, key string) []byte {
	return appendName(AppendIdempotencyPrefix(dst, q), key)
}

// AppendNames adds the names of a queue, escaped.
func AppendNames(dst []byte, q QueueKey) []byte {
	return appendName(appendName(dst, q.Command), q.Tenant)
}

const upperHex = "0123456789ABCDEF"

// appendName escapes every byte but letters, digits and ._:- as %XX and adds
// the closing slash.
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

// UpperBound is the first key behind all keys that begin with prefix. The
// prefixes of this package end in a slash or a small number, never in 0xff
// alone, so there always is one.
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

// AppendTo adds the key that ParseKey takes apart like that.
func (p *Key) AppendTo(dst []byte) []byte {
	key := AppendSpan(dst, p.Shard)
	switch p.Family {
	case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory:
		return AppendIDKey(key, p.Family, p.ID)
	case FamilyIdempotency:
		return AppendIdempotencyKey(key, p.Queue, p.Name)
	case FamilyPending:
		return AppendPendingKey(key, p.Queue, p.Priority, PendingKey{Seq: p.Seq, ID: p.ID})
	case FamilyInProgress:
		return AppendLeaseKey(key, p.Queue, p.ID)
	case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
		return AppendTimedKey(key, p.Queue, p.Family, TimedKey{AtMs: p.AtMs, ID: p.ID})
	case FamilyCounters:
		return AppendCountersKey(key, p.Queue)
	case FamilySettings:
		return AppendSettingsKey(key, p.Queue)
	case FamilyMarks:
		return append(key, WordMarks...)
	}
	return append(append(key, WordBad...), p.Name...)
}

var errUnknownKey = errors.New("not a key of this version")

// ParseKey takes a key apart and accepts only what the append functions make.
func ParseKey(key []byte) (Key, error) {
	var p Key
	if len(key) < spanPrefixBytes || string(key[:len(rootPrefix)]) != rootPrefix {
		return p, errUnknownKey
	}
	p.Shard = int(binary.BigEndian.Uint16(key[len(rootPrefix):]))
	if p.Shard >= MaxShards || key[spanPrefixBytes-1] != '/' {
		return p, errUnknownKey
	}
	rest := string(key[spanPrefixBytes:])
	for f, word := range IDFamilies {
		if id, ok := cut(rest, word); ok {
			p.Family = Family(f)
			return p, p.takeID(id)
		}
	}
	if rest == WordMarks {
		p.Family = FamilyMarks
		return p, nil
	}
	return p, p.parseNamed(rest)
}

// parseNamed takes the families apart that carry names.
func (p *Key) parseNamed(rest string) error {
	if was, ok := cut(rest, WordBad); ok {
		p.Family, p.Name = FamilyBad, was
		return nil
	}
	if names, ok := cut(rest, WordCounters); ok {
		p.Family = FamilyCounters
		return p.takeEnd(p.takeQueue(names))
	}
	if names, ok := cut(rest, WordSettings); ok {
		p.Family = FamilySettings
		return p.takeEnd(p.takeQueue(names))
	}
	if names, ok := cut(rest, wordIdempotency); ok {
		p.Family = FamilyIdempotency
		names, err := p.takeQueue(names)
		if err != nil {
			return err
		}
		p.Name, names, err = takeName(names)
		return p.takeEnd(names, err)
	}
	names, ok := cut(rest, WordQueue)
	if !ok {
		return errUnknownKey
	}
	entry, err := p.takeQueue(names)
	if err != nil {
		return err
	}
	return p.parseOrder(entry)
}

// parseOrder takes an entry of one of the orders of a queue apart.
func (p *Key) parseOrder(entry string) error {
	for f := FamilyPending; f <= FamilyDone; f++ {
		place, ok := cut(entry, queueFamilies[f])
		if !ok {
			continue
		}
		p.Family = f
		return p.ParsePlace(place)
	}
	return errUnknownKey
}

// ParsePlace reads what a key of an order has behind its family.
func (p *Key) ParsePlace(place string) error {
	if p.Family == FamilyInProgress {
		return p.takeID(place)
	}
	if p.Family == FamilyPending {
		if place == "" || place[0] > wire.MaxPriority {
			return errUnknownKey
		}
		p.Priority = wire.MaxPriority - int(place[0])
		place = place[1:]
	}
	if len(place) != 8+idBytes {
		return errUnknownKey
	}
	number := binary.BigEndian.Uint64([]byte(place[:8]))
	if p.Family == FamilyPending {
		p.Seq = number
	} else if p.AtMs = int64(number); p.AtMs < 0 {
		return errUnknownKey
	}
	return p.takeID(place[8:])
}

func (p *Key) takeID(raw string) error {
	if len(raw) != idBytes {
		return errUnknownKey
	}
	copy(p.ID[:], raw)
	return nil
}

func (p *Key) takeQueue(names string) (rest string, err error) {
	if p.Queue.Command, names, err = takeName(names); err != nil {
		return "", err
	}
	p.Queue.Tenant, names, err = takeName(names)
	return names, err
}

// takeEnd checks that nothing is left.
func (p *Key) takeEnd(rest string, err error) error {
	if err == nil && rest != "" {
		return errUnknownKey
	}
	return err
}

// takeName reads one escaped name with its slash. A byte that is escaped
// without need is refused, so that one name has one spelling.
func takeName(names string) (name, rest string, err error) {
	var out []byte
	for i := 0; i < len(names); i++ {
		c := names[i]
		switch {
		case c == '/':
			return string(out), names[i+1:], nil
		case isPlain(c):
			out = append(out, c)
		case c == '%' && i+2 < len(names):
			raw, ok := unescape(names[i+1], names[i+2])
			if !ok || isPlain(raw) {
				return "", "", errUnknownKey
			}
			out = append(out, raw)
			i += 2
		default:
			return "", "", errUnknownKey
		}
	}
	return "", "", errUnknownKey
}

func unescape(high, low byte) (byte, bool) {
	h, okHigh := upperDigit(high)
	l, okLow := upperDigit(low)
	return h<<4 | l, okHigh && okLow
}

func upperDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func cut(text, word string) (rest string, ok bool) {
	if len(text) < len(word) || text[:len(word)] != word {
		return "", false
	}
	return text[len(word):], true
}

// FamilyWords name the families for people.
var FamilyWords = [...]string{
	FamilyTask:        "record of task",
	FamilyPayload:     "payload of task",
	FamilyResult:      "result of task",
	FamilyHistory:     "history of task",
	FamilyIdempotency: "idempotency key",
	FamilyPending:     "pending entry of task",
	FamilyInProgress:  "lease of task",
	FamilyDelayed:     "delayed entry of task",
	FamilyExpiring:    "expiring entry of task",
	FamilyDead:        "dead-letter entry of task",
	FamilyDone:        "ended entry of task",
	FamilyCounters:    "counters",
	FamilyMarks:       "marks",
	FamilySettings:    "settings",
	FamilyBad:         "set-aside value",
}

// NameForLog says what a key is in words that may be logged: idempotency
// keys are secrets of their users.
func NameForLog(key []byte) string {
	p, err := ParseKey(key)
	if err != nil {
		return fmt.Sprintf("unknown key of %d bytes", len(key))
	}
	words := FamilyWords[p.Family]
	if !p.ID.IsZero() {
		words += " " + p.ID.String()
	}
	if p.Queue != (QueueKey{}) {
		words += fmt.Sprintf(" in queue %q of tenant %q", p.Queue.Command, p.Queue.Tenant)
	}
	return words
}
