package record

import (
	"fmt"
	"strconv"
	"strings"

	"codeq/wire"
)

// The String methods print a record for people: an object of its fields by their
// names, without those that are zero. Payload and result stand there as they came in.

// String prints a task, its id first.
func (r *Task) String() string {
	f := object()
	if !r.ID.IsZero() {
		f.label("id")
		f.out = append(r.ID.AppendTo(append(f.out, '"')), '"')
	}
	r.fields(&f)
	return f.close(r.Newer)
}

// String prints a lease.
func (l *Lease) String() string {
	f := object()
	l.fields(&f)
	return f.close(l.Newer)
}

// String prints counters.
func (c *Counters) String() string {
	f := object()
	c.fields(&f)
	return f.close(c.Newer)
}

// String prints settings.
func (s *Settings) String() string {
	f := object()
	s.fields(&f)
	return f.close(s.Newer)
}

// String prints a named record, an endpoint without its secrets.
func (n Named) String() string {
	if n.Kind == KindWebhook && n.Value != "" {
		e, _ := n.Endpoint()
		shown := e.WithoutSecrets()
		n.Value = string(wire.AppendEndpoint(nil, &shown))
	}
	f := object()
	n.fields(&f)
	return f.close(n.Newer)
}

// String prints marks.
func (m Marks) String() string {
	f := object()
	m.fields(&f)
	return f.close(m.Newer)
}

func object() form { return form{use: printing, out: []byte{'{'}} }

// close ends an object. What a newer program has added has no names here.
func (f *form) close(newer string) string {
	if newer != "" {
		f.label("newer")
		f.out = fmt.Appendf(f.out, "%q", fmt.Sprintf("%x", newer))
	}
	return string(append(f.out, '}'))
}

func historyString(lines []wire.HistoryLine) string {
	texts := make([]string, len(lines))
	for i := range lines {
		f := object()
		lineFields(&lines[i], &f)
		texts[i] = f.close("")
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// DescribeKey is a key without its span, in words. q is the queue that has the number
// in the key.
func DescribeKey(key []byte, q QueueKey) string {
	p, err := ParseKey(key)
	if err != nil {
		return fmt.Sprintf("%q", key)
	}
	text := families[p.Family].word
	if p.Queue != 0 {
		text = q.Command + "/" + q.Tenant + " " + text
	}
	switch p.Family {
	case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory, FamilyInProgress:
		return text + p.ID.String()
	case FamilyPending:
		return fmt.Sprintf("%sp%d/%d/%v", text, p.Priority, p.Seq, p.ID)
	case FamilyLimited:
		return fmt.Sprintf("%s%s/p%d/%d/%v", text, p.Name, p.Priority, p.Seq, p.ID)
	case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
		text = fmt.Sprintf("%s%d/%v", text, p.AtMs, p.ID)
		for _, id := range p.AppendTasks(nil)[1:] {
			text += "," + id.String()
		}
		return text
	case FamilyIdempotency:
		return text + p.Name
	case FamilyLabels:
		return fmt.Sprintf("%s%s/%v", text, p.Name, p.ID)
	case FamilyNamed:
		return fmt.Sprintf("%s%s %s %q", text, p.Kind, p.Tenant, p.Name)
	case FamilyBad:
		return fmt.Sprintf("%s%q", text, p.Name)
	}
	return text
}

// DescribeValue prints the value of a key. One that cannot be read is quoted.
func DescribeValue(key, value []byte) string {
	p, err := ParseKey(key)
	if err == nil {
		var text fmt.Stringer
		if text, err = p.parse(value); err == nil && text != nil {
			return text.String()
		}
	}
	if err != nil && p.Family == FamilyNamed {
		return fmt.Sprintf("%d bytes", len(value)) // it may hold a secret
	}
	for _, c := range value {
		if err != nil || c < ' ' || c > '~' {
			return fmt.Sprintf("%q", value)
		}
	}
	return string(value)
}

// parse reads the value of a key, nil where it is what it is.
func (p *Key) parse(value []byte) (fmt.Stringer, error) {
	switch p.Family {
	case FamilyTask:
		r := &Task{}
		return r, ParseTask(p.ID, value, r)
	case FamilyInProgress:
		l := &Lease{}
		return l, ParseLease(value, l)
	case FamilyCounters:
		c := &Counters{}
		return c, ParseCounters(value, c)
	case FamilySettings:
		s := &Settings{}
		return s, ParseSettings(value, s)
	case FamilyMarks:
		m := &Marks{}
		return m, ParseMarks(value, m)
	case FamilyHistory:
		lines, err := ParseHistory(value)
		return text(historyString(lines)), err
	case FamilyDone, FamilyDead:
		if len(value) > 0 {
			return ParseEnded(value)
		}
	case FamilyIdempotency:
		var id wire.TaskID
		return &id, ParseID(value, &id)
	case FamilyNames:
		q, err := ParseNames(value)
		return text(q.Command + "/" + q.Tenant), err
	case FamilyNamed:
		n, err := ParseNamed(p.Named(), value)
		return &n, err
	case FamilyPending:
		atMs, err := ParseReadyAt(value)
		return text(strconv.FormatInt(atMs, 10)), err
	}
	return nil, nil
}

// text is what is text already.
type text string

// String implements fmt.Stringer.
func (t text) String() string { return string(t) }
