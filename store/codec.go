package store

import (
	"encoding/hex"

	"codeq/wire"
)

// A task record is a JSON object. A member that is absent is zero, one that
// this version does not know is ignored, and members are only ever added, so
// older and newer servers read each other's files.

func appendTaskRecord(dst []byte, r *TaskRecord) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(r.ID.AppendTo(dst), '"')
	dst = appendStringMember(dst, `,"command":`, r.Command)
	dst = appendStringMember(dst, `,"tenant":`, r.Tenant)
	dst = appendIntMember(dst, `,"priority":`, int64(r.Priority))
	dst = appendStringMember(dst, `,"status":`, string(r.Status))
	dst = appendStringMember(dst, `,"location":`, string(r.Location))
	dst = appendIntMember(dst, `,"attempts":`, int64(r.Attempts))
	dst = appendIntMember(dst, `,"maxAttempts":`, int64(r.MaxAttempts))
	dst = appendIntMember(dst, `,"payloadBytes":`, int64(r.PayloadBytes))
	dst = appendIntMember(dst, `,"createdAtMs":`, r.CreatedAtMs)
	dst = appendIntMember(dst, `,"updatedAtMs":`, r.UpdatedAtMs)
	dst = appendUintMember(dst, `,"seq":`, r.Seq)
	dst = appendIntMember(dst, `,"dueAtMs":`, r.DueAtMs)
	dst = appendIntMember(dst, `,"endedAtMs":`, r.EndedAtMs)
	dst = appendIntMember(dst, `,"deliveries":`, int64(r.Deliveries))
	dst = appendTokenMember(dst, `,"lastToken":`, r.LastToken)
	dst = appendStringMember(dst, `,"lastSubject":`, r.LastSubject)
	dst = appendStringMember(dst, `,"lastWorkerId":`, r.LastWorkerID)
	dst = appendTokenMember(dst, `,"resultToken":`, r.ResultToken)
	dst = appendIntMember(dst, `,"releases":`, int64(r.Releases))
	dst = appendIntMember(dst, `,"losses":`, int64(r.Losses))
	dst = appendIntMember(dst, `,"undelivered":`, int64(r.Undelivered))
	dst = appendStringMember(dst, `,"error":`, r.Error)
	dst = appendStringMember(dst, `,"idempotencyKey":`, r.IdempotencyKey)
	if r.Fingerprint != [32]byte{} {
		dst = append(dst, `,"fingerprint":"`...)
		dst = append(hex.AppendEncode(dst, r.Fingerprint[:]), '"')
	}
	dst = appendStringMember(dst, `,"traceParent":`, r.TraceParent)
	dst = appendStringMember(dst, `,"traceState":`, r.TraceState)
	return append(dst, '}')
}

// parseTaskRecord reads a record. data may be reused afterwards; the strings
// of the record share one copy of it.
func parseTaskRecord(data []byte, r *TaskRecord) error {
	s := scanner{text: string(data)}
	*r = TaskRecord{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		if !parseTaskMember(&s, r, name) && !parseOutcomeMember(&s, r, name) {
			s.skip(0)
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if r.Priority < 0 || r.Priority > wire.MaxPriority {
		return errDamaged
	}
	return nil
}

// parseTaskMember reads what a task is made with and where it is.
func parseTaskMember(s *scanner, r *TaskRecord, name string) bool {
	switch name {
	case "id":
		id, ok := wire.ParseTaskID(s.str())
		if r.ID = id; !ok {
			s.fail()
		}
	case "command":
		r.Command = s.str()
	case "tenant":
		r.Tenant = s.str()
	case "priority":
		r.Priority = s.int()
	case "status":
		r.Status = wire.Status(s.str())
	case "location":
		r.Location = wire.Location(s.str())
	case "attempts":
		r.Attempts = s.int()
	case "maxAttempts":
		r.MaxAttempts = s.int()
	case "payloadBytes":
		r.PayloadBytes = s.int()
	case "createdAtMs":
		r.CreatedAtMs = s.int64()
	case "updatedAtMs":
		r.UpdatedAtMs = s.int64()
	case "seq":
		r.Seq = s.uint()
	case "dueAtMs":
		r.DueAtMs = s.int64()
	case "endedAtMs":
		r.EndedAtMs = s.int64()
	case "idempotencyKey":
		r.IdempotencyKey = s.str()
	case "fingerprint":
		r.Fingerprint = s.fingerprint()
	case "traceParent":
		r.TraceParent = s.str()
	case "traceState":
		r.TraceState = s.str()
	default:
		return false
	}
	return true
}

// parseOutcomeMember reads what deliveries have left behind.
func parseOutcomeMember(s *scanner, r *TaskRecord, name string) bool {
	switch name {
	case "deliveries":
		r.Deliveries = s.int()
	case "lastToken":
		r.LastToken = s.token()
	case "lastSubject":
		r.LastSubject = s.str()
	case "lastWorkerId":
		r.LastWorkerID = s.str()
	case "resultToken":
		r.ResultToken = s.token()
	case "releases":
		r.Releases = s.int()
	case "losses":
		r.Losses = s.int()
	case "undelivered":
		r.Undelivered = s.int()
	case "error":
		r.Error = s.str()
	default:
		return false
	}
	return true
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
