package wire

import "math"

// What a single value may be is decided here, once: bodies, parameters,
// frames, flags, variables and files all read theirs with these functions. A
// value has one spelling where it can, white space is never part of one, and
// no function reads what it must not: the error or the false says so.

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
