package record

import (
	"encoding/binary"
	"fmt"

	"codeq/wire"
)

// Ended is what the entry of an ended task says of it, so that most tasks can be
// removed without being read. Its zero value says nothing: the record does.
type Ended struct {
	Status     wire.Status
	Deliveries int
	// Cause is that of a dead letter.
	Cause wire.DeadCause
	// Keyed tasks have an idempotency key, Bare ones never had a history, and of
	// Whole ones payload and result are within the record.
	Keyed bool
	Bare  bool
	Whole bool
}

// EndedEntry is an entry of the order of ended tasks.
type EndedEntry struct {
	TimedKey
	Ended
}

// The value of an ended entry, a dead letter or not, is one byte and the number of
// deliveries. The byte has a number for the status, one for the cause, and the bits
// of what there is.
const (
	endedStatusBits = 0x03
	endedCauseBits  = 0x0c
	endedCauseShift = 2
	endedKeyedBit   = 0x10
	endedBareBit    = 0x20
	endedWholeBit   = 0x40
	endedKnownBits  = endedStatusBits | endedCauseBits | endedKeyedBit | endedBareBit | endedWholeBit
)

var endedStatuses = [...]wire.Status{1: wire.StatusCompleted, 2: wire.StatusFailed, 3: wire.StatusCancelled}

// AppendEnded adds the value of the entry of an ended task; nothing for the zero value.
func AppendEnded(dst []byte, e Ended) []byte {
	var first byte
	for number, status := range endedStatuses {
		if status == e.Status {
			first = byte(number)
		}
	}
	if first == 0 {
		return dst
	}
	first |= byte(e.Cause) << endedCauseShift
	if e.Keyed {
		first |= endedKeyedBit
	}
	if e.Bare {
		first |= endedBareBit
	}
	if e.Whole {
		first |= endedWholeBit
	}
	return binary.AppendUvarint(append(dst, first), uint64(e.Deliveries))
}

// ParseEnded reads what AppendEnded wrote.
func ParseEnded(data []byte) (e Ended, err error) {
	if len(data) == 0 {
		return e, ErrDamaged
	}
	first := data[0]
	number := int(first & endedStatusBits)
	cause := wire.DeadCause(first & endedCauseBits >> endedCauseShift)
	deliveries, size := binary.Uvarint(data[1:])
	if number == 0 || number >= len(endedStatuses) || cause >= wire.DeadKinds || first&^endedKnownBits != 0 ||
		size <= 0 || size != len(data)-1 || int64(deliveries) < 0 {
		return e, ErrDamaged
	}
	return Ended{
		Status: endedStatuses[number], Deliveries: int(deliveries), Cause: cause,
		Keyed: first&endedKeyedBit != 0, Bare: first&endedBareBit != 0, Whole: first&endedWholeBit != 0,
	}, nil
}

// describeEnded tells it in words.
func describeEnded(value []byte) string {
	e, err := ParseEnded(value)
	if err != nil {
		return fmt.Sprintf("%q", value)
	}
	text := fmt.Sprintf("%s deliveries %d", e.Status, e.Deliveries)
	if e.Cause != 0 {
		text += " " + e.Cause.String()
	}
	if e.Keyed {
		text += " keyed"
	}
	if e.Bare {
		text += " bare"
	}
	if e.Whole {
		text += " whole"
	}
	return text
}
