package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"

	"codeq/record"
)

// The kinds of entries. The first byte of an entry is its kind.
const (
	// kindOpen opens the time of a leader; its index is the epoch.
	kindOpen = 1
	// kindBatches holds batches of shards, kindPacked such batches as one block of S2.
	kindBatches = 2
	kindPacked  = 3
)

// The forms of entries, oldest first: what a program reads of a log. One that is added here is
// written once all nodes have announced it.
const (
	// formPlain is that of 0.1.0: kindOpen and kindBatches.
	formPlain = 1
	// formPacked adds kindPacked.
	formPacked = 2
	// NewestForm is what this program announces.
	NewestForm = formPacked
)

// An entry is: kind (1 byte), a sum of what follows (4), epoch (8), the leader's time (8), an
// index up to which it had applied (8) and its digest there (8); then of each batch the shard
// and the number and the length as varints, and the bytes.
const entryHeadBytes = 1 + 4 + 8 + 8 + 8 + 8

// packFromBytes is how large the batches of an entry are at least that is packed.
const packFromBytes = 4 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is what an entry says before its batches.
type head struct {
	kind  byte
	epoch uint64
	// nowMs is the time of the leader, in Unix milliseconds.
	nowMs int64
	// checked is an index, and digest that of the database of the leader there.
	checked uint64
	digest  uint64
}

// part is one batch of an entry.
type part struct {
	shard  int
	number uint64
	bytes  []byte
}

// errDamaged is an entry whose bytes are not those that its leader wrote.
var errDamaged = errors.New("the entry is damaged")

// makeEntry makes an entry that programs read which read a form.
func makeEntry(h *head, parts []*waiting, form int) []byte {
	size := entryHeadBytes
	for _, p := range parts {
		size += len(p.bytes) + 3*binary.MaxVarintLen64
	}
	b := make([]byte, 0, size)
	b = append(b, h.kind, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, h.epoch)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.nowMs))
	b = binary.LittleEndian.AppendUint64(b, h.checked)
	b = binary.LittleEndian.AppendUint64(b, h.digest)
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(p.shard))
		b = binary.AppendUvarint(b, p.number)
		b = binary.AppendUvarint(b, uint64(len(p.bytes)))
		b = append(b, p.bytes...)
	}
	if batches := b[entryHeadBytes:]; form >= formPacked && len(batches) >= packFromBytes {
		packed := make([]byte, entryHeadBytes+s2.MaxEncodedLen(len(batches)))
		n := len(s2.Encode(packed[entryHeadBytes:], batches))
		if n < len(batches) {
			copy(packed, b[:entryHeadBytes])
			packed[0] = kindPacked
			b = packed[:entryHeadBytes+n]
		}
	}
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[5:], castagnoli))
	return b
}

// entry is an entry of batches of this node as the leader. Any goroutine.
func (m *machine) entry(epoch uint64, nowMs int64, parts []*waiting) []byte {
	at := m.latest.Load()
	return makeEntry(&head{kind: kindBatches, epoch: epoch, nowMs: nowMs, checked: at.index, digest: at.digest}, parts, m.form())
}

// form is the newest form that all nodes read: those that apply what is in the log already, and
// else what they have announced. Any goroutine.
func (m *machine) form() int {
	has := int(m.has.Load())
	if has == NewestForm || m.announced == nil {
		return NewestForm
	}
	return max(has, m.announced())
}

// opening is the entry that opens an epoch of this node. Any goroutine.
func (m *machine) opening() []byte {
	at := m.latest.Load()
	return makeEntry(&head{kind: kindOpen, nowMs: at.nowMs, checked: at.index, digest: at.digest}, nil, formPlain)
}

// parseEntry takes an entry apart. The batches may be within data.
func parseEntry(data []byte) (h head, parts []part, err error) {
	if len(data) < entryHeadBytes || crc32.Checksum(data[5:], castagnoli) != binary.LittleEndian.Uint32(data[1:]) {
		return h, nil, errDamaged
	}
	h = head{
		kind: data[0], epoch: binary.LittleEndian.Uint64(data[5:]), nowMs: int64(binary.LittleEndian.Uint64(data[13:])),
		checked: binary.LittleEndian.Uint64(data[21:]), digest: binary.LittleEndian.Uint64(data[29:]),
	}
	rest := data[entryHeadBytes:]
	switch h.kind {
	case kindOpen, kindBatches:
	case kindPacked:
		if rest, err = s2.Decode(nil, rest); err != nil {
			return h, nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
	default:
		return h, nil, fmt.Errorf("an entry of kind %d, which this program does not know: a newer one wrote it", h.kind)
	}
	for len(rest) > 0 {
		var p part
		if p, rest, err = parsePart(rest); err != nil {
			return h, nil, err
		}
		parts = append(parts, p)
	}
	return h, parts, nil
}

func parsePart(rest []byte) (p part, after []byte, err error) {
	var values [3]uint64
	for i := range values {
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return p, nil, errDamaged
		}
		values[i], rest = value, rest[n:]
	}
	if values[0] >= record.MaxShards || values[2] > uint64(len(rest)) {
		return p, nil, errDamaged
	}
	p = part{shard: int(values[0]), number: values[1], bytes: rest[:values[2]]}
	return p, rest[values[2]:], nil
}

// position is up to where of the log a database is. It is written with each entry.
type position struct {
	// index is that of the last entry, epoch that of its leader.
	index, epoch uint64
	// nowMs is the latest time of a leader, in Unix milliseconds.
	nowMs int64
	// digest is of all entries since the database was made.
	digest uint64
	// numbers are those of the last batch of each shard in this epoch.
	numbers [record.MaxShards]uint64
}

const positionVersion = 1

func (p *position) append(b []byte) []byte {
	b = append(b, positionVersion)
	b = binary.LittleEndian.AppendUint64(b, p.index)
	b = binary.LittleEndian.AppendUint64(b, p.epoch)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.nowMs))
	b = binary.LittleEndian.AppendUint64(b, p.digest)
	for _, n := range p.numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func parsePosition(b []byte) (p position, err error) {
	if len(b) == 0 {
		return p, nil // of a database that is empty yet
	}
	if len(b) < 33 || b[0] != positionVersion {
		return p, fmt.Errorf("the position in the log is damaged (%d bytes)", len(b))
	}
	p = position{
		index: binary.LittleEndian.Uint64(b[1:]), epoch: binary.LittleEndian.Uint64(b[9:]),
		nowMs: int64(binary.LittleEndian.Uint64(b[17:])), digest: binary.LittleEndian.Uint64(b[25:]),
	}
	b = b[33:]
	for i := range p.numbers {
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return p, errors.New("the position in the log is damaged: numbers of batches are missing")
		}
		p.numbers[i], b = value, b[n:]
	}
	return p, nil
}
