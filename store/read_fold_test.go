package store

import (
	"strings"
	"testing"
)

func TestU06ReasonsAreFolded(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"no luck":                         "no luck",
		"  no luck \nTraceback of line 7": "no luck",
		"row 17 of 4,096 is missing":      "row # of # is missing",
		"took 1.5s, limit 30s":            "took #s, limit #s",
		`no file "a b.txt" for 'bob'`:     `no file "…" for "…"`,
		"don't, can't and won't":          "don't, can't and won't",
		"key `x` of `y'":                  "key \"…\" of `y'",
		"task 01a21f94-1000-7a11-8000-0a0a0a0a0001 is gone": "task # is gone",
		"commit deadbeef01 at 0x7fff":                       "commit # at #",
		"effaced facades stay":                              "effaced facades stay",
		"at 2026-11-29T07:31:00.5Z: refused":                "at #: refused",
		"at 2026-11-29 07:31:00 and 12:31":                  "at # and #",
		"exit status 3":                                     "exit status #",
		`an open "quote`:                                    `an open "quote`,
	} {
		got := groupingText(text)
		if got != want {
			t.Errorf("%q is folded to %q, want %q", text, got, want)
		}
		if again := groupingText(got); again != got {
			t.Errorf("%q is folded again to %q", got, again)
		}
	}
}

// A fold says no more than the line did, in one line, and folds no further.
func FuzzFoldReason(f *testing.F) {
	f.Add("row 17 of 'x' at 12:30")
	f.Add("a\"b\"c\nd")
	f.Fuzz(func(t *testing.T, text string) {
		got := groupingText(text)
		if strings.Contains(got, "\n") {
			t.Errorf("%q is folded to %q", text, got)
		}
		if again := groupingText(got); strings.Count(again, "#") > strings.Count(got, "#") {
			t.Errorf("%q is folded to %q, and that to %q", text, got, again)
		}
	})
}
