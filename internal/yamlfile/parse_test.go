package yamlfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// describe writes a value as one line, with the line of every part.
func describe(v Value) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", v.Line)
	switch v.Kind {
	case Null:
		b.WriteString("~")
	case Scalar:
		fmt.Fprintf(&b, "%q", v.Text)
	case List:
		b.WriteString("[")
		for _, item := range v.Items {
			b.WriteString(describe(item) + " ")
		}
		b.WriteString("]")
	case Map:
		b.WriteString("{")
		for _, f := range v.Fields {
			fmt.Fprintf(&b, "%d %s=%s ", f.Line, f.Name, describe(f.Value))
		}
		b.WriteString("}")
	}
	return b.String()
}

func TestValuesKnowTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `0~`,
		"# only a comment\n":                `0~`,
		"---\n":                             `0~`,
		"a: 1\n":                            `1{1 a=1"1" }`,
		"\n# c\na: x\nb:\n  - 1\n  - yes\n": `3{3 a=3"x" 4 b=5[5"1" 6"yes" ] }`,
		"a: # nothing\nb: ~\n":              `1{1 a=1~ 2 b=2~ }`,
		"- name: 007\n  x: \"a\\tb\"\n- {name: z, l: [1, 2]}\n": `1[1{1 name=1"007" 2 x=2"a\tb" } 3{3 name=3"z" 3 l=3[3"1" 3"2" ] } ]`,
		"{\"a\": [true, null, -1.5],\n \"b\": {}}":              `1{1 a=1[1"true" 1~ 1"-1.5" ] 2 b=2{} }`,
		"a: |\n  one\n  two\nb: 0x10\n":                         `1{1 a=1"one\ntwo\n" 4 b=4"0x10" }`,
		"word":                                                  `1"word"`,
		"[]":                                                    `1[]`,
		"true: no\n1: 2\n":                                      `1{1 true=1"no" 2 1=2"2" }`,
		"\ufeffa: 1\r\nb:\r\n  - x\r\n":                         `1{1 a=1"1" 2 b=3[3"x" ] }`,
		"\ufeff{\"a\": 1}\r\n":                                  `1{1 a=1"1" }`,
	} {
		v, err := Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := describe(v); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestWhatIsNotReadIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":             "f:3: not YAML: this name is given twice in one map",
		"a: [1\n":                        "f:1: not YAML: sequence end token ']' not found",
		"x: 1\na: b: c\n":                "f:2: not YAML: mapping value is not allowed in this context",
		"a: &x 1\nb: *x\n":               "f:1: anchors, aliases, tags and merges are not read; write the value itself",
		"x: 1\na: !!str 1\n":             "f:2: anchors, aliases, tags and merges are not read; write the value itself",
		"a: 1\n---\nb: 2\n":              "f:3: a second document begins; a file has one",
		"a: \xff\n":                      "f:1: not UTF-8 text",
		"a: 1\nb: \x00\n":                "f: the text has zero bytes, as UTF-16 has; save it as UTF-8",
		"\xff\xfea\x00:\x00":             "f: the text has zero bytes, as UTF-16 has; save it as UTF-8",
		"a: 1\rb: 2\r":                   "f: the lines end with a carriage return (CR) alone; save the text with line feeds (LF or CRLF)",
		"a:\n" + strings.Repeat("[", 70): "f:2: lists or maps lie too deep in one another",
		strings.Repeat("- ", 70) + "1":   "f:1: lists or maps lie too deep in one another",
		strings.Repeat("[", 20) + strings.Repeat("]", 20): "f:1: lists or maps lie too deep in one another",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		if err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAnErrorDoesNotQuoteTheFile(t *testing.T) {
	const secret = "cq_c2VjcmV0"
	for _, text := range []string{
		secret + ": 1\n" + secret + ": 2\n", "a: [" + secret, "- " + secret + ": {", "%" + secret, "a: *" + secret,
		"a: '" + secret, "? " + secret + "\n? [" + secret + "]\n", "a: @" + secret, "a: !" + secret + "{ 1",
	} {
		_, err := Parse("f", []byte(text))
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error quotes the file: %v", text, err)
		}
	}
}

func TestAFileHasALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, []byte(strings.Repeat("#", MaxBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := Read(path)
	if err != nil || len(data) != MaxBytes {
		t.Fatalf("a file at the limit: %d bytes, %v", len(data), err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("#", MaxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, err := Read(path); !errors.As(err, &refused) {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := Parse("f", make([]byte, MaxBytes+1)); !errors.As(err, &refused) {
		t.Errorf("bytes over the limit: %v", err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "- a: b\n  c: [d, {e: f}]\n", "{\"a\":[1,null,true]}", "a: |\n  x\n", "? a\n: b\n", "<<: *x", "a: &b c",
		"---\n...\n---\nx", "'", "\"\\x", "!!binary |", "%YAML 1.2\n---\na", ": ", "- - - 1", "\t- 1", "a: 'b''c'\n", "{? a : b}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse("f", data)
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("an error of another type: %T %v", err, err)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		if err != nil && (refused.Line < 0 || refused.Line > lines) {
			t.Fatalf("line %d of %d: %v", refused.Line, lines, err)
		}
		if v.Line < 0 || v.Line > lines {
			t.Fatalf("line %d of %d", v.Line, lines)
		}
	})
}
