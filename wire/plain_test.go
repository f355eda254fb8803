package wire

import (
	"encoding/binary"
	"errors"
	"testing"
	"unicode/utf16"
)

func TestN16PlainTextHasNoMarkAndNoOtherEncoding(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"\ufeff":              "",
		"\ufeff{}":            "{}",
		"{}\ufeff":            "{}\ufeff",
		"\ufeff\ufeffx":       "\ufeffx",
		"a\r\nb\r\n":          "a\r\nb\r\n",
		"not UTF-8 \xff\xfe.": "not UTF-8 \xff\xfe.",
		"\xef\xbb":            "\xef\xbb",
	} {
		if got, err := PlainText([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%q becomes %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"1\n2\n", "\ufeff{\"a\":1}\r\n", `"€"`} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			var coded []byte
			for _, unit := range utf16.Encode([]rune(text)) {
				coded = order.AppendUint16(coded, unit)
			}
			if got, err := PlainText(coded); !errors.Is(err, errEncoding) {
				t.Errorf("%q becomes %q, %v", coded, got, err)
			}
		}
	}
}

func TestN16CarriageReturnAloneIsNoLineEnd(t *testing.T) {
	for text, want := range map[string]error{
		"": nil, "\n": nil, "\r\n": nil, "a\r\nb\r\n": nil, "a\r": nil, "a\nb\r": nil,
		"a\rb": errLineEnds, "a\rb\r": errLineEnds, "a\r\rb": errLineEnds, "a\r\r\n": errLineEnds, "\ra\r\n": errLineEnds,
	} {
		if err := CheckLineEnds([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
