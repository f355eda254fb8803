package wire

import (
	"math"
	"slices"
	"strconv"
)

// coder walks the members of one JSON object in the order in which they are written. A
// type names its members once, in a method that calls the coder for each of them. The
// coder appends the values to out, or reads them from in, or holds them against their
// rules. It changes a value only when it reads.
//
// In its methods lead is a comma, the name and the colon, as they are written. Methods that
// begin with opt write nothing for an empty value.
type coder struct {
	// out is what values are appended to. A slice here would put every object that is read on
	// the heap: the compiler does not tell apart the fields of a struct that is stored to.
	out *[]byte
	// start is where the object begins in out.
	start int
	// in is the object that is read or checked; nil while the coder writes.
	in *object
	// shape has the members of in; next is the number of the next one.
	shape *shape
	next  int
	// ref is that of the frame that is read.
	ref Ref
	// checks: values are held against their rules, and nothing is read.
	checks bool
}

// writing is a coder that appends to out.
func writing(out *[]byte) coder { return coder{out: out, start: len(*out)} }

// shape has the members of one kind of object.
type shape struct {
	// names is the table of the object; kinds that only a member can tell apart share one.
	names *[]string
	// fields are the indexes in names of the members, in order, and bits the same as bits.
	fields []int
	bits   uint64
	// open: the members are being learned.
	open bool
	// word is the type of a frame.
	word string
}

// shapeOf learns the members of a kind from members, which reads an object without any.
func shapeOf(names *[]string, members func(c *coder)) *shape {
	s := &shape{names: names, open: true}
	members(&coder{in: &object{err: &Error{}}, shape: s})
	s.open = false
	return s
}

// kind is one of the kinds of frames that the member type tells apart.
type kind[F any] struct {
	shape *shape
	make  func() F
}

// kindsOf learns the kinds of frames that makers make.
func kindsOf[F any](names *[]string, members func(F, *coder), makers ...func() F) map[string]kind[F] {
	kinds := map[string]kind[F]{}
	for _, make := range makers {
		s := shapeOf(names, func(c *coder) { members(make(), c) })
		kinds[s.word] = kind[F]{s, make}
	}
	return kinds
}

// kind is the type of a frame, and the ref of one of a client. Both were read before the
// members.
func (c *coder) kind(word string, ref *Ref) {
	switch {
	case c.in == nil:
		*c.out = append(append(append(*c.out, `,"type":"`...), word...), '"')
		if ref != nil {
			ref.members(c)
		}
	case c.shape.open:
		c.shape.word = word
	case ref != nil:
		*ref = c.ref
	}
}

// object is an empty object of that kind.
func (s *shape) object() object { return object{names: *s.names} }

// without are the members as bits, but for some.
func (s *shape) without(names ...string) uint64 {
	bits := s.bits
	for _, name := range names {
		bits &^= 1 << slices.Index(*s.names, name)
	}
	return bits
}

// field is the next member of the object that is read.
func (c *coder) field(lead string) int {
	if c.shape.open {
		c.shape.learn(lead[len(`,"`) : len(lead)-len(`":`)])
	}
	c.next++
	return c.last()
}

func (s *shape) learn(name string) {
	at := slices.Index(*s.names, name)
	if at < 0 {
		at = len(*s.names)
		*s.names = append(*s.names, name)
	}
	s.fields = append(s.fields, at)
	s.bits |= 1 << at
}

// last is the member that was read last, and given reports whether it was there.
func (c *coder) last() (field int)   { return c.shape.fields[c.next-1] }
func (c *coder) given() (given bool) { return c.in != nil && c.in.given(c.last()) != nil }

// notBoth refuses the last two members together; both reports that of a value that is checked.
func (c *coder) notBoth(code Code, both bool) {
	if c.in == nil || c.in.answer {
		return
	}
	first, second := c.shape.fields[c.next-2], c.last()
	if both || c.in.given(first) != nil && c.in.given(second) != nil {
		c.in.refuse(code, first, "and "+c.in.names[second]+" must not be given together")
	}
}

// open begins an object that is written, and close ends it. The members are appended from
// at on, each after a comma.
func (c *coder) open(lead string) (at int) {
	*c.out = append(*c.out, lead...)
	return len(*c.out)
}

// done ends the only object that is written, and returns what it was appended to.
func (c *coder) done() []byte {
	c.close(c.start)
	return *c.out
}

func (c *coder) close(at int) {
	if len(*c.out) == at {
		*c.out = append(*c.out, '{')
	}
	(*c.out)[at] = '{'
	*c.out = append(*c.out, '}')
}

// element begins the element i of a list of objects that is written, and endList ends the
// list. A list of nothing is left out.
func (c *coder) element(lead string, i int) (at int) {
	if i == 0 {
		*c.out = append(append(*c.out, lead...), '[')
	}
	return c.comma(i)
}

// comma begins the element i of a list that is there also if it is empty.
func (c *coder) comma(i int) (at int) {
	if i > 0 {
		*c.out = append(*c.out, ',')
	}
	return len(*c.out)
}

func (c *coder) endList(elements int) {
	if elements > 0 {
		*c.out = append(*c.out, ']')
	}
}

func (c *coder) text(lead string, v *string, rule *textRule) {
	switch {
	case c.in == nil:
		*c.out = AppendQuoted(append(*c.out, lead...), *v)
	case c.checks:
		c.in.checkGivenText(c.field(lead), *v, rule)
	default:
		*v = c.in.text(c.field(lead), rule)
	}
}

func (c *coder) optText(lead string, v *string, rule *textRule) {
	if c.in != nil || *v != "" {
		c.text(lead, v, rule)
	}
}

// integer writes a number if that is wanted, and reports whether one was read.
func integer[N int | int64 | uint64](c *coder, lead string, v *N, wanted bool, rule *integerRule) (given bool) {
	switch {
	case c.in == nil:
		if wanted {
			*c.out = strconv.AppendInt(append(*c.out, lead...), int64(*v), 10)
		}
		return false
	case c.checks:
		c.in.checkGiven(c.field(lead), int64(*v), rule)
		return false
	}
	field := c.field(lead)
	given = c.in.given(field) != nil
	*v = N(c.in.integer(field, rule))
	return given
}

func optInteger[N int | int64 | uint64](c *coder, lead string, v *N, rule *integerRule) {
	if c.in != nil || *v != 0 {
		integer(c, lead, v, true, rule)
	}
}

// boolean writes a value if that is wanted, and reports whether one was read.
func (c *coder) boolean(lead string, v *bool, wanted bool) (given bool) {
	if c.in == nil {
		if wanted {
			*c.out = strconv.AppendBool(append(*c.out, lead...), *v)
		}
		return false
	}
	field := c.field(lead)
	*v = c.in.trueOrFalse(field)
	return c.in.given(field) != nil
}

func (c *coder) time(lead string, unixMs *int64, rule *timeRule) {
	if c.in == nil {
		*c.out = AppendTimeMs(append(*c.out, lead...), *unixMs)
	} else if field := c.field(lead); !c.checks {
		*unixMs = c.in.timeMs(field, rule)
	}
}

func (c *coder) optTime(lead string, unixMs *int64, rule *timeRule) {
	if c.in != nil || *unixMs != 0 {
		c.time(lead, unixMs, rule)
	}
}

// payload is any value, null too, that passes as it is.
func (c *coder) payload(lead string, raw *[]byte) {
	switch {
	case c.in == nil:
		c.optRaw(lead, raw)
	case c.checks:
		c.field(lead)
	default:
		*raw = c.in.raw[c.field(lead)]
	}
}

// optRaw is a value that passes as it is; null is none.
func (c *coder) optRaw(lead string, raw *[]byte) {
	if c.in != nil {
		*raw = c.in.given(c.field(lead))
	} else if len(*raw) > 0 {
		*c.out = append(append(*c.out, lead...), *raw...)
	}
}

func (c *coder) taskID(lead string, id *TaskID) {
	if c.in == nil {
		*c.out = append(id.AppendTo(append(append(*c.out, lead...), '"')), '"')
		return
	}
	*id = c.in.taskID(c.field(lead))
}

func (c *coder) optTaskID(lead string, id *TaskID) {
	switch {
	case c.in == nil && !id.IsZero():
		c.taskID(lead, id)
	case c.in != nil:
		if field := c.field(lead); c.in.given(field) != nil {
			*id = c.in.taskID(field)
		}
	}
}

func (c *coder) sessionID(lead string, id *SessionID) {
	if c.in == nil {
		*c.out = append(id.AppendTo(append(append(*c.out, lead...), '"')), '"')
		return
	}
	field, ok := c.field(lead), false
	if *id, ok = ParseSessionID(c.in.text(field, &needTextRule)); !ok {
		c.in.refuse(CodeInvalidBody, field, "names no session")
	}
}

func (c *coder) token(lead string, token *Token, rule *textRule) {
	if c.in == nil {
		*c.out = append(token.AppendTo(append(append(*c.out, lead...), '"')), '"')
		return
	}
	*token = c.in.token(c.field(lead), rule)
}

func (c *coder) optToken(lead string, token *Token, rule *textRule) {
	if c.in != nil || !token.IsZero() {
		c.token(lead, token, rule)
	}
}

// texts is a list of texts of any length.
func (c *coder) texts(lead string, texts *[]string) {
	if c.in == nil {
		*c.out = appendTexts(*c.out, lead, *texts)
		return
	}
	*texts = c.in.texts(c.field(lead))
}

// listRule is the rule of a list of objects.
type listRule struct {
	code Code
	high int
}

// anyListRule is the rule of a list in an answer.
var anyListRule = listRule{code: CodeInvalidBody, high: math.MaxInt}

// readList reads a list of objects and reports whether it was there.
func readList[T any](c *coder, lead string, rule *listRule, s *shape, members func(*T, *coder)) (values []T, given bool) {
	field := c.field(lead)
	list, given := c.in.elements(field, rule.code, rule.high)
	if len(list) == 0 {
		return nil, given
	}
	var inner object
	for i, raw := range list {
		inner = c.in.element(field, i, raw, s, rule.code)
		e := coder{in: &inner, shape: s}
		values = append(values, *new(T))
		members(&values[i], &e)
		if inner.err != nil {
			c.in.err = inner.err
			return nil, true
		}
	}
	return values, given
}

// inner reads a member that is an object, and reports whether it was there.
func (c *coder) inner(lead string, code Code, s *shape, members func(c *coder)) (given bool) {
	field := c.field(lead)
	raw := c.in.given(field)
	if raw == nil {
		return false
	}
	o := s.object()
	if problem := o.scanAlone(raw); problem != "" {
		c.in.refuse(code, field, problem)
		return false
	}
	if o.answer = c.in.answer; !o.answer {
		o.checkMembers(s.bits)
	}
	members(&coder{in: &o, shape: s})
	if o.err != nil && c.in.err == nil {
		c.in.err = Refuse(o.err.Code, c.in.nameOf(field)+"."+o.err.Sentence)
	}
	return true
}
