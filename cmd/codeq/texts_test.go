package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// utf16Of is a text as some editors save it.
func utf16Of(text string, order binary.AppendByteOrder) string {
	var coded []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		coded = order.AppendUint16(coded, unit)
	}
	return string(coded)
}

// A byte order mark and CRLF are how other systems write texts, and no part of
// what is in them.
func TestN16MarksAreDroppedWhereTextsAreRead(t *testing.T) {
	h := newHouse(t)
	code, out, err := h.run("\ufeff{\"a\":1}\r\n", "enqueue", "one", "--max-attempts", "7")
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, err)
	}
	has(t, h.fine("task", strings.TrimSpace(out)), `payload     {"a":1}`)
	h.fine("enqueue", "two", "\ufeff{\"b\":1}")

	words := strings.Fields(h.fine("claim", "one"))
	if code, _, err := h.run("\ufeff{\"sum\":12}\r\n", "complete", words[0], words[1], "-"); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, err)
	}
	has(t, h.fine("result", words[0]), `{"sum":12}`)

	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.yaml")
	if code, _, err := codeq("", "token", "new", "--name", "a", "--file", tokens); code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, err)
	}
	text, failed := os.ReadFile(tokens)
	if failed == nil {
		failed = os.WriteFile(tokens, []byte("\ufeff"+strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	if code, _, err := codeq("", "token", "new", "--name", "b", "--file", tokens); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, err)
	}
	config := fileWith(t, "config.yaml", "\ufeffdata: elsewhere\r\ntokens: "+tokens+"\r\n")
	code, out, err = codeq("", "serve", "--config", config, "--print-config")
	if code != exitFine {
		t.Errorf("exit code %d, errors %q", code, err)
	}
	has(t, out, "data: elsewhere")
}

// An encoding that is not read is named once, with what would be right.
func TestN16OtherEncodingsAreNamedOnce(t *testing.T) {
	h := newHouse(t)
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []string{"", "\ufeff"} {
			text := utf16Of(mark+"{\"a\":1}\r\n", order)
			for _, args := range [][]string{{"enqueue", "q"}, {"complete", heldID, heldToken, "-"}} {
				code, _, err := h.run(text, args...)
				if code != exitWrong {
					t.Errorf("%q: exit code %d", args, code)
				}
				oneSentence(t, err, "save it as UTF-8")
			}
			code, _, err := codeq("", "serve", "--config", fileWith(t, "config.yaml", text), "--print-config")
			if code == exitFine {
				t.Error("a config in UTF-16 was read")
			}
			oneSentence(t, err, "save it as UTF-8")
		}
	}
}
