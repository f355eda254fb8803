package wire

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

// parsers lends fastjson parsers for short extents. A value dies with the
// parser's return, so whatever is kept is copied first.
var parsers fastjson.ParserPool

// decodeString returns what a scanned JSON string stands for. mended tells
// that it held a surrogate without its partner, which became U+FFFD.
func decodeString(raw []byte) (text string, mended bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), false
	}
	raw, mended = mendSurrogates(raw)
	parser := parsers.Get()
	defer parsers.Put(parser)
	value, err := parser.ParseBytes(raw)
	if err != nil {
		panic("a string that was scanned does not parse: " + err.Error())
	}
	plain, err := value.StringBytes()
	if err != nil {
		panic("a string that was scanned is none: " + err.Error())
	}
	return string(plain), mended
}

// mendSurrogates replaces each escaped surrogate without its partner by the
// escape of U+FFFD. fastjson would leave such an escape in the text as six
// characters, or swallow its neighbour. The input stays as it is.
func mendSurrogates(raw []byte) (mended []byte, changed bool) {
	mended = raw
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		r, _ := hex4(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if next := raw[i+1:]; bytes.HasPrefix(next, []byte(`\u`)) {
			low, _ := hex4(next[2:])
			if utf16.DecodeRune(r, low) != '\ufffd' {
				i += 6
				continue
			}
		}
		if !changed {
			mended, changed = bytes.Clone(raw), true
		}
		copy(mended[i-3:], "fffd")
	}
	return mended, changed
}

// FirstLine is the line of an error that says why: codeq work puts what a program said
// last there, and what came before it behind an empty line.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// Head is the first limitBytes of a text at most, cut between characters.
func Head(text string, limitBytes int) string {
	if len(text) <= limitBytes {
		return text
	}
	for limitBytes > 0 && !utf8.RuneStart(text[limitBytes]) {
		limitBytes--
	}
	return text[:limitBytes]
}

// Tail is the last limitBytes of a text at most, cut between characters.
func Tail(text string, limitBytes int) string {
	if len(text) <= limitBytes {
		return text
	}
	start := len(text) - limitBytes
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}
