package record

import (
	"encoding/hex"

	"codeq/wire"
)

// A task record is a JSON object, behind which its payload and its result stand
// if they are small; a lease is an object alone. A member that is absent is zero,
// one that this version does not know is ignored, and members are only ever
// added. So a newer server reads the files of an older one; an older one does not
// find a payload or an outcome that stands behind its record. What the key
// says is not said again, and names are as short as they can be: a record is
// written twice in the life of a task, to the log and to tables, and half of it
// was names. names.go tells them for whoever reads.

// AppendTask adds the value of a task.
func AppendTask(dst []byte, r *Task) []byte {
	dst = append(dst, '{')
	start := len(dst)
	dst = appendStringMember(dst, `,"c":`, r.Command)
	dst = appendStringMember(dst, `,"t":`, r.Tenant)
	dst = appendIntMember(dst, `,"p":`, int64(r.Priority))
	dst = appendStringMember(dst, `,"s":`, string(r.Status))
	dst = appendStringMember(dst, `,"l":`, string(r.Location))
	dst = appendIntMember(dst, `,"a":`, int64(r.Attempts))
	dst = appendIntMember(dst, `,"m":`, int64(r.MaxAttempts))
	dst = appendIntMember(dst, `,"b":`, int64(r.PayloadBytes))
	dst = appendIntMember(dst, `,"ct":`, r.CreatedAtMs)
	dst = appendIntMember(dst, `,"ut":`, r.UpdatedAtMs)
	dst = appendUintMember(dst, `,"q":`, r.Seq)
	dst = appendIntMember(dst, `,"dt":`, r.DueAtMs)
	dst = appendIntMember(dst, `,"et":`, r.EndedAtMs)
	dst = appendIntMember(dst, `,"xt":`, r.ExpiresAtMs)
	dst = appendTrueMember(dst, `,"xd":`, r.Expired)
	dst = appendIntMember(dst, `,"rt":`, r.TimeoutSeconds)
	dst = appendIntMember(dst, `,"d":`, int64(r.Deliveries))
	dst = appendTokenMember(dst, `,"lk":`, r.LastToken)
	dst = appendStringMember(dst, `,"ls":`, r.LastSubject)
	dst = appendStringMember(dst, `,"lw":`, r.LastWorkerID)
	dst = appendTrueMember(dst, `,"lh":`, r.LastOverHTTP)
	dst = appendTokenMember(dst, `,"rk":`, r.ResultToken)
	dst = appendIntMember(dst, `,"r":`, int64(r.Releases))
	dst = appendIntMember(dst, `,"lo":`, int64(r.Losses))
	dst = appendIntMember(dst, `,"un":`, int64(r.Undelivered))
	dst = appendIntMember(dst, `,"x":`, int64(r.DeadCause))
	dst = appendStringMember(dst, `,"e":`, r.Error)
	dst = appendStringMember(dst, `,"k":`, r.IdempotencyKey)
	if r.Fingerprint != [32]byte{} {
		dst = append(dst, `,"f":"`...)
		dst = append(hex.AppendEncode(dst, r.Fingerprint[:]), '"')
	}
	dst = appendStringMember(dst, `,"tp":`, r.TraceParent)
	dst = appendStringMember(dst, `,"ts":`, r.TraceState)
	dst = appendTrueMember(dst, `,"h":`, r.Payload != "")
	dst = appendTrueMember(dst, `,"o":`, r.OutcomeHere)
	dst = appendIntMember(dst, `,"rb":`, int64(len(r.Result)))
	return append(append(closeMembers(dst, start), r.Payload...), r.Result...)
}

// closeMembers ends an object whose first member was appended with a comma
// too: start is where that comma is, if there is any member.
func closeMembers(dst []byte, start int) []byte {
	if len(dst) > start {
		dst = append(dst[:start], dst[start+1:]...)
	}
	return append(dst, '}')
}

// parseTask reads a record. data may be reused afterwards; the strings
// of the record share one copy of it.
func parseTask(data []byte, r *Task) error {
	s := scanner{text: string(data)}
	*r = Task{}
	var b behind
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		if !parseTaskMember(&s, r, name) && !parseOutcomeMember(&s, r, name) && !b.parseMember(&s, name) {
			s.skip(0)
		}
	}
	if s.failed || r.Priority < 0 || r.Priority > wire.MaxPriority {
		return ErrDamaged
	}
	return b.parse(s.text[s.at:], r)
}

// behind is what stands behind the object of a record.
type behind struct {
	payload     bool
	outcome     bool
	resultBytes int
}

func (b *behind) parseMember(s *scanner, name string) bool {
	switch name {
	case "h":
		b.payload = s.isTrue()
	case "o":
		b.outcome = s.isTrue()
	case "rb":
		b.resultBytes = s.int()
	default:
		return false
	}
	return true
}

func (b *behind) parse(rest string, r *Task) error {
	payloadBytes := 0
	if b.payload {
		payloadBytes = r.PayloadBytes
	}
	if payloadBytes < 0 || payloadBytes > len(rest) || b.resultBytes != len(rest)-payloadBytes ||
		b.resultBytes > 0 && !b.outcome {
		return ErrDamaged
	}
	r.Payload, r.OutcomeHere, r.Result = rest[:payloadBytes], b.outcome, rest[payloadBytes:]
	return nil
}

// parseTaskMember reads what a task is made with and where it is.
func parseTaskMember(s *scanner, r *Task, name string) bool {
	switch name {
	case "c":
		r.Command = s.str()
	case "t":
		r.Tenant = s.str()
	case "p":
		r.Priority = s.int()
	case "s":
		r.Status = wire.Status(s.str())
	case "l":
		r.Location = wire.Location(s.str())
	case "a":
		r.Attempts = s.int()
	case "m":
		r.MaxAttempts = s.int()
	case "b":
		r.PayloadBytes = s.int()
	case "ct":
		r.CreatedAtMs = s.int64()
	case "ut":
		r.UpdatedAtMs = s.int64()
	case "q":
		r.Seq = s.uint()
	case "dt":
		r.DueAtMs = s.int64()
	case "et":
		r.EndedAtMs = s.int64()
	case "xt":
		r.ExpiresAtMs = s.int64()
	case "xd":
		r.Expired = s.isTrue()
	case "rt":
		r.TimeoutSeconds = s.int64()
	case "k":
		r.IdempotencyKey = s.str()
	case "f":
		r.Fingerprint = s.fingerprint()
	case "tp":
		r.TraceParent = s.str()
	case "ts":
		r.TraceState = s.str()
	default:
		return false
	}
	return true
}

// parseOutcomeMember reads what deliveries have left behind.
func parseOutcomeMember(s *scanner, r *Task, name string) bool {
	switch name {
	case "d":
		r.Deliveries = s.int()
	case "lk":
		r.LastToken = s.token()
	case "ls":
		r.LastSubject = s.str()
	case "lw":
		r.LastWorkerID = s.str()
	case "lh":
		r.LastOverHTTP = s.isTrue()
	case "rk":
		r.ResultToken = s.token()
	case "r":
		r.Releases = s.int()
	case "lo":
		r.Losses = s.int()
	case "un":
		r.Undelivered = s.int()
	case "x":
		r.DeadCause = s.deadCause()
	case "e":
		r.Error = s.str()
	default:
		return false
	}
	return true
}

func (s *scanner) deadCause() wire.DeadCause {
	n := s.uint()
	if n == 0 || n >= wire.DeadKinds {
		s.fail()
		return 0
	}
	return wire.DeadCause(n)
}

func (s *scanner) fingerprint() [32]byte {
	var f [32]byte
	text := s.str()
	if len(text) != hex.EncodedLen(len(f)) {
		s.fail()
		return f
	}
	if _, err := hex.Decode(f[:], []byte(text)); err != nil {
		s.fail()
	}
	return f
}

// ParseTask reads the record of id. Every task has a command.
func ParseTask(id wire.TaskID, value []byte, r *Task) error {
	if err := parseTask(value, r); err != nil {
		return err
	}
	if r.Command == "" {
		return ErrDamaged
	}
	r.ID = id
	return nil
}

// ParseID reads the value of an idempotency key.
func ParseID(value []byte, id *wire.TaskID) error {
	if len(value) != len(id) {
		return ErrDamaged
	}
	copy(id[:], value)
	return nil
}
