package record

import (
	"encoding/binary"
	"strconv"

	"codeq/wire"
)

// MaxHistory is the number of history lines a task keeps; older ones go.
const MaxHistory = 10

// AppendLease adds the value of a lease.
func AppendLease(dst []byte, l *Lease) []byte {
	dst = append(dst, `{"d":`...)
	dst = strconv.AppendInt(dst, int64(l.Delivery), 10)
	dst = appendTokenMember(dst, `,"k":`, l.Token)
	if !l.Session.IsZero() {
		dst = append(dst, `,"s":"`...)
		dst = append(l.Session.AppendTo(dst), '"')
	}
	dst = appendTrueMember(dst, `,"h":`, l.OverHTTP)
	dst = appendStringMember(dst, `,"u":`, l.Subject)
	dst = appendStringMember(dst, `,"w":`, l.WorkerID)
	dst = appendIntMember(dst, `,"dt":`, l.DeadlineMs)
	dst = appendIntMember(dst, `,"lf":`, l.LeaseForMs)
	dst = appendIntMember(dst, `,"gt":`, l.GrantedAtMs)
	dst = appendIntMember(dst, `,"rt":`, l.RunUntilMs)
	return append(dst, '}')
}

// ParseLease reads what AppendLease wrote.
func ParseLease(data []byte, l *Lease) error {
	s := scanner{text: string(data)}
	*l = Lease{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "d":
			l.Delivery = s.int()
		case "k":
			l.Token = s.token()
		case "s":
			id, ok := wire.ParseSessionID(s.str())
			if l.Session = id; !ok {
				s.fail()
			}
		case "h":
			l.OverHTTP = s.isTrue()
		case "u":
			l.Subject = s.str()
		case "w":
			l.WorkerID = s.str()
		case "dt":
			l.DeadlineMs = s.int64()
		case "lf":
			l.LeaseForMs = s.int64()
		case "gt":
			l.GrantedAtMs = s.int64()
		case "rt":
			l.RunUntilMs = s.int64()
		default:
			s.skip(0)
		}
	}
	return s.end()
}

// AppendCounters adds the value of the counters of a queue.
func AppendCounters(dst []byte, c *Counters) []byte {
	dst = append(dst, `{"inProgress":`...)
	dst = strconv.AppendInt(dst, c.InProgress, 10)
	if c.Ready != [Priorities]int64{} {
		dst = append(dst, `,"ready":[`...)
		for i, n := range c.Ready {
			dst = strconv.AppendInt(appendComma(dst, i), n, 10)
		}
		dst = append(dst, ']')
	}
	if c.ReadyFloor != [Priorities]uint64{} {
		dst = append(dst, `,"readyFloor":[`...)
		for i, n := range c.ReadyFloor {
			dst = strconv.AppendUint(appendComma(dst, i), n, 10)
		}
		dst = append(dst, ']')
	}
	if last := lastKnown(&c.ReadySinceMs); last >= 0 {
		// Zeros at the end are left out: most queues use the lowest priority.
		dst = append(dst, `,"readySinceMs":[`...)
		for i, n := range c.ReadySinceMs[:last+1] {
			dst = strconv.AppendInt(appendComma(dst, i), n, 10)
		}
		dst = append(dst, ']')
	}
	dst = appendIntMember(dst, `,"delayed":`, c.Delayed)
	dst = appendIntMember(dst, `,"delayedFloorMs":`, c.DelayedFloorMs)
	dst = appendIntMember(dst, `,"expiring":`, c.Expiring)
	dst = appendIntMember(dst, `,"expiringFloorMs":`, c.ExpiringFloorMs)
	dst = appendUintMember(dst, `,"leaseFloor":`, c.LeaseFloor)
	dst = appendIntMember(dst, `,"dead":`, c.Dead)
	dst = appendIntMember(dst, `,"deadFloorMs":`, c.DeadFloorMs)
	if c.DeadBy != [wire.DeadKinds]int64{} {
		dst = append(dst, `,"deadBy":[`...)
		for i, n := range c.DeadBy {
			dst = strconv.AppendInt(appendComma(dst, i), n, 10)
		}
		dst = append(dst, ']')
	}
	dst = appendIntMember(dst, `,"failedFloorMs":`, c.FailedFloorMs)
	dst = appendIntMember(dst, `,"done":`, c.Done)
	dst = appendIntMember(dst, `,"doneFloorMs":`, c.DoneFloorMs)
	return append(dst, '}')
}

// lastKnown is the highest priority with a time, -1 if there is none.
func lastKnown(sinceMs *[Priorities]int64) int {
	last := Priorities - 1
	for last >= 0 && sinceMs[last] == 0 {
		last--
	}
	return last
}

func appendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// ParseCounters reads what AppendCounters wrote.
func ParseCounters(data []byte, c *Counters) error {
	s := scanner{text: string(data)}
	*c = Counters{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "inProgress":
			c.InProgress = s.int64()
		case "ready":
			s.list(Priorities, func(i int) { c.Ready[i] = s.int64() })
		case "readyFloor":
			s.list(Priorities, func(i int) { c.ReadyFloor[i] = s.uint() })
		case "readySinceMs":
			s.list(Priorities, func(i int) { c.ReadySinceMs[i] = s.int64() })
		case "delayed":
			c.Delayed = s.int64()
		case "delayedFloorMs":
			c.DelayedFloorMs = s.int64()
		case "expiring":
			c.Expiring = s.int64()
		case "expiringFloorMs":
			c.ExpiringFloorMs = s.int64()
		case "leaseFloor":
			c.LeaseFloor = s.uint()
		case "dead":
			c.Dead = s.int64()
		case "deadFloorMs":
			c.DeadFloorMs = s.int64()
		case "deadBy":
			s.list(wire.DeadKinds, func(i int) { c.DeadBy[i] = s.int64() })
		case "failedFloorMs":
			c.FailedFloorMs = s.int64()
		case "done":
			c.Done = s.int64()
		case "doneFloorMs":
			c.DoneFloorMs = s.int64()
		default:
			s.skip(0)
		}
	}
	return s.end()
}

// list reads an array of at most so many elements.
func (s *scanner) list(most int, element func(i int)) {
	s.take('[')
	first := true
	for i := 0; s.more(&first, ']'); i++ {
		if i == most {
			s.fail()
			return
		}
		element(i)
	}
}

// AppendMarks adds the value of the marks of a shard.
func AppendMarks(dst []byte, m Marks) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, m.Seq, 10)
	dst = appendUintMember(dst, `,"event":`, m.Event)
	dst = appendIntMember(dst, `,"timeMs":`, m.TimeMs)
	return append(dst, '}')
}

// ParseMarks reads what AppendMarks wrote.
func ParseMarks(data []byte, m *Marks) error {
	s := scanner{text: string(data)}
	*m = Marks{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "seq":
			m.Seq = s.uint()
		case "event":
			m.Event = s.uint()
		case "timeMs":
			m.TimeMs = s.int64()
		default:
			s.skip(0)
		}
	}
	return s.end()
}

// AppendHistory adds the value of the history of a task.
func AppendHistory(dst []byte, lines []wire.HistoryLine) []byte {
	dst = append(dst, '[')
	for i := range lines {
		l := &lines[i]
		dst = append(appendComma(dst, i), `{"delivery":`...)
		dst = strconv.AppendInt(dst, int64(l.Delivery), 10)
		dst = appendStringMember(dst, `,"workerId":`, l.WorkerID)
		dst = appendIntMember(dst, `,"fromMs":`, l.FromMs)
		dst = appendIntMember(dst, `,"toMs":`, l.ToMs)
		dst = appendStringMember(dst, `,"cause":`, l.Cause)
		dst = appendIntMember(dst, `,"closeCode":`, int64(l.CloseCode))
		dst = appendStringMember(dst, `,"error":`, l.Error)
		if l.Exit.Coded {
			dst = strconv.AppendInt(append(dst, `,"exitCode":`...), int64(l.Exit.Code), 10)
		}
		dst = appendStringMember(dst, `,"signal":`, l.Exit.Signal)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// ParseHistory reads what AppendHistory wrote.
func ParseHistory(data []byte) ([]wire.HistoryLine, error) {
	s := scanner{text: string(data)}
	var lines []wire.HistoryLine
	first := true
	s.take('[')
	for s.more(&first, ']') {
		if len(lines) == MaxHistory {
			return nil, ErrDamaged
		}
		lines = append(lines, s.historyLine())
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return lines, nil
}

func (s *scanner) historyLine() wire.HistoryLine {
	var l wire.HistoryLine
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "delivery":
			l.Delivery = s.int()
		case "workerId":
			l.WorkerID = s.str()
		case "fromMs":
			l.FromMs = s.int64()
		case "toMs":
			l.ToMs = s.int64()
		case "cause":
			l.Cause = s.str()
		case "closeCode":
			l.CloseCode = s.int()
		case "error":
			l.Error = s.str()
		case "exitCode":
			l.Exit.Code, l.Exit.Coded = s.int(), true
		case "signal":
			l.Exit.Signal = s.str()
		default:
			s.skip(0)
		}
	}
	return l
}

// A pending key's value is the time since when the task is ready, eight bytes
// in Unix milliseconds, big end first.

// AppendReadyAt adds the value of a pending entry.
func AppendReadyAt(dst []byte, readyAtMs int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(readyAtMs))
}

// ParseReadyAt reads what AppendReadyAt wrote.
func ParseReadyAt(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, ErrDamaged
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}
