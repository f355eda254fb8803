package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/uuid"
)

// TaskID is the id of a task, never given twice. Its text is the canonical 36-byte
// lower-case UUID; any other spelling names no task.
type TaskID [16]byte

// SessionID is the id of one session of a worker or producer, with the text form of TaskID.
type SessionID [16]byte

// Token names one delivery: 128 bits drawn when the task is granted, so that
// nobody but its worker can end it. Its text is 32 lower-case hexadecimal digits. The zero Token names
// no delivery.
type Token [16]byte

const (
	idTextBytes    = 36
	tokenTextBytes = 2 * len(Token{})
	upperHex       = "ABCDEF"
)

// NewUUIDv7 lays out a version 7 UUID from a time in Unix milliseconds and ten
// random bytes. Time and chance are arguments, so the caller decides both
// (google/uuid keeps a process-wide last time, which a test clock cannot
// reach).
func NewUUIDv7(unixMs int64, random [10]byte) [16]byte {
	var id [16]byte
	for i := range 6 {
		id[i] = byte(unixMs >> (40 - 8*i))
	}
	copy(id[6:], random[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseTaskID reads the canonical text and reports whether text is one.
func ParseTaskID(text string) (TaskID, bool) {
	id, ok := parseCanonical(text)
	return TaskID(id), ok
}

// ParseSessionID reads the canonical text and reports whether text is one.
func ParseSessionID(text string) (SessionID, bool) {
	id, ok := parseCanonical(text)
	return SessionID(id), ok
}

func parseCanonical(text string) (uuid.UUID, bool) {
	if len(text) != idTextBytes || strings.ContainsAny(text, upperHex) {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// AppendTo appends the canonical text.
func (id TaskID) AppendTo(dst []byte) []byte { return appendUUID(dst, id) }

// String is the canonical text.
func (id TaskID) String() string { return string(appendUUID(nil, id)) }

// IsZero reports the id that names no task.
func (id TaskID) IsZero() bool { return id == TaskID{} }

// MarshalText implements encoding.TextMarshaler.
func (id TaskID) MarshalText() ([]byte, error) { return id.AppendTo(nil), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *TaskID) UnmarshalText(text []byte) error { return unmarshalID(id, text, ParseTaskID) }

// AppendTo appends the canonical text.
func (id SessionID) AppendTo(dst []byte) []byte { return appendUUID(dst, id) }

// String is the canonical text.
func (id SessionID) String() string { return string(appendUUID(nil, id)) }

// IsZero reports the id that names no session.
func (id SessionID) IsZero() bool { return id == SessionID{} }

// MarshalText implements encoding.TextMarshaler.
func (id SessionID) MarshalText() ([]byte, error) { return id.AppendTo(nil), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *SessionID) UnmarshalText(text []byte) error { return unmarshalID(id, text, ParseSessionID) }

func unmarshalID[ID any](id *ID, text []byte, parse func(string) (ID, bool)) error {
	read, ok := parse(string(text))
	if !ok {
		return errors.New("an id must be a UUID of 36 characters in lower case")
	}
	*id = read
	return nil
}

func appendUUID(dst []byte, id [16]byte) []byte {
	dst = hex.AppendEncode(dst, id[0:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:16]} {
		dst = append(dst, '-')
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// ParseToken reads 32 lower-case hexadecimal digits and reports whether text is that.
func ParseToken(text string) (Token, bool) {
	var t Token
	if len(text) != tokenTextBytes || strings.ContainsAny(text, upperHex) {
		return t, false
	}
	_, err := hex.Decode(t[:], []byte(text))
	return t, err == nil
}

// AppendTo appends the text form.
func (t Token) AppendTo(dst []byte) []byte { return hex.AppendEncode(dst, t[:]) }

// String is the text form.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// IsZero reports the token that names no delivery.
func (t Token) IsZero() bool { return t == Token{} }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// ShardOfTask is the shard that owns a task: FNV-1a-64 over the canonical text of the id,
// modulo the number of shards. Data on disk depends on it, so it never changes.
func ShardOfTask(id TaskID, shards int) int {
	var text [idTextBytes]byte
	return int(fnv1a(fnvOffset, appendUUID(text[:0], id)) % uint64(shards))
}

// NewTaskID is the id of a new task: NewUUIDv7 with the last byte 0, which is the
// number of the cell that has the task. There is one cell so far, and nothing reads it.
func NewTaskID(unixMs int64, random [10]byte) TaskID {
	id := TaskID(NewUUIDv7(unixMs, random))
	id[len(id)-1] = 0
	return id
}

// MovedTo is the id with two other bytes before its last, so that ShardOfTask is the
// given shard. It counts them up from what they are: one of as many ids as there are
// shards will do, so that it hashes the last six digits about as often.
func (id TaskID) MovedTo(shard, shards int) TaskID {
	var text [idTextBytes]byte
	appendUUID(text[:0], id)
	front, digits := fnv1a(fnvOffset, text[:idTextBytes-6]), text[idTextBytes-6:]
	for fnv1a(front, digits)%uint64(shards) != uint64(shard) {
		binary.BigEndian.PutUint16(id[13:], binary.BigEndian.Uint16(id[13:])+1)
		hex.Encode(digits, id[13:])
	}
	return id
}

// ShardOfQueue is the home of a queue: the shard that decides its settings and
// has all its tasks or, of a queue that is spread, those with an idempotency key.
// FNV-1a-64 over tenant and command joined by a zero byte. It decides where bytes
// lie on disk and can never change.
func ShardOfQueue(tenant, command string, shards int) int {
	h := fnv1a(fnvOffset, []byte(tenant))
	h = fnv1a(h, []byte{0})
	h = fnv1a(h, []byte(command))
	return int(h % uint64(shards))
}

// ShardOfTenant is the home of a tenant: the shard that decides its named records.
// FNV-1a-64 over the tenant. It can never change either.
func ShardOfTenant(tenant string, shards int) int {
	return int(fnv1a(fnvOffset, []byte(tenant)) % uint64(shards))
}

func fnv1a(h uint64, data []byte) uint64 {
	for _, b := range data {
		h ^= uint64(b)
		h *= fnvPrime
	}
	return h
}
