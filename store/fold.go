package store

import (
	"regexp"
	"strings"
)

// varying is what differs between errors that have one reason: quoted text, UUIDs,
// times, long hexadecimal words and numbers. An apostrophe within a word is no
// quote. What comes first in the list is tried first.
var varying = regexp.MustCompile(strings.Join([]string{
	`"[^"]*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`,
	`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?`,
	`\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?`,
	`\b0[xX][0-9a-fA-F]+\b`, `\b[0-9a-fA-F]{8,}\b`, `\d+(?:[.,]\d+)*`,
}, "|"))

// foldReason is the first line of an error without what varies: a quoted text
// becomes "…", everything else #.
func foldReason(text string) string {
	return varying.ReplaceAllStringFunc(firstLine(text), func(found string) string {
		switch {
		case strings.ContainsAny(found[:1], "\"'`"):
			return `"…"`
		case !strings.ContainsAny(found, "0123456789"):
			return found // a word of the letters a to f
		}
		return "#"
	})
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}
