package record

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"codeq/wire"
)

// The values of this package are small flat JSON objects that it wrote
// itself, and one is read for every grant. A scanner made for that shape
// reads a record in well under a microsecond; a general parser takes several.

// ErrDamaged is what a decoder says of bytes that no encoder of this package made.
var ErrDamaged = errors.New("damaged value")

// scanner reads one JSON text. After the first mistake failed stays true,
// every read gives a zero value and nothing moves any more, so a decoder asks
// once at its end.
type scanner struct {
	text   string
	at     int
	failed bool
}

func (s *scanner) fail() { s.failed = true }

// end is the verdict over the whole text: one value and nothing behind it.
func (s *scanner) end() error {
	s.space()
	if s.failed || s.at != len(s.text) {
		return ErrDamaged
	}
	return nil
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.failed || s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// take steps over c, or fails.
func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// more is asked before each element of an object or array whose opening has
// been taken. It steps over the comma, or over the closing byte at the end.
func (s *scanner) more(first *bool, closing byte) bool {
	c := s.peek()
	if c == closing {
		s.at++
		return false
	}
	if !*first {
		s.take(',')
	}
	*first = false
	return !s.failed
}

// member reads the name of the next member and its colon; false at the end
// of the object.
func (s *scanner) member(first *bool) (name string, ok bool) {
	if !s.more(first, '}') {
		return "", false
	}
	name = s.str()
	s.take(':')
	return name, !s.failed
}

// str reads a string. Without escapes it is a part of the text, no copy.
func (s *scanner) str() string {
	s.take('"')
	if s.failed {
		return ""
	}
	start, i := s.at, s.at
	for i < len(s.text) && !special[s.text[i]] {
		i++
	}
	switch {
	case i == len(s.text):
	case s.text[i] == '"':
		s.at = i + 1
		return s.text[start:i]
	case s.text[i] == '\\':
		s.at = i
		return s.escaped(s.text[start:i])
	}
	s.fail()
	return ""
}

// special are the bytes that end the plain part of a string: the quote, the
// backslash and the control characters.
var special = func() (table [256]bool) {
	for c := range ' ' {
		table[c] = true
	}
	table['"'], table['\\'] = true, true
	return table
}()

// escaped reads on from the first escape of a string.
func (s *scanner) escaped(head string) string {
	out := []byte(head)
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out)
		case c < ' ':
			s.fail()
			return ""
		case c == '\\':
			out = s.escape(out)
			if s.failed {
				return ""
			}
		default:
			out = append(out, c)
		}
	}
	s.fail()
	return ""
}

const (
	escapeNames  = `"\/bfnrt`
	escapeValues = "\"\\/\b\f\n\r\t"
)

// escape reads what follows a backslash.
func (s *scanner) escape(out []byte) []byte {
	if s.at >= len(s.text) {
		s.fail()
		return out
	}
	c := s.text[s.at]
	s.at++
	if i := strings.IndexByte(escapeNames, c); i >= 0 {
		return append(out, escapeValues[i])
	}
	if c != 'u' {
		s.fail()
		return out
	}
	r := s.hex4()
	if utf16.IsSurrogate(r) {
		if !strings.HasPrefix(s.text[s.at:], `\u`) {
			s.fail()
			return out
		}
		s.at += 2
		if r = utf16.DecodeRune(r, s.hex4()); r == utf8.RuneError {
			s.fail()
		}
	}
	return utf8.AppendRune(out, r)
}

func (s *scanner) hex4() rune {
	if s.at+4 > len(s.text) {
		s.fail()
		return 0
	}
	n, err := strconv.ParseUint(s.text[s.at:s.at+4], 16, 32)
	if err != nil {
		s.fail()
		return 0
	}
	s.at += 4
	return rune(n)
}

// uint reads an integer without sign, fraction or exponent.
func (s *scanner) uint() uint64 {
	s.space()
	start := s.at
	var n uint64
	for s.at < len(s.text) {
		digit := s.text[s.at] - '0'
		if digit > 9 {
			break
		}
		if n > (math.MaxUint64-uint64(digit))/10 {
			s.fail()
			return 0
		}
		n = n*10 + uint64(digit)
		s.at++
	}
	digits := s.at - start
	if s.failed || digits == 0 || digits > 1 && s.text[start] == '0' {
		s.fail()
		return 0
	}
	return n
}

// int64 reads an integer that may be negative.
func (s *scanner) int64() int64 {
	negative := s.peek() == '-'
	if negative {
		s.at++
	}
	n := s.uint()
	switch {
	case negative && n <= 1<<63:
		return -int64(n)
	case !negative && n <= math.MaxInt64:
		return int64(n)
	}
	s.fail()
	return 0
}

func (s *scanner) int() int { return int(s.int64()) }

// isTrue reads one of the words true and false.
func (s *scanner) isTrue() bool {
	s.space()
	rest := s.text[s.at:]
	switch {
	case strings.HasPrefix(rest, "true"):
		s.at += len("true")
		return true
	case strings.HasPrefix(rest, "false"):
		s.at += len("false")
		return false
	}
	s.fail()
	return false
}

func (s *scanner) token() wire.Token {
	t, ok := wire.ParseToken(s.str())
	if !ok {
		s.fail()
	}
	return t
}

// skip steps over a value that this version does not know.
func (s *scanner) skip(nesting int) {
	if nesting > wire.MaxNesting {
		s.fail()
		return
	}
	first := true
	switch c := s.peek(); c {
	case '"':
		s.str()
	case '{':
		s.at++
		for _, ok := s.member(&first); ok; _, ok = s.member(&first) {
			s.skip(nesting + 1)
		}
	case '[':
		s.at++
		for s.more(&first, ']') {
			s.skip(nesting + 1)
		}
	default:
		s.skipWord()
	}
}

// skipWord steps over a number or one of the three words.
func (s *scanner) skipWord() {
	start := s.at
	for s.at < len(s.text) && strings.IndexByte(",]} \t\n\r", s.text[s.at]) < 0 {
		s.at++
	}
	switch word := s.text[start:s.at]; word {
	case "true", "false", "null":
	default:
		if _, err := strconv.ParseFloat(word, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			s.fail()
		}
	}
}

const lowerHex = "0123456789abcdef"

// appendQuoted appends a JSON string. Bytes of 0x80 and above are kept as
// they are, so that every string comes back exactly.
func appendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		if c < ' ' {
			dst = append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
		} else {
			dst = append(dst, '\\', c)
		}
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// The member functions append ,"name":value, and nothing for a zero value.
// The name is handed in with its comma, quotes and colon.

func appendStringMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendQuoted(append(dst, name...), value)
}

func appendIntMember(dst []byte, name string, value int64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), value, 10)
}

func appendUintMember(dst []byte, name string, value uint64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendUint(append(dst, name...), value, 10)
}

func appendTrueMember(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(append(dst, name...), "true"...)
}

func appendTokenMember(dst []byte, name string, value wire.Token) []byte {
	if value.IsZero() {
		return dst
	}
	dst = append(append(dst, name...), '"')
	return append(value.AppendTo(dst), '"')
}
