package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCheckJSONKeepsTheGrammar(t *testing.T) {
	good := []string{
		`null`, `true`, `false`, `0`, `-0`, `-0.0`, `1e400`, `1E+5`, `10.25e-7`, `12345678901234567890`,
		`""`, `"\u0000\"\\\/\b\f\n\r\t\uD83d\uDE00"`, `"\ud800"`, `"\udc00\ud800x"`, "\"\u2028 é \U0001F600\x7f\"",
		`[]`, `{}`, `[[],{}]`, " \t\r\n[ 1 , 2 ]\n", `{"a":1,"a":2}`, `{"":""}`, `{ "a" : { "b" : [ ] } }`,
	}
	for _, text := range good {
		if err := CheckJSON([]byte(text)); err != nil {
			t.Errorf("CheckJSON(%q): %v", text, err)
		}
	}
	bad := map[string]string{
		``:                "not JSON: byte 0: a JSON value should begin here",
		` `:               "not JSON: byte 1: a JSON value should begin here",
		"\ufeff1":         "not JSON: byte 0: a JSON value should begin here",
		"\x00":            "not JSON: byte 0: a JSON value should begin here",
		`nul`:             "not JSON: byte 0: a JSON value should begin here",
		`NaN`:             "not JSON: byte 0: a JSON value should begin here",
		`tru e`:           "not JSON: byte 0: a JSON value should begin here",
		`+1`:              "not JSON: byte 0: a JSON value should begin here",
		`.5`:              "not JSON: byte 0: a JSON value should begin here",
		`'a'`:             "not JSON: byte 0: a JSON value should begin here",
		`-`:               "not JSON: byte 1: a digit should be here",
		`1.`:              "not JSON: byte 2: a digit should be here",
		`1.e5`:            "not JSON: byte 2: a digit should be here",
		`1e`:              "not JSON: byte 2: a digit should be here",
		`1e+`:             "not JSON: byte 3: a digit should be here",
		`01`:              "not JSON: byte 1: more text after the value",
		`1.2.3`:           "not JSON: byte 3: more text after the value",
		`0x10`:            "not JSON: byte 1: more text after the value",
		`{}0`:             "not JSON: byte 2: more text after the value",
		`{} {}`:           "not JSON: byte 3: more text after the value",
		"1\x00":           "not JSON: byte 1: more text after the value",
		`"`:               "not JSON: byte 1: the text ends inside a string",
		`"a\`:             "not JSON: byte 2: the text ends inside a string",
		"\"a\nb\"":        "not JSON: byte 2: a control character in a string must be escaped",
		"\"12345678\x00":  "not JSON: byte 9: a control character in a string must be escaped",
		`"\q"`:            "not JSON: byte 1: no such escape in a string",
		`"\u12"`:          `not JSON: byte 1: four hexadecimal digits should follow \u`,
		`"\u12g4"`:        `not JSON: byte 1: four hexadecimal digits should follow \u`,
		"\"\xff\"":        "not JSON: byte 1: not UTF-8",
		"\"é\xed\xa0\x80": "not JSON: byte 3: not UTF-8",
		`[1,]`:            "not JSON: byte 3: a JSON value should begin here",
		`[1 2]`:           "not JSON: byte 3: a comma or a closing bracket should be here",
		`[1`:              "not JSON: byte 2: a comma or a closing bracket should be here",
		`[1}`:             "not JSON: byte 2: a comma or a closing bracket should be here",
		`[`:               "not JSON: byte 1: a JSON value should begin here",
		`{`:               "not JSON: byte 1: a member name in double quotes should begin here",
		`{a:1}`:           "not JSON: byte 1: a member name in double quotes should begin here",
		`{"a":1,}`:        "not JSON: byte 7: a member name in double quotes should begin here",
		`{"a" 1}`:         "not JSON: byte 5: a colon should follow the member name",
		`{"a"`:            "not JSON: byte 4: a colon should follow the member name",
		`{"a":}`:          "not JSON: byte 5: a JSON value should begin here",
		`{"a":1]`:         "not JSON: byte 6: a comma or a closing bracket should be here",
	}
	for text, want := range bad {
		err := CheckJSON([]byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("CheckJSON(%q): %v, want %s", text, err, want)
		}
		if json.Valid([]byte(text)) && !strings.Contains(want, "UTF-8") {
			t.Errorf("the table is wrong: encoding/json accepts %q", text)
		}
	}
}

// nested is levels brackets around a number.
func nested(levels int) string {
	return strings.Repeat("[", levels) + "1" + strings.Repeat("]", levels)
}

func TestNestingEndsAfterMaxNestingLevels(t *testing.T) {
	if err := CheckJSON([]byte(nested(MaxNesting))); err != nil {
		t.Errorf("%d levels: %v", MaxNesting, err)
	}
	want := fmt.Sprintf("value must not nest deeper than %d levels", MaxNesting)
	if err := CheckJSON([]byte(nested(MaxNesting + 1))); err == nil || err.Error() != want {
		t.Errorf("%d levels: %v, want %s", MaxNesting+1, err, want)
	}
	mixed := strings.Repeat(`{"a":[`, MaxNesting/2) + strings.Repeat(`]}`, MaxNesting/2)
	if err := CheckJSON([]byte(mixed)); err != nil {
		t.Errorf("%d mixed levels: %v", MaxNesting, err)
	}
	if err := CheckJSON([]byte("[" + mixed + "]")); err == nil || err.Error() != want {
		t.Errorf("%d mixed levels: %v, want %s", MaxNesting+1, err, want)
	}
}

func TestEightMegabytesOfBracketsAreACleanRefusal(t *testing.T) {
	tower := []byte(strings.Repeat("[", MaxHTTPBodyBytes))
	if err := CheckJSON(tower); err == nil {
		t.Error("the tower passed")
	}
	if _, err := ParseEnqueueRequest(tower); err == nil || err.Code != CodeInvalidBody {
		t.Errorf("as a body: %v", err)
	}
	for _, unit := range []string{"[", `{"a":`, `[{"a":`, `{"payload":[`} {
		tower := []byte(strings.Repeat(unit, 100_000))
		if err := CheckJSON(tower); err == nil {
			t.Errorf("a tower of %s passed", unit)
		}
		if _, err := ParseEnqueueRequest(tower); err == nil || err.Code != CodeInvalidBody {
			t.Errorf("a body of %s: %v", unit, err)
		}
		if _, violation := ParseClientMessage(tower); violation == nil {
			t.Errorf("a message of %s passed", unit)
		}
		if _, err := ParseServerMessage(tower); err == nil {
			t.Errorf("an answer of %s passed", unit)
		}
	}
}

func TestObjectHandsOutUntouchedExtents(t *testing.T) {
	names := []string{"a", "payload", "absent"}
	text := "\n{ \"x\" : [ 1 ] , \"a\" :\t 1.50 , \"pay\\u006Coad\" : { \"z\" : \"\\u00e9\\/\" , \"z\":2 } , \"a\\nb\":1}"
	o := object{names: names}
	if problem := o.scanAlone([]byte(text)); problem != "" {
		t.Fatal(problem)
	}
	for i, want := range []string{"1.50", `{ "z" : "\u00e9\/" , "z":2 }`, ""} {
		if got := string(o.raw[i]); got != want {
			t.Errorf("%s is %q, want %q", names[i], got, want)
		}
		if cap(o.raw[i]) != len(o.raw[i]) {
			t.Errorf("%s can grow into what follows it", names[i])
		}
	}
	if o.twice != 0 {
		t.Errorf("twice is %b", o.twice)
	}
}

func TestObjectKnowsNamesHoweverTheyAreWritten(t *testing.T) {
	same := []string{`"a/b"`, `"a\/b"`, `"\u0061/b"`, `"a\u002fb"`, `"a\u002Fb"`, `"\u0061\u002f\u0062"`}
	for _, name := range same {
		o := object{names: []string{"a/b"}}
		if o.scanAlone([]byte("{"+name+":1}")) != "" || string(o.raw[0]) != "1" {
			t.Errorf("%s is not known as a/b", name)
		}
		twice := object{names: []string{"a/b"}}
		if twice.scanAlone([]byte(`{"a/b":1,`+name+`:2}`)) != "" || twice.twice != 1 || string(twice.raw[0]) != "1" {
			t.Errorf("%s is not noticed as the second a/b", name)
		}
	}
	other := []string{`"A/b"`, `"a/b\u0000"`, `" a/b"`, `"a\\/b"`, `"a\u012fb"`, `"a\ufe2fb"`, `"a\ud800b"`, `"a\nb"`, `""`}
	for _, name := range other {
		o := object{names: []string{"a/b"}}
		if o.scanAlone([]byte("{"+name+":1}")) != "" || o.raw[0] != nil {
			t.Errorf("%s is known as a/b", name)
		}
	}
}

func TestTablesOfNamesFit(t *testing.T) {
	tables := [][]string{requestNames, *artifactShape.names, *claimedShape.names, *lineShape.names, *recordShape.names, *errorShape.names, answerNames, *figuresShape.names}
	if requestNames[fieldTaskID] != "taskId" {
		t.Errorf("taskId is not where it should be in %v", requestNames)
	}
	for _, names := range tables {
		seen := map[string]bool{}
		for i, name := range names {
			if name == "" || seen[name] {
				t.Errorf("name %d (%q) of the table that begins with %s is empty or not alone", i, name, names[0])
			}
			seen[name] = true
		}
		if len(names) > maxNames {
			t.Errorf("the table that begins with %s has %d names, room is for %d", names[0], len(names), maxNames)
		}
	}
}

// TestSpecialsFindTheFirstByteThatMatters compares eight bytes at a time with
// one at a time.
func TestSpecialsFindTheFirstByteThatMatters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	interesting := []byte{0, 1, 0x1f, 0x20, 0x21, '"', '#', '[', '\\', ']', 0x7f, 0x80, 0x9f, 0xa0, 0xa2, 0xdc, 0xff}
	for range 40_000 {
		data := make([]byte, 1+rng.IntN(40))
		for i := range data {
			switch rng.IntN(8) {
			case 0:
				data[i] = interesting[rng.IntN(len(interesting))]
			default:
				data[i] = 0x23 + byte(rng.IntN(0x30))
			}
		}
		want := 0
		for want < len(data) && data[want] >= 0x20 && data[want] != '"' && data[want] != '\\' {
			want++
		}
		s := scanner{data: data}
		s.plainBytes()
		if s.pos != want {
			t.Fatalf("%q: stopped at %d, want %d", data, s.pos, want)
		}
	}
}
