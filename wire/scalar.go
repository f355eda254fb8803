package wire

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The functions of this file read single values for bodies, parameters, frames, flags,
// variables and files alike. A value has one spelling where that is possible, and white
// space is never part of it.

// ParseInteger reads an integer of 64 bits as JSON writes one: no sign but a
// minus, no zeros in front, no fraction, exponent, underscore or space. It may
// be called from any goroutine.
func ParseInteger[T string | []byte](text T) (int64, bool) {
	digits, negative := text, len(text) > 0 && text[0] == '-'
	if negative {
		digits = digits[1:]
	}
	const mostDigits = 19
	if len(digits) == 0 || len(digits) > mostDigits || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n uint64
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return 0, false
		}
		n = n*10 + uint64(digits[i]-'0')
	}
	switch {
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	case negative && n <= -math.MinInt64:
		return -int64(n), true
	}
	return 0, false
}

// durationUnits are the units of a time span, as time.Duration prints them, and d for
// 24 hours.
var durationUnits = []string{"d", "h", "m", "s", "ms", "us", "µs", "ns"}

// DurationForm is what ParseDuration reads. It continues a sentence that ends in "must
// be".
const DurationForm = "a time like 30s, 1m30s, 2h or 7d, or a number of seconds"

// ParseDuration reads a time span like 500ms, 1.5h, 1m30s or 7d, or a whole number of
// seconds: numbers with a unit each and nothing else, also no sign. It may be called
// from any goroutine.
func ParseDuration(text string) (time.Duration, bool) {
	if _, bare := ParseInteger(text); bare {
		text += "s"
	}
	var sum time.Duration
	for rest := text; rest != ""; {
		whole := rest
		if rest = strings.TrimLeft(rest, decimals); rest == whole {
			return 0, false
		}
		if fraction, dot := strings.CutPrefix(rest, "."); dot {
			rest = strings.TrimLeft(fraction, decimals)
			if rest == fraction {
				return 0, false
			}
		}
		number := whole[:len(whole)-len(rest)]
		end := strings.IndexAny(rest, decimals+".")
		if end < 0 {
			end = len(rest)
		}
		unit, times := rest[:end], time.Duration(1)
		if !slices.Contains(durationUnits, unit) {
			return 0, false
		}
		if unit == "d" {
			unit, times = "h", 24
		}
		d, err := time.ParseDuration(number + unit)
		if err != nil || d > (math.MaxInt64-sum)/times {
			return 0, false
		}
		sum += d * times
		rest = rest[end:]
	}
	return sum, text != ""
}

const decimals = "0123456789"

// ParseTimeMs reads an RFC 3339 time, which has a zone, as Unix milliseconds:
// 2026-01-31T12:00:00Z. T and Z are upper case, and no minute has 61 seconds.
// Parts of a millisecond round up, so that nothing happens before the time
// asked for. It may be called from any goroutine.
func ParseTimeMs(text string) (int64, bool) {
	// time takes an hour of one digit, and a comma for the point.
	const seconds = "2006-01-02T15:04:05"
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || len(text) <= len(seconds) || text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",") {
		return 0, false
	}
	ms := t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
	return ms, ms >= minTimeMs && ms <= maxTimeMs
}

// TextProblem says why a text cannot be a name, a path or a word of a setting: it has
// control characters, byte order marks, or white space around it. The problem continues a
// sentence that begins with the name of the text; "" is none. It may be called from any
// goroutine.
func TextProblem(text string) string {
	if strings.TrimSpace(text) != text {
		return "must not begin or end with white space"
	}
	for i, r := range text {
		if unicode.IsControl(r) || string(r) == ByteOrderMark {
			return "must have no control characters and no byte order mark, byte " + strconv.Itoa(i) + " is one"
		}
	}
	return ""
}

// NameProblem says why a text cannot be the name of a tenant, a subject, a token or a
// worker: it is empty, over most bytes, not Unicode, or has a TextProblem. It may be called
// from any goroutine.
func NameProblem(text string, most int) string {
	switch {
	case text == "":
		return "must not be empty"
	case len(text) > most:
		return "must be at most " + strconv.Itoa(most) + " bytes, got " + strconv.Itoa(len(text))
	case strings.ContainsRune(text, utf8.RuneError):
		return "must be Unicode text, without U+FFFD"
	}
	return TextProblem(text)
}

// ParseCredential cuts the white space around a bearer token. problem says why the rest
// cannot be in a header; it continues a sentence that begins with "the token" and does not
// show the token. An empty text is no credential and no problem. It may be called from any
// goroutine.
func ParseCredential(text string) (credential, problem string) {
	credential = strings.Trim(text, " \t\r\n")
	if credential == "" && text != "" {
		return "", "is nothing but white space"
	}
	for i := range len(credential) {
		if c := credential[i]; c <= ' ' || c > '~' {
			return "", "must be ASCII letters, digits and signs without white space inside, byte " + strconv.Itoa(i) + " is none"
		}
	}
	return credential, ""
}
