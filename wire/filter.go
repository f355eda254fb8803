package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// TaskFilter selects tasks of a queue: those that pass all its fields. The zero value
// selects all.
type TaskFilter struct {
	// Worker is the name of the worker that has the task, or had it last.
	Worker string
	// ErrorPart is a text that the error of the task contains.
	ErrorPart string
	// KeyPrefix is a text that the idempotency key begins with.
	KeyPrefix string
	// CreatedFromMs selects tasks created at this time or later, in Unix milliseconds; 0
	// is no bound.
	CreatedFromMs int64
	// CreatedBeforeMs selects tasks created before this time, in Unix milliseconds; 0 is
	// no bound.
	CreatedBeforeMs int64
	// OnlyPriority selects tasks with the priority Priority.
	OnlyPriority bool
	Priority     int
	// MinAttempts is the least number of failed attempts.
	MinAttempts int
	// Members are members that the payload has; those without a Name are ignored.
	Members [MaxFilterMembers]MemberIs
	// PayloadPart is a text that the JSON of the payload contains, as it was posted.
	PayloadPart string
	// Labels are labels that the task has, all of them.
	Labels Labels
}

// Takes reports whether a task passes the filter, but for KeyPrefix, which no view of a
// task has, and for what the filter asks of the payload.
func (f *TaskFilter) Takes(t *Task) bool {
	worker := t.WorkerID
	if worker == "" && len(t.History) > 0 {
		worker = t.History[len(t.History)-1].WorkerID
	}
	switch {
	case f.Worker != "" && f.Worker != worker, f.OnlyPriority && f.Priority != t.Priority, t.Attempts < f.MinAttempts:
		return false
	case t.CreatedAtMs < f.CreatedFromMs, f.CreatedBeforeMs != 0 && t.CreatedAtMs >= f.CreatedBeforeMs:
		return false
	}
	return strings.Contains(t.Error, f.ErrorPart) && t.Labels.Have(f.Labels)
}

// MaxFilterMembers is the largest number of members of a payload in one filter.
const MaxFilterMembers = 4

// MemberIs asks for one member of a payload that is an object.
type MemberIs struct {
	// Name is the name of the member, or a path of names with dots between them.
	Name string
	// Value is the text of a string, or a number, true, false or null as it is written in
	// the payload.
	Value string
}

// AsksPayload reports whether the filter has Members or a PayloadPart.
func (f *TaskFilter) AsksPayload() bool {
	return f.PayloadPart != "" || f.Members != [MaxFilterMembers]MemberIs{}
}

// TakesPayload reports whether a payload has all Members and the PayloadPart.
func (f *TaskFilter) TakesPayload(payload []byte) bool {
	for i := range f.Members {
		if m := &f.Members[i]; m.Name != "" && !holds(payload, m.Name, m.Value) {
			return false
		}
	}
	return bytes.Contains(payload, []byte(f.PayloadPart))
}

// holds looks for a member in the text of a value.
func holds(text []byte, name, value string) (found bool) {
	first, rest, inner := strings.Cut(name, ".")
	eachMember(text, func(scanned, held []byte) bool {
		switch {
		case isNamed(scanned, name):
			found = isText(held, value)
		case inner && isNamed(scanned, first):
			found = holds(held, rest, value)
		}
		return !found
	})
	return found
}

func isNamed(scanned []byte, name string) bool {
	return isText(scanned[:bytes.LastIndexByte(scanned, '"')+1], name)
}

// isText compares a value that was scanned with a text.
func isText(value []byte, text string) bool {
	switch {
	case value[0] != '"':
		return string(value) == text
	case bytes.IndexByte(value, '\\') < 0:
		return string(value[1:len(value)-1]) == text
	}
	plain, _ := decodeString(value)
	return plain == text
}

// eachMember visits the members of a text that is an object, until visit returns false.
// name is the scanned text, with its quotes and colon.
func eachMember(text []byte, visit func(name, value []byte) bool) {
	s := scanner{data: text}
	if s.peek() != '{' {
		return
	}
	s.pos++
	if s.peek() == '}' {
		return
	}
	for more, ok := true, true; more && ok; more, ok = s.separator('}') {
		s.space()
		start := s.pos
		if !s.memberName() {
			return
		}
		name := s.data[start:s.pos]
		s.space()
		start = s.pos
		if !s.value(0) || !visit(name, s.data[start:s.pos]) {
			return
		}
	}
}

var (
	filterTextRule   = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, filled: true}
	filterKeyRule    = textRule{code: CodeInvalidArgument, high: MaxKeyBytes, filled: true}
	filterCountRule  = integerRule{code: CodeInvalidArgument, high: math.MaxInt32}
	filterMemberRule = fmt.Sprintf("must be an object of 1 to %d names, each with a string, a number, true, false or null", MaxFilterMembers)
)

func (f *TaskFilter) members(c *coder) {
	c.optText(`,"worker":`, &f.Worker, &filterTextRule)
	c.optText(`,"error":`, &f.ErrorPart, &filterTextRule)
	c.optText(`,"keyPrefix":`, &f.KeyPrefix, &filterKeyRule)
	c.optTime(`,"createdAfter":`, &f.CreatedFromMs, &sinceRule)
	c.optTime(`,"createdBefore":`, &f.CreatedBeforeMs, &sinceRule)
	given := integer(c, `,"priority":`, &f.Priority, f.OnlyPriority, &priorityRule)
	if c.in != nil {
		f.OnlyPriority = given
	}
	optInteger(c, `,"minAttempts":`, &f.MinAttempts, &filterCountRule)
	if c.in != nil {
		f.Members = c.in.match(c.field(`,"match":`))
		return
	}
	if !f.AsksPayload() {
		return
	}
	sign := `,"match":{`
	for _, m := range f.Members {
		if m.Name != "" {
			*c.out = append(AppendQuoted(append(*c.out, sign...), m.Name), ':')
			*c.out, sign = AppendQuoted(*c.out, m.Value), ","
		}
	}
	*c.out = append(*c.out, '}')
}

func (o *object) match(field int) (list [MaxFilterMembers]MemberIs) {
	raw := o.given(field)
	if raw == nil {
		return list
	}
	n, good := 0, raw[0] == '{'
	eachMember(raw, func(name, value []byte) bool {
		plain, _ := decodeString(name[:bytes.LastIndexByte(name, '"')+1])
		good = good && n < len(list) && plain != "" && value[0] != '{' && value[0] != '['
		if !good {
			return false
		}
		list[n] = MemberIs{plain, string(value)}
		if value[0] == '"' {
			list[n].Value, _ = decodeString(value)
		}
		n++
		return true
	})
	if !good || n == 0 {
		o.refuse(CodeInvalidArgument, field, filterMemberRule)
	}
	return list
}
