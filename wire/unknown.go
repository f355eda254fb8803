package wire

import (
	"bytes"
	"math/bits"
	"strconv"
	"strings"
)

const (
	// mostNearBytes is the longest name for which a near one is looked for, and
	// which a sentence repeats: a longer one could be a secret in a wrong place.
	mostNearBytes = 40
	// mostNear is how many letters a name that was meant may differ by.
	mostNear = 2
	// leastPart is the shortest name that is taken for a part of a longer one.
	leastPart = 3
	// mostListBytes is the longest list of names that a sentence ends with.
	mostListBytes = 180
)

// NotKnown is the sentence about a name that is not in known: it suggests the nearest known
// name, or lists all if none is near and the list is short. place is the text before the
// name, such as "tasks[3].". It may be called from any goroutine.
func NotKnown(place, name string, known []string) string {
	sentence := place + shownName(name) + " is not known"
	if near := Nearest(name, known); near != "" {
		return sentence + "; did you mean " + near + "?"
	}
	if len(known) == 0 {
		return sentence + "; nothing can be given here"
	}
	if list := strings.Join(known, ", "); len(list) <= mostListBytes {
		return sentence + "; known here: " + list
	}
	return sentence
}

// shownName is a name as a sentence has it: as it is if it is a plain word, in
// quotes if it is another short text, and its length if it is long.
func shownName(name string) string {
	odd := func(r rune) bool {
		return !isFoldedAway(byte(r)) && !isWordByte(byte(r)) && r != '~' && r != '>' || r >= 0x80
	}
	switch {
	case len(name) > mostNearBytes:
		return "(a name of " + strconv.Itoa(len(name)) + " bytes)"
	case name == "" || strings.ContainsFunc(name, odd):
		return strconv.Quote(name)
	}
	return name
}

// Nearest is the known name that name most likely means, "" if none is near. It ignores
// case, hyphens, underscores and dots. A near name differs by one letter that is changed,
// added or missing, or by two in a longer name. Without one, it is the only known name that
// contains name or is contained in it: delay means delaySeconds. It may be called from any
// goroutine.
func Nearest(name string, known []string) string {
	if len(name) > mostNearBytes {
		return ""
	}
	var space, other [mostNearBytes]byte
	plain := fold(space[:0], name)
	best, nearest := mostNear+1, ""
	part, parts := "", 0
	for _, k := range known {
		folded := fold(other[:0], k)
		if mayBeNear(plain, folded) {
			if d := distance(plain, folded); d < best && d <= (len(folded)+1)/3 {
				best, nearest = d, k
			}
		}
		if min(len(plain), len(folded)) >= leastPart && (bytes.Contains(plain, folded) || bytes.Contains(folded, plain)) {
			part, parts = k, parts+1
		}
	}
	if nearest == "" && parts == 1 {
		return part
	}
	return nearest
}

// fold appends a name without what does not count in it.
func fold(dst []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if !isFoldedAway(c) {
			dst = append(dst, c)
		}
	}
	return dst
}

func isFoldedAway(c byte) bool { return c == '_' || c == '-' || c == '.' }

func isWordByte(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

// mayBeNear is false for names of which the lengths or the letters differ by more
// than mostNear. Nearly all names that somebody makes up to keep the server busy
// cost no more than that.
func mayBeNear(a, b []byte) bool {
	longer := max(len(a), len(b))
	if longer-min(len(a), len(b)) > mostNear || longer > mostNearBytes {
		return false
	}
	ofA, ofB := letters(a), letters(b)
	return bits.OnesCount64(ofA&^ofB) <= mostNear && bits.OnesCount64(ofB&^ofA) <= mostNear
}

// letters has a bit for each letter of a name; some letters share one.
func letters(name []byte) (set uint64) {
	for _, c := range name {
		set |= 1 << (c & 63)
	}
	return set
}

// distance is how many letters must be put in, left out, changed or swapped with
// the next to get from one name to the other. Neither has more than mostNearBytes.
func distance(a, b []byte) int {
	var d [mostNearBytes + 1][mostNearBytes + 1]uint8
	for j := range len(b) + 1 {
		d[0][j] = uint8(j)
	}
	for i := range a {
		d[i+1][0] = uint8(i + 1)
		for j := range b {
			change := d[i][j]
			if a[i] != b[j] {
				change++
			}
			d[i+1][j+1] = min(change, d[i][j+1]+1, d[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return int(d[len(a)][len(b)])
}
