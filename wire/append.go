package wire

import (
	"strconv"
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

// The functions below append one member each. lead is the text before the value: comma,
// name and colon. Functions that begin with opt append nothing for an empty value.

func appendInt(dst []byte, lead string, n int64) []byte {
	return strconv.AppendInt(append(dst, lead...), n, 10)
}

func optInt(dst []byte, lead string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return appendInt(dst, lead, n)
}

func appendText(dst []byte, lead, text string) []byte {
	return AppendQuoted(append(dst, lead...), text)
}

func optText(dst []byte, lead, text string) []byte {
	if text == "" {
		return dst
	}
	return appendText(dst, lead, text)
}

func appendTime(dst []byte, lead string, unixMs int64) []byte {
	return AppendTimeMs(append(dst, lead...), unixMs)
}

func optTime(dst []byte, lead string, unixMs int64) []byte {
	if unixMs == 0 {
		return dst
	}
	return appendTime(dst, lead, unixMs)
}

func optRaw(dst []byte, lead string, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	return append(append(dst, lead...), raw...)
}

func appendTaskID(dst []byte, lead string, id TaskID) []byte {
	dst = append(append(dst, lead...), '"')
	return append(id.AppendTo(dst), '"')
}

func optTaskID(dst []byte, lead string, id TaskID) []byte {
	if id.IsZero() {
		return dst
	}
	return appendTaskID(dst, lead, id)
}

func appendToken(dst []byte, lead string, token Token) []byte {
	dst = append(append(dst, lead...), '"')
	return append(token.AppendTo(dst), '"')
}

func optToken(dst []byte, lead string, token Token) []byte {
	if token.IsZero() {
		return dst
	}
	return appendToken(dst, lead, token)
}

func appendTaskRefs(dst []byte, lead string, refs []TaskRef) []byte {
	dst = append(append(dst, lead...), '[')
	for i := range refs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTaskID(dst, `{"taskId":`, refs[i].TaskID)
		dst = optToken(dst, `,"leaseToken":`, refs[i].Token)
		dst = append(dst, '}')
	}
	return append(dst, ']')
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

func optArtifacts(dst []byte, lead string, artifacts []Artifact) []byte {
	if len(artifacts) == 0 {
		return dst
	}
	dst = append(append(dst, lead...), '[')
	for i := range artifacts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, `{"name":`, artifacts[i].Name)
		dst = appendText(dst, `,"url":`, artifacts[i].URL)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
