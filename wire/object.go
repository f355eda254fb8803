package wire

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxNames is the most names one table of members may have.
const maxNames = 46

// object is one JSON object that is being read: the raw extents of the members whose names
// are in its table. Reading a member checks it against a rule. The first broken rule stays
// in err and makes every later read a no-op, so a caller reads all members and looks at err
// once.
type object struct {
	// names is the table; a member is known by its index there.
	names []string
	// list and index say which element of which list this is, for sentences.
	// An empty list means the object stands alone.
	list  string
	index int

	raw [maxNames][]byte
	// seen has a bit for each known name that came, twice for each that came again.
	seen, twice uint64
	// expected is the name that most likely comes next: members come in the order of the
	// table from the programs that use it, too.
	expected int
	// stranger is the scanned text of the first name that is not in the table, nil if
	// there is none.
	stranger []byte
	// tooDeep names a member that nests deeper than MaxNesting, empty if none
	// does.
	tooDeep string
	// answer: it comes from a server. Members that are not known and values over their
	// limits are none of a client's business.
	answer bool

	err *Error
}

// object consumes the object that begins at pos and puts the extents of its
// known members into o. A false return is bad JSON; what the object holds is
// not judged here.
func (s *scanner) object(o *object) bool {
	s.pos++
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		s.space()
		nameStart := s.pos
		if !s.memberName() {
			return false
		}
		name := s.data[nameStart:s.pos]
		s.space()
		start := s.pos
		s.deepest = 0
		if !s.value(0) {
			return false
		}
		known := o.put(name, s.data[start:s.pos:s.pos])
		if s.deepest > MaxNesting && o.tooDeep == "" {
			o.tooDeep = known
		}
		if more, ok := s.separator('}'); !ok || !more {
			return ok
		}
	}
}

// frames walks a message: one value, or the values of an array. take consumes
// each of them.
func (s *scanner) frames(take func() bool) bool {
	if s.peek() != '[' {
		return take()
	}
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		s.space()
		if !take() {
			return false
		}
		if more, ok := s.separator(']'); !ok || !more {
			return ok
		}
	}
}

// put stores the value of a member and returns the name for sentences. name is the scanned
// text: quotes, escapes, space and colon.
func (o *object) put(name, value []byte) string {
	plain := plainName(name)
	for range o.names {
		if o.expected == len(o.names) {
			o.expected = 0
		}
		i, known := o.expected, o.names[o.expected]
		o.expected++
		if string(plain) != known {
			continue
		}
		if o.raw[i] != nil {
			o.twice |= 1 << i
			return known
		}
		o.raw[i] = value
		o.seen |= 1 << i
		return known
	}
	if o.stranger == nil {
		o.stranger = name
	}
	return "a member"
}

// plainName decodes a scanned member name, which has quotes, escapes, space and colon, as
// far as known names need it.
func plainName(name []byte) []byte {
	name = name[1:bytes.LastIndexByte(name, '"')]
	if bytes.IndexByte(name, '\\') >= 0 {
		return unescapeName(name)
	}
	return name
}

// unescapeName resolves the escapes of a member name as far as a known name
// can need them: known names are ASCII, so whatever escape stands for
// something else becomes a byte that is in none of them.
func unescapeName(name []byte) []byte {
	plain := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '\\' {
			plain = append(plain, name[i])
			continue
		}
		i++
		c := byte(0)
		switch name[i] {
		case '"', '\\', '/':
			c = name[i]
		case 'u':
			if r, ok := hex4(name[i+1:]); ok && r < 0x80 {
				c = byte(r)
			}
			i += 4
		}
		plain = append(plain, c)
	}
	return plain
}

// refuse keeps the first broken rule. problem continues a sentence that begins with the
// name of the member.
func (o *object) refuse(code Code, field int, problem string) {
	if o.err == nil {
		o.refuseNamed(code, o.names[field], problem)
	}
}

func (o *object) refuseNamed(code Code, name, problem string) {
	if o.err == nil {
		o.err = Refuse(code, o.place()+name+" "+problem)
	}
}

func (o *object) nameOf(field int) string { return o.place() + o.names[field] }

// place is the text before the name of a member in a sentence.
func (o *object) place() string {
	if o.list == "" {
		return ""
	}
	return o.list + "[" + strconv.Itoa(o.index) + "]."
}

// checkMembers refuses what is wrong with the object as a whole: a member that came
// twice, nests too deep, or is not known. known has the bits of the names that this kind of
// object has.
func (o *object) checkMembers(known uint64) {
	o.once(known)
	if o.tooDeep != "" && o.err == nil {
		o.err = Refuse(CodeInvalidBody, o.tooDeep+" "+problemTooDeep)
	}
	if (o.stranger != nil || o.seen&^known != 0) && o.err == nil {
		o.err = Refuse(CodeUnknownMember, o.notKnown(known))
	}
}

// once refuses a known name that came twice.
func (o *object) once(known uint64) {
	if again := o.twice & known; again != 0 {
		o.refuse(CodeInvalidBody, bits.TrailingZeros64(again), "must not appear twice")
	}
}

// notKnown is the sentence about the first name that is in no table, or else about one that
// only other kinds of object have.
func (o *object) notKnown(known uint64) string {
	names := make([]string, 0, maxNames)
	for i, name := range o.names {
		if known&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if o.stranger == nil {
		return NotKnown(o.place(), o.names[bits.TrailingZeros64(o.seen&^known)], names)
	}
	return notKnown(o.place(), o.stranger, names)
}

// notKnown is NotKnown for a name as it was scanned.
func notKnown(place string, scanned []byte, known []string) string {
	name, _ := decodeString(scanned[:bytes.LastIndexByte(scanned, '"')+1])
	return NotKnown(place, name, known)
}

// given returns the extent of a member, nil when it is absent or null or when
// a rule is broken already.
func (o *object) given(field int) []byte {
	raw := o.raw[field]
	if o.err != nil || string(raw) == "null" {
		return nil
	}
	return raw
}

// integerRule is the rule of an integer member.
type integerRule struct {
	code      Code
	low, high int64
	// absent is the value of a member that is not there.
	absent int64
	// required makes an absent member a refusal.
	required bool
}

func (o *object) integer(field int, rule *integerRule) int64 {
	raw := o.given(field)
	if raw == nil {
		if rule.required {
			o.refuse(rule.code, field, "is required: "+rule.right())
		}
		return rule.absent
	}
	n, ok := ParseInteger(raw)
	if !ok || !o.answer && (n < rule.low || n > rule.high) {
		o.refuse(rule.code, field, "must be "+rule.right()+", got "+describe(raw))
		return rule.absent
	}
	return n
}

// checkGiven holds a number that was not read from JSON against its rule; 0 is absent.
func (o *object) checkGiven(field int, n int64, rule *integerRule) {
	if n != 0 && (n < rule.low || n > rule.high) {
		o.refuse(rule.code, field, fmt.Sprintf("must be %s, got %d", rule.right(), n))
	}
}

// checkGivenText does the same for a text; the empty one is absent if it may be.
func (o *object) checkGivenText(field int, text string, rule *textRule) {
	if !utf8.ValidString(text) {
		o.refuse(rule.code, field, "must be Unicode text, got bytes that are not UTF-8")
	}
	if text != "" || rule.required {
		o.checkText(field, text, rule)
	}
}

// right says which values the rule allows.
func (r *integerRule) right() string {
	switch {
	case r.high < math.MaxInt64:
		return fmt.Sprintf("an integer from %d to %d", r.low, r.high)
	case r.low > math.MinInt64:
		return fmt.Sprintf("an integer of at least %d", r.low)
	}
	return "an integer of 64 bits"
}

// describe names the kind of a bad value; it repeats only short numbers and words.
func describe(raw []byte) string {
	const shortNumber = 24
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f', 'n':
		return string(raw)
	}
	if len(raw) > shortNumber {
		return "a number of " + strconv.Itoa(len(raw)) + " characters"
	}
	return string(raw)
}

// checkText holds a text against its rule.
func (o *object) checkText(field int, text string, rule *textRule) {
	if code, problem := rule.fault(text); problem != "" {
		o.refuse(code, field, problem)
	}
}

// timeRule is the rule of a time member. A time before least becomes least.
type timeRule struct {
	code  Code
	least int64
}

// timeMs reads a time as Unix milliseconds, 0 when absent.
func (o *object) timeMs(field int, rule *timeRule) int64 {
	raw := o.given(field)
	if raw == nil {
		return 0
	}
	if raw[0] == '"' {
		text, _ := decodeString(raw)
		if ms, ok := ParseTimeMs(text); ok {
			return max(ms, rule.least)
		}
	}
	o.refuse(rule.code, field, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
	return 0
}

// elements returns the extents of the elements of a list member and reports
// whether the member was there. A list of more than high elements is refused;
// the extents cost nothing per byte of what is inside the elements, unlike a
// parsed tree, which a small message could blow up a hundredfold.
func (o *object) elements(field int, code Code, high int) ([][]byte, bool) {
	raw := o.given(field)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		o.refuse(code, field, "must be a list, got "+describe(raw))
		return nil, false
	}
	list, count := splitList(raw, high)
	if count > high {
		o.refuse(code, field, fmt.Sprintf("must have at most %d elements, got %d", high, count))
		return nil, false
	}
	return list, true
}

// splitList returns the extents of the first high elements of a list that has
// been scanned before, and how many elements it has.
func splitList(raw []byte, high int) (list [][]byte, count int) {
	s := scanner{data: raw, pos: 1}
	if s.peek() == ']' {
		return nil, 0
	}
	for more := true; more; count++ {
		s.space()
		start := s.pos
		ok := s.value(0)
		if ok && count < high {
			list = append(list, raw[start:s.pos:s.pos])
		}
		if ok {
			more, ok = s.separator(']')
		}
		if !ok {
			panic("a list that was scanned does not scan again: " + s.problemAt())
		}
	}
	return list, count
}

// element looks into one element of a list member as an object. Its depth was judged with
// the list.
func (o *object) element(field, index int, raw []byte, s *shape, code Code) object {
	inner := object{names: *s.names, list: o.nameOf(field), index: index, answer: o.answer}
	if raw[0] != '{' {
		inner.err = Refuse(code, fmt.Sprintf("%s[%d] must be an object, got %s", inner.list, index, describe(raw)))
		return inner
	}
	scan := scanner{data: raw}
	if !scan.object(&inner) {
		panic("an object that was scanned does not scan again: " + scan.problemAt())
	}
	if !inner.answer {
		inner.checkMembers(s.bits)
	}
	return inner
}

// taskID reads a task id. A string that is none names a task that nobody has.
func (o *object) taskID(field int) TaskID {
	text := o.text(field, &idRule)
	if o.err != nil {
		return TaskID{}
	}
	id, ok := ParseTaskID(text)
	if !ok || id.IsZero() {
		o.refuse(CodeTaskNotFound, field, "names no task")
	}
	return id
}

// token reads a lease token, the zero Token when it is absent and need not be
// there.
func (o *object) token(field int, rule *textRule) Token {
	text := o.text(field, rule)
	if o.err != nil || text == "" {
		return Token{}
	}
	token, ok := ParseToken(text)
	if !ok || token.IsZero() {
		o.refuse(rule.code, field, "must be the 32 lower-case hexadecimal digits that came with the task")
	}
	return token
}

// trueOrFalse reads a boolean; absent is false.
func (o *object) trueOrFalse(field int) bool {
	raw := o.given(field)
	if raw != nil && string(raw) != "true" && string(raw) != "false" {
		o.refuse(CodeInvalidArgument, field, "must be true or false, got "+describe(raw))
	}
	return string(raw) == "true"
}

// texts reads a list of strings of any length.
func (o *object) texts(field int) []string {
	list, _ := o.elements(field, CodeInvalidBody, math.MaxInt)
	var texts []string
	for _, raw := range list {
		if raw[0] != '"' {
			o.refuse(CodeInvalidBody, field, "must be a list of strings")
			break
		}
		text, _ := decodeString(raw)
		texts = append(texts, text)
	}
	return texts
}
