package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"codeq/internal/yamlfile"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/config.md anew")

// sample has a setting of every kind.
type sample struct {
	Word   string        `name:"word" default:"plain" help:"w"`
	Choice string        `name:"choice" default:"a" enum:"a,b" help:"c"`
	Open   int           `name:"open" range:"1..32" help:"o"`
	Size   Bytes         `name:"some-size" default:"2MiB" range:"1MiB..1GiB" help:"s"`
	For    time.Duration `name:"for" default:"10s" range:"0s..10m" help:"f"`
	On     bool          `name:"on" default:"false" help:"b"`
	Key    string        `name:"key" secret:"" help:"k"`
}

// Check lets the pair be wrong on purpose.
func (s *sample) Check(origin func(string) string) error {
	if s.Open == 13 && s.On {
		return fmt.Errorf("open (%s) of 13 and on (%s) exclude one another", origin("open"), origin("on"))
	}
	return nil
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codeq.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachSourceBeatsThoseBelowIt(t *testing.T) {
	path := file(t, "# settings\nword: from file\nchoice: b\nopen: 3\nsome-size: 4MiB\n")
	s := sample{Word: "from flag"}
	r, err := Resolve(&s, Sources{
		Flags: map[string]bool{"word": true}, File: path,
		Env: environment("CODEQ_WORD=from env", "CODEQ_CHOICE=a", "CODEQ_SOME_SIZE=", "CODEQ_ON=true"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := sample{Word: "from flag", Choice: "a", Open: 3, Size: 4 << 20, For: 10 * time.Second, On: true}
	if s != want {
		t.Errorf("\n got %+v\nwant %+v", s, want)
	}
	for name, origin := range map[string]string{
		"word": "--word", "choice": "CODEQ_CHOICE", "open": path + ":4", "some-size": path + ":5",
		"for": "default", "on": "CODEQ_ON", "key": "not set",
	} {
		if got := r.Origin(name); got != origin {
			t.Errorf("%s comes from %q, want %q", name, got, origin)
		}
	}
}

func TestWhatAFlagLeftInTheStructIsNoValue(t *testing.T) {
	s := sample{Open: 7, Word: "left over"}
	if _, err := Resolve(&s, Sources{}); err != nil || s.Open != 0 || s.Word != "plain" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBadSettingsAreToldWithWhereTheyStand(t *testing.T) {
	for content, want := range map[string]string{
		"opne: 3\n":                    `F:1: opne is not known; did you mean open?`,
		"on: true\nsome_size: 1\n":     `F:2: some_size is not known; did you mean some-size?`,
		"config: x\n":                  `F:1: config is not known; known here: word, choice, open, some-size, for, on, key`,
		"open: 33\n":                   `F:1: open must be from 1 to 32, got "33"`,
		"open: 0\n":                    `F:1: open must be from 1 to 32, got "0"`,
		"open: 0x10\n":                 `F:1: open must be a whole number, got "0x10"`,
		"\nopen: [1]\n":                "F:2: open must be a single value, got a list",
		"open:\n":                      "F:1: open must be a single value, got nothing",
		"open: 99999999999999999999\n": `F:1: open must be a whole number, got "99999999999999999999"`,
		"on: yes\n":                    `F:1: on must be true or false, got "yes"`,
		"for: ten\n":                   `F:1: for must be a time like 30s, 1m30s, 2h or 7d, or a number of seconds, got "ten"`,
		"for: 11m\n":                   `F:1: for must be from 0s to 10m, got "11m"`,
		"some-size: 512Mi\n":           `F:1: some-size must be a size like 512MiB, in B, KiB, MiB, GiB or TiB, got "512Mi"`,
		"some-size: 1KiB\n":            `F:1: some-size must be from 1MiB to 1GiB, got "1KiB"`,
		"choice: c\n":                  `F:1: choice must be one of a, b, got "c"`,
		"word: \"\"\n":                 "F:1: word must not be empty; leave it out for its default",
		"- word\n":                     "F:1: the file must be a map of settings like \"listen: 127.0.0.1:8080\", got a list",
		"word: a\nword: b\n":           "F:2: not YAML: this name is given twice in one map",
		"open: 0\non: 1\nzzz: 1\na: 2\n": "F:1: open must be from 1 to 32, got \"0\"\nF:2: on must be true or false, got \"1\"\n" +
			"F:3: zzz is not known; known here: word, choice, open, some-size, for, on, key\nF:4: a is not known; known here: word, choice, open, some-size, for, on, key",
		"open: 13\non: true\n": "open (F:1) of 13 and on (F:2) exclude one another",
	} {
		path := file(t, content)
		_, err := Resolve(&sample{}, Sources{File: path})
		if err == nil {
			t.Errorf("%q is taken", content)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), path, "F"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", content, got, want)
		}
	}
}

func TestBadFlagsAndVariablesAreNamed(t *testing.T) {
	_, err := Resolve(&sample{Open: 40, Choice: "z"}, Sources{
		Flags: map[string]bool{"open": true, "word": true, "choice": true}, Env: environment("CODEQ_SOME_SIZE=big", "CODEQ_OPEN=bad"),
	})
	want := "--word must not be empty; leave it out for its default\n" +
		"--choice must be one of a, b, got \"z\"\n" +
		"--open must be from 1 to 32, got \"40\"\n" +
		"CODEQ_SOME_SIZE must be a size like 512MiB, in B, KiB, MiB, GiB or TiB, got \"big\""
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if _, err := Resolve(&sample{}, Sources{File: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestASecretIsNeverShown(t *testing.T) {
	s := sample{}
	r, err := Resolve(&s, Sources{Env: environment("CODEQ_KEY=hunter2")})
	if err != nil || s.Key != "hunter2" {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, shown := range []string{string(r.Listing().AppendYAML(nil)), string(r.Listing().AppendJSON(nil))} {
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, "********") {
			t.Errorf("shown: %s", shown)
		}
	}
	type strict struct {
		Key string `name:"key" enum:"a" default:"a" secret:"" help:"k"`
	}
	if _, err := Resolve(&strict{}, Sources{Env: environment("CODEQ_KEY=hunter2")}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("refused with %v", err)
	}
}

func TestWhatIsPrintedCanBeReadBack(t *testing.T) {
	path := file(t, "word: \"a: #b\"\nfor: 90s\nsome-size: 1024KiB\nopen: 4\n")
	s := sample{}
	r, err := Resolve(&s, Sources{File: path, Env: environment("CODEQ_ON=true")})
	if err != nil {
		t.Fatal(err)
	}
	printed := r.Listing().AppendYAML(nil)
	want := `word: "a: #b"    # F:1
choice: a        # default
open: 4          # F:4
some-size: 1MiB  # F:3
for: 1m30s       # F:2
on: true         # CODEQ_ON
# key:           # not set
`
	if got := strings.ReplaceAll(string(printed), path, "F"); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	again := sample{}
	if _, err := Resolve(&again, Sources{File: file(t, string(printed))}); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("read back: %+v, %v, want %+v", again, err, s)
	}
	wantJSON := `{"settings":[{"name":"word","value":"a: #b","origin":"F:1"},{"name":"choice","value":"a","origin":"default"},` +
		`{"name":"open","value":"4","origin":"F:4"},{"name":"some-size","value":"1MiB","origin":"F:3"},` +
		`{"name":"for","value":"1m30s","origin":"F:2"},{"name":"on","value":"true","origin":"CODEQ_ON"},{"name":"key","origin":"not set"}]}`
	if got := strings.ReplaceAll(string(r.Listing().AppendJSON(nil)), path, "F"); got != wantJSON {
		t.Errorf("printed\n%s\nwant\n%s", got, wantJSON)
	}
}

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Bytes{"0B": 0, "1B": 1, "1KiB": 1024, "3GiB": 3 << 30, "1536MiB": 1536 << 20, "1TiB": 1 << 40} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want || b.String() != text {
			t.Errorf("%s is %d, %v, written %v", text, b, err, b)
		}
	}
	for _, text := range []string{"", "1", "MiB", "-1MiB", "+1MiB", "1.5GiB", "1 MiB", "1mib", "9999999999TiB", "8388608TiB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, b)
		}
	}
}

func TestTheDefaultsOfTheServerHoldTogether(t *testing.T) {
	s := Serve{}
	if _, err := Resolve(&s, Sources{}); err != nil {
		t.Fatal(err)
	}
	if s.Listen != "127.0.0.1:8080" || s.Memory != 512<<20 || s.ShutdownGrace != 10*time.Second || s.Shards != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPairsOfSettingsThatDoNotGoTogether(t *testing.T) {
	for content, want := range map[string]string{
		"tokens: t\ninsecure-no-auth: true\n": "tokens (F:1) and insecure-no-auth (F:2) contradict each other",
		"shards: 32\n":                        "shards of 32 (F:1) need a memory of at least 768MiB, but memory is 512MiB (default)",
		"shards: 6\nmemory: 128MiB\n":         "shards of 6 (F:1) need a memory of at least 144MiB, but memory is 128MiB (F:2)",
		"retention: 10us\n":                   "retention of 10µs (F:1) must be whole milliseconds",
	} {
		path := file(t, content)
		_, err := Resolve(&Serve{}, Sources{File: path})
		if err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), path, "F"), want) {
			t.Errorf("%q:\n got %v\nwant %s", content, err, want)
		}
	}
	for _, content := range []string{"tokens: t\n", "insecure-no-auth: true\n", "shards: 32\nmemory: 768MiB\n", "shards: 5\nmemory: 128MiB\n"} {
		if _, err := Resolve(&Serve{}, Sources{File: file(t, content)}); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestATableThatDoesNotHoldTogetherPanics(t *testing.T) {
	type noHelp struct {
		A string `name:"a"`
	}
	type badDefault struct {
		A int `name:"a" help:"a" default:"x"`
	}
	type badRange struct {
		A int `name:"a" help:"a" default:"1" range:"1"`
	}
	type badType struct {
		A float64 `name:"a" help:"a" default:"1"`
	}
	for _, of := range []any{&noHelp{}, &badDefault{}, &badRange{}, &badType{}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is a table", of)
				}
			}()
			Table(of)
		}()
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"", "listen: x\n", "{\"shards\": 4}", "memory: 1GiB\nshards: 6\n", "shards: 99\n", "nonsense: [1, {a: b}]\n", "data:\n", "log-level: trace",
		"shutdown-grace: 1h", "tokens: 'a\tb'\ninsecure-no-auth: true\n", "max-sessions: -1",
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "codeq.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := Serve{}
		r, err := Resolve(&s, Sources{File: path})
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Fatalf("the error does not say where: %v", err)
			}
			return
		}
		again := Serve{}
		printed := r.Listing().AppendYAML(nil)
		if err := os.WriteFile(path, printed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Resolve(&again, Sources{File: path}); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("printed\n%s\nread back as %+v, %v, want %+v", printed, again, err, s)
		}
		var refused *yamlfile.Error
		if errors.As(err, &refused) {
			t.Fatal("a good file with an error")
		}
	})
}
