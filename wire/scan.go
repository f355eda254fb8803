package wire

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// recursionLimit bounds the depth to which the scanner follows brackets. It is
// far above MaxNesting so that a frame that merely nests too deeply is still
// recognised as JSON and refused alone, and far below what a stack can take.
const recursionLimit = 1000

const (
	problemTooDeep  = "must not nest deeper than 64 levels"
	problemNoObject = "must be one JSON object"
)

// CheckJSON reports why data is not exactly one JSON value: RFC 8259 grammar,
// valid UTF-8, brackets nested at most MaxNesting deep. Numbers of any size
// pass. It never copies data and may be called from any goroutine.
func CheckJSON(data []byte) error {
	s := scanner{data: data}
	if !s.utf8() || !s.value(0) || !s.end() {
		return errors.New("not JSON: " + s.problemAt())
	}
	if s.deepest > MaxNesting {
		return errors.New("value " + problemTooDeep)
	}
	return nil
}

// scanner walks JSON text and checks it on the way. Its methods return false
// at the first fault, which is then in problem and pos; nothing is scanned
// after that.
type scanner struct {
	data []byte
	pos  int
	// deepest is the deepest nesting met since the caller last set it to 0.
	deepest int
	problem string
}

func (s *scanner) fail(problem string) bool {
	s.problem = problem
	return false
}

// problemAt is the fault with its place, without any of the text around it.
func (s *scanner) problemAt() string {
	return "byte " + strconv.Itoa(s.pos) + ": " + s.problem
}

// utf8 checks the whole text at once; afterwards the string scanner need not
// look at bytes above 0x7f.
func (s *scanner) utf8() bool {
	if utf8.Valid(s.data) {
		return true
	}
	for {
		r, size := utf8.DecodeRune(s.data[s.pos:])
		if r == utf8.RuneError && size <= 1 {
			return s.fail("not UTF-8")
		}
		s.pos += size
	}
}

func (s *scanner) space() {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return
	}
	s.moreSpace()
}

// moreSpace is apart so that the common case, none, is inlined.
func (s *scanner) moreSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek skips space and returns the next byte, 0 at the end of the text.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

// end checks that nothing but space is left.
func (s *scanner) end() bool {
	s.space()
	if s.pos < len(s.data) {
		return s.fail("more text after the value")
	}
	return true
}

// value scans one value that lies inside depth open brackets.
func (s *scanner) value(depth int) bool {
	switch s.peek() {
	case '"':
		return s.string()
	case '{':
		return s.enter(depth+1) && s.restOfObject(depth+1)
	case '[':
		return s.enter(depth+1) && s.restOfArray(depth+1)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.fail("a JSON value should begin here")
}

// enter consumes an opening bracket.
func (s *scanner) enter(depth int) bool {
	if depth > recursionLimit {
		return s.fail("nested too deeply")
	}
	s.deepest = max(s.deepest, depth)
	s.pos++
	return true
}

func (s *scanner) restOfObject(depth int) bool {
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		if !s.memberName() || !s.value(depth) {
			return false
		}
		if more, ok := s.separator('}'); !ok || !more {
			return ok
		}
	}
}

func (s *scanner) restOfArray(depth int) bool {
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		if more, ok := s.separator(']'); !ok || !more {
			return ok
		}
	}
}

// memberName consumes a name and its colon.
func (s *scanner) memberName() bool {
	if s.peek() != '"' {
		return s.fail("a member name in double quotes should begin here")
	}
	if !s.string() {
		return false
	}
	if s.peek() != ':' {
		return s.fail("a colon should follow the member name")
	}
	s.pos++
	return true
}

// separator consumes a comma (more follows) or the closing bracket.
func (s *scanner) separator(closing byte) (more, ok bool) {
	switch s.peek() {
	case ',':
		s.pos++
		return true, true
	case closing:
		s.pos++
		return false, true
	}
	return false, s.fail("a comma or a closing bracket should be here")
}

func (s *scanner) word(word string) bool {
	end := s.pos + len(word)
	if end > len(s.data) || string(s.data[s.pos:end]) != word {
		return s.fail("a JSON value should begin here")
	}
	s.pos = end
	return true
}

func (s *scanner) number() bool {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.pos == len(s.data) || s.data[s.pos]|0x20 != 'e' {
		return true
	}
	s.pos++
	if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
		s.pos++
	}
	return s.digits()
}

// digits consumes one digit or more.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return s.fail("a digit should be here")
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// string consumes a string with its quotes. An escaped surrogate without its
// partner passes, as it does in most JSON parsers.
func (s *scanner) string() bool {
	s.pos++
	for {
		s.plainBytes()
		if s.pos == len(s.data) {
			return s.fail("the text ends inside a string")
		}
		switch s.data[s.pos] {
		case '"':
			s.pos++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default:
			return s.fail("a control character in a string must be escaped")
		}
	}
}

// plainBytes skips to the next byte of a string that means something: a
// quote, a backslash or a control character. It looks at eight bytes at a
// time, as strings are most of what it reads.
func (s *scanner) plainBytes() {
	data, pos := s.data, s.pos
	for ; pos+8 <= len(data); pos += 8 {
		if marks := specials(binary.LittleEndian.Uint64(data[pos:])); marks != 0 {
			s.pos = pos + bits.TrailingZeros64(marks)/8
			return
		}
	}
	for pos < len(data) && data[pos] >= 0x20 && data[pos] != '"' && data[pos] != '\\' {
		pos++
	}
	s.pos = pos
}

// topBits are those of the bytes above 0x7f.
const topBits = 0x8080808080808080

// specials sets the top bit of each of the eight bytes that ends a plain run.
// It subtracts in all bytes at once: where the byte was smaller than what is
// subtracted, its top bit comes up although it was not set before. A borrow
// can raise a false alarm only above a true one, so the lowest is true.
func specials(word uint64) uint64 {
	const each = 0x0101010101010101
	control := word - each*0x20
	quote := (word ^ each*'"') - each
	backslash := (word ^ each*'\\') - each
	return (control | quote | backslash) &^ word & topBits
}

func (s *scanner) escape() bool {
	rest := s.data[s.pos+1:]
	if len(rest) == 0 {
		return s.fail("the text ends inside a string")
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if _, ok := hex4(rest[1:]); ok {
			s.pos += 6
			return true
		}
		return s.fail(`four hexadecimal digits should follow \u`)
	}
	return s.fail("no such escape in a string")
}

// hex4 reads the four digits of a \u escape.
func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range text[:4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
