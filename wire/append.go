package wire

import (
	"encoding/binary"
	"math/bits"
	"time"
	"unicode/utf8"
)

// AppendQuoted appends s as a JSON string. It replaces bytes that are not UTF-8 by U+FFFD,
// so its output is always valid.
func AppendQuoted(dst []byte, s string) []byte { return appendQuoted(dst, s) }

func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		if len(s)-i >= 8 {
			word := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
			if marks := specials(word) | word&topBits; marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
			} else {
				i += 8
				continue
			}
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[plain:i]...)
				dst = append(dst, "\ufffd"...)
				plain = i + 1
			}
			i += size
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[plain:i]...)
		dst = appendEscape(dst, c)
		i++
		plain = i
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of a quote, a backslash or a control
// character.
func appendEscape(dst []byte, c byte) []byte {
	const hexDigits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0x0f])
}

// The first and the last time of RFC 3339, in Unix milliseconds.
const (
	minTimeMs = -62_167_219_200_000
	maxTimeMs = 253_402_300_799_999
)

// AppendTimeMs appends Unix milliseconds as a JSON string: RFC 3339 in UTC, always with
// three digits of milliseconds. A time outside the years 0 to 9999, which the format does
// not have, becomes the nearest one inside.
func AppendTimeMs(dst []byte, unixMs int64) []byte {
	t := time.UnixMilli(min(max(unixMs, minTimeMs), maxTimeMs)).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendTwoDigits(append(dst, '"'), year/100)
	dst = appendTwoDigits(dst, year%100)
	dst = appendTwoDigits(append(dst, '-'), int(month))
	dst = appendTwoDigits(append(dst, '-'), day)
	dst = appendTwoDigits(append(dst, 'T'), hour)
	dst = appendTwoDigits(append(dst, ':'), minute)
	dst = appendTwoDigits(append(dst, ':'), second)
	ms := t.Nanosecond() / 1_000_000
	dst = append(dst, '.', byte('0'+ms/100))
	return append(appendTwoDigits(dst, ms%100), 'Z', '"')
}

func appendTwoDigits(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}

func appendTexts(dst []byte, lead string, texts []string) []byte {
	dst = append(append(dst, lead...), '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuoted(dst, text)
	}
	return append(dst, ']')
}
