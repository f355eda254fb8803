package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Labels are the labels of a task as one text: each as name=value, sorted, with a line feed
// between two. No name and no value has a line feed. The empty text is no label.
type Labels string

const labelSign = "\n"

// Next is the first label, as name=value, and the ones behind it.
func (l Labels) Next() (label string, rest Labels) {
	label, text, _ := strings.Cut(string(l), labelSign)
	return label, Labels(text)
}

// List are the labels one by one, each as name=value.
func (l Labels) List() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), labelSign)
}

// Have reports whether all labels of others are among them.
func (l Labels) Have(others Labels) bool {
	for label := ""; others != ""; {
		label, others = others.Next()
		if !strings.Contains(labelSign+string(l)+labelSign, labelSign+label+labelSign) {
			return false
		}
	}
	return true
}

// MakeLabels makes labels of texts like name=value. It refuses what an enqueue would refuse.
// Any goroutine may call it.
func MakeLabels(list []string) (Labels, *Error) {
	o := object{}
	for _, label := range list {
		name, value, found := strings.Cut(label, "=")
		if !found {
			o.refuseNamed(CodeInvalidArgument, "label", "must be a name and a value like customer=acme, got "+shownName(label))
		}
		o.checkLabel("label", name, value)
	}
	return o.join("label", list), o.err
}

// checkLabel holds a label against the rules; list is the name of the member that has it.
func (o *object) checkLabel(list, name, value string) {
	if problem := commandProblem(name); problem != "" {
		o.refuseNamed(CodeInvalidArgument, list, "has a name that "+problem)
	}
	if problem := NameProblem(value, MaxLabelBytes); problem != "" {
		o.refuseNamed(CodeInvalidArgument, list+"."+shownName(name), problem)
	}
	if n := len(name) + len(value); n > MaxLabelBytes {
		o.refuseNamed(CodeInvalidArgument, list+"."+shownName(name), fmt.Sprintf("and its value must be at most %d bytes together, got %d", MaxLabelBytes, n))
	}
}

// join makes one text of labels.
func (o *object) join(member string, list []string) Labels {
	slices.Sort(list)
	if len(list) > MaxLabels {
		o.refuseNamed(CodeInvalidArgument, member, fmt.Sprintf("must be at most %d, got %d", MaxLabels, len(list)))
	}
	for i := range list[min(1, len(list)):] {
		if name, _, _ := strings.Cut(list[i], "="); strings.HasPrefix(list[i+1], name+"=") {
			o.refuseNamed(CodeInvalidArgument, member+"."+name, "must not be given twice")
		}
	}
	if o.err != nil {
		return ""
	}
	return Labels(strings.Join(list, labelSign))
}

// labels is an object with a string for each label. Labels of an answer are not checked but
// for what would not be Labels.
func (c *coder) labels(lead string, l *Labels) {
	switch {
	case c.in == nil:
		*c.out = appendLabels(*c.out, lead, *l)
	case c.checks:
		if field := c.field(lead); *l != "" {
			c.in.checkLabels(field, *l)
		}
	default:
		*l = c.in.labels(c.field(lead))
	}
}

// checkLabels holds labels that were not read from JSON against the rules.
func (o *object) checkLabels(field int, l Labels) {
	list := l.List()
	for _, label := range list {
		name, value, _ := strings.Cut(label, "=")
		o.checkLabel(o.names[field], name, value)
	}
	if joined := o.join(o.names[field], list); joined != l {
		o.refuse(CodeInvalidArgument, field, "must be sorted, as MakeLabels makes them")
	}
}

func appendLabels(dst []byte, lead string, l Labels) []byte {
	if l == "" {
		return dst
	}
	dst = append(append(dst, lead...), '{')
	for label := ""; l != ""; {
		label, l = l.Next()
		name, value, _ := strings.Cut(label, "=")
		dst = append(AppendQuoted(append(AppendQuoted(dst, name), ':'), value), ',')
	}
	dst[len(dst)-1] = '}'
	return dst
}

func (o *object) labels(field int) Labels {
	raw := o.given(field)
	if raw == nil {
		return ""
	}
	if raw[0] != '{' {
		o.refuse(CodeInvalidArgument, field, "must be an object with a string for each label, got "+describe(raw))
		return ""
	}
	var list []string
	eachMember(raw, func(scanned, held []byte) bool {
		name, _ := decodeString(scanned[:bytes.LastIndexByte(scanned, '"')+1])
		isText, value := held[0] == '"', ""
		if isText {
			value, _ = decodeString(held)
		}
		switch {
		case o.answer && (!isText || strings.ContainsAny(name, "=\n") || strings.Contains(value, labelSign)):
			return true
		case !isText:
			o.refuse(CodeInvalidArgument, field, "must have a string for "+shownName(name)+", got "+describe(held))
		case !o.answer:
			o.checkLabel(o.names[field], name, value)
		}
		list = append(list, name+"="+value)
		return o.err == nil
	})
	if !o.answer {
		return o.join(o.names[field], list)
	}
	slices.Sort(list)
	return Labels(strings.Join(list, labelSign))
}
