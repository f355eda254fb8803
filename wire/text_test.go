package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestDecodeStringAgreesWithTheStandardLibrary(t *testing.T) {
	cases := map[string]bool{
		`""`: false, `"plain é"`: false, `"\"\\\/\b\f\n\r\t"`: false, `"\u0000\u00e9\u20AC"`: false,
		`"\ud83d\ude00"`: false, `"\uD83D\uDE00x"`: false, `"\\ud800"`: false,
		`"\ud800"`: true, `"\udc00"`: true, `"\ud800A"`: true, `"\ud800\u0041"`: true, `"\ud800\n"`: true,
		`"\ud800\ud83d\ude00"`: true, `"\ude00\ud83d"`: true, `"x\ud800\\ud800"`: true, `"\ud800\ud800\udc00"`: true,
	}
	for raw, lone := range cases {
		input := []byte(raw)
		got, mended := decodeString(input)
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		if got != want || mended != lone {
			t.Errorf("%s: %q (mended %t), want %q (%t)", raw, got, mended, want, lone)
		}
		if string(input) != raw {
			t.Errorf("%s was changed to %s", raw, input)
		}
	}
}

func TestAppendQuotedMakesValidJSONOfAnyBytes(t *testing.T) {
	cases := map[string]string{
		"":                   `""`,
		"a b":                `"a b"`,
		awkward:              `"\"\\/\u0008\u000c\n\r\t\u0000\u001f` + "\x7f é \u2028 \U0001F600 <&>\"",
		"\xff":               "\"\ufffd\"",
		"a\xc3":              "\"a\ufffd\"",
		"\xed\xa0\x80b":      "\"\ufffd\ufffd\ufffdb\"",
		"é\xf0\x9f\x98":      "\"é\ufffd\ufffd\ufffd\"",
		"\ufffd":             "\"\ufffd\"",
		"\xf0\x9f\x98\x80\"": "\"\U0001F600\\\"\"",
	}
	for text, want := range cases {
		if got := string(AppendQuoted(nil, text)); got != want {
			t.Errorf("AppendQuoted(%q) = %s, want %s", text, got, want)
		}
		if got := string(appendQuoted(nil, []byte(text))); got != want {
			t.Errorf("the same as bytes (%q) = %s, want %s", text, got, want)
		}
	}
}

func TestAppendTimeMsAgreesWithTheStandardLibrary(t *testing.T) {
	moments := []int64{0, 1, -1, 999, -999, sampleTimeMs, 951_782_400_000, 4_107_542_399_999, minTimeMs, maxTimeMs}
	for n := range int64(5000) {
		moments = append(moments, n*50_680_460_160+n, -n*12_433_443_840-n)
	}
	for _, ms := range moments {
		want := time.UnixMilli(ms).UTC().Format(`"2006-01-02T15:04:05.000Z"`)
		if ms < minTimeMs || ms > maxTimeMs {
			t.Fatalf("%d is not a time of the test", ms)
		}
		if got := string(AppendTimeMs(nil, ms)); got != want {
			t.Fatalf("%d ms is %s, want %s", ms, got, want)
		}
	}
	ends := map[int64]string{maxTimeMs + 1: `"9999-12-31T23:59:59.999Z"`, minTimeMs - 1: `"0000-01-01T00:00:00.000Z"`}
	for ms, want := range ends {
		if got := string(AppendTimeMs(nil, ms)); got != want {
			t.Errorf("%d ms is %s, want %s", ms, got, want)
		}
	}
}

func TestTailIsCutBetweenCharacters(t *testing.T) {
	text := "a€b€c" // € has three bytes
	for limit := range len(text) + 2 {
		got := Tail(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || !strings.HasSuffix(text, got) {
			t.Errorf("tail of %d bytes is %q", limit, got)
		}
		if len(text) <= limit && got != text {
			t.Errorf("tail of %d bytes is %q, want all", limit, got)
		}
	}
	if got := Tail(text, 3); got != "c" {
		t.Errorf("tail of 3 bytes is %q, want c: the character before does not fit", got)
	}
}
