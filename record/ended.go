package record

import (
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
	// HasKey says that the task has an idempotency key, Labelled that it has labels, HasFiles that
	// files were uploaded for it.
	HasKey   bool
	Labelled bool
	HasFiles bool
	Absent
}

// Absent are the keys of a task that were never made: to delete them would only write
// tombstones.
type Absent struct {
	History bool
	// Payload says it of payload and result, which are within the record.
	Payload bool
}

// EndedEntry is an entry of the order of ended tasks.
type EndedEntry struct {
	TimedKey
	Ended
}

// What an entry says but for the deliveries is one number: the status, the cause of
// a dead letter, and a bit for each part that is there or was never made.
const (
	endedCauseShift   = 2
	endedKeyBit       = 0x10
	endedNoHistoryBit = 0x20
	endedNoPayloadBit = 0x40
	endedLabelledBit  = 0x80
	endedFilesBit     = 0x100
	endedKnownBits    = 0x1ff
)

var endedStatuses = [...]wire.Status{1: wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled}

// AppendEnded adds the value of the entry of an ended task; nothing for the zero
// value.
func AppendEnded(dst []byte, e Ended) []byte {
	if e == (Ended{}) {
		return dst
	}
	what := uint64(numberOf(e.Status, endedStatuses[:])) | uint64(e.Cause)<<endedCauseShift |
		bit(e.HasKey, endedKeyBit) | bit(e.Labelled, endedLabelledBit) | bit(e.HasFiles, endedFilesBit) |
		bit(e.Absent.History, endedNoHistoryBit) | bit(e.Absent.Payload, endedNoPayloadBit)
	f := form{out: dst}
	e.fields(&f, &what)
	return f.out
}

func bit(is bool, value uint64) uint64 {
	if is {
		return value
	}
	return 0
}

func (e *Ended) fields(f *form, what *uint64) {
	number(f, 1, "", what)
	number(f, 2, "", &e.Deliveries)
}

// ParseEnded reads what AppendEnded wrote. What a newer program has added is left
// out: entries are never written again.
func ParseEnded(data []byte) (e Ended, err error) {
	var what uint64
	f := read(string(data))
	e.fields(&f, &what)
	status := what & 3
	e.Cause = wire.DeadCause(what >> endedCauseShift & 3)
	if _, err = f.end(); err != nil || status == 0 || e.Cause >= wire.DeadKinds || what > endedKnownBits || e.Deliveries < 0 {
		return Ended{}, ErrDamaged
	}
	e.Status = endedStatuses[status]
	e.HasKey, e.Labelled, e.HasFiles = what&endedKeyBit != 0, what&endedLabelledBit != 0, what&endedFilesBit != 0
	e.Absent = Absent{History: what&endedNoHistoryBit != 0, Payload: what&endedNoPayloadBit != 0}
	return e, nil
}

// String is what the entry says, for people.
func (e Ended) String() string {
	text := fmt.Sprintf("%s deliveries %d", e.Status, e.Deliveries)
	if e.Cause != 0 {
		text += " " + e.Cause.String()
	}
	if e.HasKey {
		text += " keyed"
	}
	if e.Absent.History {
		text += " bare"
	}
	if e.Absent.Payload {
		text += " whole"
	}
	if e.Labelled {
		text += " labelled"
	}
	if e.HasFiles {
		text += " files"
	}
	return text
}
