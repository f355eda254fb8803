package store

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
const (
	rootPrefix  = "codeq/"
	creationKey = rootPrefix + "meta/creation"

	spanPrefixBytes = len(rootPrefix) + 3
	idBytes         = len(wire.TaskID{})
)

// family is the kind of a key inside a span.
type family int

const (
	familyTask family = iota
	familyPayload
	familyResult
	familyHistory
	familyIdempotency
	familyPending
	familyInProgress
	familyDelayed
	familyExpiring
	familyDead
	familyDone
	familyCounters
	familyMarks
	familySettings
	familyBad
)

// idFamilies are the families whose key is a word and an id.
var idFamilies = [...]string{
	familyTask:    "tasks/",
	familyPayload: "payload/",
	familyResult:  "results/",
	familyHistory: "history/",
}

// queueFamilies are the orders below q/<command>/<tenant>/.
var queueFamilies = [...]string{
	familyPending:    "pending/",
	familyInProgress: "inprog/",
	familyDelayed:    "delayed/",
	familyExpiring:   "expiring/",
	familyDead:       "dlq/",
	familyDone:       "done/",
}

const (
	wordIdempotency = "idempo/"
	wordQueue       = "q/"
	wordCounters    = "stats/"
	wordSettings    = "settings/"
	wordMarks       = "meta/marks"
	wordBad         = "bad/"
)

// parsedKey is a key taken apart. Which fields are set depends on Family.
type parsedKey struct {
	Shard    int
	Family   family
	Queue    QueueKey
	Priority int
	Seq      uint64
	AtMs     int64
	ID       wire.TaskID
	// Name is the idempotency key, or what a bad key was inside its span.
	Name string
}

// appendSpan begins a key of the shard.
func appendSpan(dst []byte, shard int) []byte {
	if shard < 0 || shard >= MaxShards {
		panic(fmt.Sprintf("store: shard %d of at most %d", shard, MaxShards))
	}
	dst = append(dst, rootPrefix...)
	return append(dst, byte(shard>>8), byte(shard), '/')
}

// appendIDKey adds family and id behind a span prefix.
func appendIDKey(dst []byte, f family, id wire.TaskID) []byte {
	dst = append(dst, idFamilies[f]...)
	return append(dst, id[:]...)
}

// appendQueue adds a family of one queue behind a span prefix.
func appendQueue(dst []byte, q QueueKey, f family) []byte {
	dst = append(dst, wordQueue...)
	dst = appendNames(dst, q)
	return append(dst, queueFamilies[f]...)
}

// appendPriority adds all pending keys of one priority.
func appendPriority(dst []byte, q QueueKey, priority int) []byte {
	if priority < 0 || priority >= Priorities {
		panic(fmt.Sprintf("store: priority %d of %d", priority, Priorities))
	}
	dst = appendQueue(dst, q, familyPending)
	return append(dst, byte(wire.MaxPriority-priority))
}

func appendPendingKey(dst []byte, q QueueKey, priority int, k PendingKey) []byte {
	dst = appendPriority(dst, q, priority)
	dst = binary.BigEndian.AppendUint64(dst, k.Seq)
	return append(dst, k.ID[:]...)
}

func appendLeaseKey(dst []byte, q QueueKey, id wire.TaskID) []byte {
	dst = appendQueue(dst, q, familyInProgress)
	return append(dst, id[:]...)
}

// appendLeaseFloor adds the first key that a lease of an id of that rank can have.
func appendLeaseFloor(dst []byte, q QueueKey, floor uint64) []byte {
	return binary.BigEndian.AppendUint64(appendQueue(dst, q, familyInProgress), floor)
}

func appendTimedKey(dst []byte, q QueueKey, f family, k TimedKey) []byte {
	if k.AtMs < 0 {
		panic(fmt.Sprintf("store: time %d of task %v is before 1970", k.AtMs, k.ID))
	}
	dst = appendQueue(dst, q, f)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.AtMs))
	return append(dst, k.ID[:]...)
}

func appendSettingsKey(dst []byte, q QueueKey) []byte {
	dst = append(dst, wordSettings...)
	return appendNames(dst, q)
}

func appendCountersKey(dst []byte, q QueueKey) []byte {
	dst = append(dst, wordCounters...)
	return appendNames(dst, q)
}

// appendKeyPrefix adds what all idempotency keys of one queue share.
func appendKeyPrefix(dst []byte, q QueueKey) []byte {
	dst = append(dst, wordIdempotency...)
	return appendNames(dst, q)
}

func appendIdempotencyKey(dst []byte, q QueueKey, key string) []byte {
	return appendName(appendKeyPrefix(dst, q), key)
}

func appendNames(dst []byte, q QueueKey) []byte {
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

// upperBound is the first key behind all keys that begin with prefix. The
// prefixes of this package end in a slash or a small number, never in 0xff
// alone, so there always is one.
func upperBound(prefix []byte) []byte {
	bound := append([]byte(nil), prefix...)
	for i := len(bound) - 1; i >= 0; i-- {
		if bound[i] != 0xff {
			bound[i]++
			return bound[:i+1]
		}
	}
	panic(fmt.Sprintf("store: no key follows prefix %x", prefix))
}

var errUnknownKey = errors.New("not a key of this version")

// parseKey takes a key apart and accepts only what the append functions make.
func parseKey(key []byte) (parsedKey, error) {
	var p parsedKey
	if len(key) < spanPrefixBytes || string(key[:len(rootPrefix)]) != rootPrefix {
		return p, errUnknownKey
	}
	p.Shard = int(binary.BigEndian.Uint16(key[len(rootPrefix):]))
	if p.Shard >= MaxShards || key[spanPrefixBytes-1] != '/' {
		return p, errUnknownKey
	}
	rest := string(key[spanPrefixBytes:])
	for f, word := range idFamilies {
		if id, ok := cut(rest, word); ok {
			p.Family = family(f)
			return p, p.takeID(id)
		}
	}
	if rest == wordMarks {
		p.Family = familyMarks
		return p, nil
	}
	return p, p.parseNamed(rest)
}

// parseNamed takes the families apart that carry names.
func (p *parsedKey) parseNamed(rest string) error {
	if was, ok := cut(rest, wordBad); ok {
		p.Family, p.Name = familyBad, was
		return nil
	}
	if names, ok := cut(rest, wordCounters); ok {
		p.Family = familyCounters
		return p.takeEnd(p.takeQueue(names))
	}
	if names, ok := cut(rest, wordSettings); ok {
		p.Family = familySettings
		return p.takeEnd(p.takeQueue(names))
	}
	if names, ok := cut(rest, wordIdempotency); ok {
		p.Family = familyIdempotency
		names, err := p.takeQueue(names)
		if err != nil {
			return err
		}
		p.Name, names, err = takeName(names)
		return p.takeEnd(names, err)
	}
	names, ok := cut(rest, wordQueue)
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
func (p *parsedKey) parseOrder(entry string) error {
	for f := familyPending; f <= familyDone; f++ {
		place, ok := cut(entry, queueFamilies[f])
		if !ok {
			continue
		}
		p.Family = f
		return p.parsePlace(place)
	}
	return errUnknownKey
}

func (p *parsedKey) parsePlace(place string) error {
	if p.Family == familyInProgress {
		return p.takeID(place)
	}
	if p.Family == familyPending {
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
	if p.Family == familyPending {
		p.Seq = number
	} else if p.AtMs = int64(number); p.AtMs < 0 {
		return errUnknownKey
	}
	return p.takeID(place[8:])
}

func (p *parsedKey) takeID(raw string) error {
	if len(raw) != idBytes {
		return errUnknownKey
	}
	copy(p.ID[:], raw)
	return nil
}

func (p *parsedKey) takeQueue(names string) (rest string, err error) {
	if p.Queue.Command, names, err = takeName(names); err != nil {
		return "", err
	}
	p.Queue.Tenant, names, err = takeName(names)
	return names, err
}

// takeEnd checks that nothing is left.
func (p *parsedKey) takeEnd(rest string, err error) error {
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

// familyWords name the families for people.
var familyWords = [...]string{
	familyTask:        "record of task",
	familyPayload:     "payload of task",
	familyResult:      "result of task",
	familyHistory:     "history of task",
	familyIdempotency: "idempotency key",
	familyPending:     "pending entry of task",
	familyInProgress:  "lease of task",
	familyDelayed:     "delayed entry of task",
	familyExpiring:    "expiring entry of task",
	familyDead:        "dead-letter entry of task",
	familyDone:        "ended entry of task",
	familyCounters:    "counters",
	familyMarks:       "marks",
	familySettings:    "settings",
	familyBad:         "set-aside value",
}

// nameForLog says what a key is in words that may be logged: idempotency
// keys are secrets of their users.
func nameForLog(key []byte) string {
	p, err := parseKey(key)
	if err != nil {
		return fmt.Sprintf("unknown key of %d bytes", len(key))
	}
	words := familyWords[p.Family]
	if !p.ID.IsZero() {
		words += " " + p.ID.String()
	}
	if p.Queue != (QueueKey{}) {
		words += fmt.Sprintf(" in queue %q of tenant %q", p.Queue.Command, p.Queue.Tenant)
	}
	return words
}
