package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"codeq/client"
	"codeq/config"
	"codeq/internal/auth"
	"codeq/internal/server"
	"codeq/wire"
)

// Kinds of values.
const (
	integer    = 'i' // in the ranges of all doors, which begin at 1
	zero       = 'z' // an integer that is none of those
	span       = 'd' // a time span
	timestamp  = 't'
	name       = 'n' // of a tenant, a subject, a worker
	commandOf  = 'c'
	credential = 'k'
	word       = 'w' // a path or a text of a setting
)

// texts are what people and programs put where a value belongs, with the kinds
// that they are good for. Whatever door a text comes through, it is the same.
var texts = []struct{ text, kinds string }{
	{"", ""}, {" ", ""}, {"\t", ""}, {"\n", ""}, {"\r", ""}, {"\u00a0", ""}, {"\u200b", "nw"}, {"\ufeff", ""}, {"\x00", ""},
	{"5", "idncwk"}, {"9", "idncwk"}, {"1", "idncwk"}, {"0", "zdncwk"}, {"-0", "zncwk"}, {"-1", "ncwk"}, {"+5", "nwk"}, {"05", "ncwk"}, {"00", "ncwk"},
	{" 5", "k"}, {"5 ", "k"}, {"\t5", "k"}, {"5\n", "k"}, {"5\r", "k"}, {"5\r\n", "k"}, {"5\u00a0", ""}, {"\u00a05", ""}, {"5\u200b", "nw"}, {"\ufeff5", ""},
	{"5\x00", ""}, {"5\x1b", ""}, {"5\u0085", ""}, {"5.0", "ncwk"}, {"5.", "ncwk"}, {".5", "ncwk"}, {"5e0", "ncwk"}, {"1e3", "ncwk"}, {"1E0", "ncwk"},
	{"5_000", "ncwk"}, {"5,0", "nwk"}, {"0x5", "ncwk"}, {"0b1", "ncwk"}, {"0o5", "ncwk"}, {"5L", "ncwk"}, {"\u0665", "nw"}, {"\uff15", "nw"}, {"\u0b6b", "nw"},
	{"\u00bd", "nw"}, {"NaN", "ncwk"}, {"Infinity", "ncwk"}, {"null", "ncwk"}, {"true", "ncwk"}, {"9223372036854775808", "ncwk"},
	{"99999999999999999999999", "ncwk"}, {"--5", "ncwk"}, {"5-", "ncwk"}, {"5 5", "nw"},
	{"5s", "dncwk"}, {"500ms", "dncwk"}, {"1m30s", "dncwk"}, {"1.5s", "dncwk"}, {"0h1m5s", "dncwk"}, {"05s", "dncwk"}, {"5000000\u00b5s", "dnw"},
	{"5S", "ncwk"}, {"5 s", "nw"}, {" 5s", "k"}, {"5s ", "k"}, {"5s\r", "k"}, {"+5s", "nwk"}, {"-5s", "ncwk"}, {".5s", "ncwk"}, {"5.s", "ncwk"}, {"5sec", "ncwk"},
	{"5d", "dncwk"}, {"PT5S", "ncwk"}, {"5_0s", "ncwk"}, {"1e1s", "ncwk"}, {"s", "ncwk"}, {"5\u03bcs", "nw"}, {"\u0665s", "nw"}, {"99999999h", "ncwk"},
	{"2031-01-02T03:04:05Z", "tncwk"}, {"2031-01-02T03:04:05.678Z", "tncwk"}, {"2031-01-02T03:04:05+01:00", "tnwk"}, {"2031-01-02T03:04:05-00:00", "tncwk"},
	{"2031-01-02t03:04:05Z", "ncwk"}, {"2031-01-02T03:04:05z", "ncwk"}, {"2031-01-02 03:04:05Z", "nw"}, {"2031-01-02T03:04:05", "ncwk"}, {"2031-01-02", "ncwk"},
	{"2031-01-02T03:04:05,678Z", "nwk"}, {"2031-01-02T3:04:05Z", "ncwk"}, {"2031-01-02T03:04Z", "ncwk"}, {"2031-01-02T03:04:60Z", "ncwk"},
	{"2031-01-02T24:00:00Z", "ncwk"}, {"2031-02-29T03:04:05Z", "ncwk"}, {"2031-01-02T03:04:05+0100", "nwk"}, {"2031-01-02T03:04:05+25:00", "nwk"},
	{"2031-01-02T03:04:05UTC", "ncwk"}, {"2031-01-02T03:04:05.Z", "ncwk"}, {" 2031-01-02T03:04:05Z", "k"}, {"2031-01-02T03:04:05Z\n", "k"}, {"1924560000", "ncwk"},
	{"a", "ncwk"}, {"a.b:c-d_e", "ncwk"}, {"a/b", "nwk"}, {"a b", "nw"}, {"a\tb", ""}, {"a\x7fb", ""}, {"a\ufeffb", ""}, {"caf\u00e9", "nw"}, {"cafe\u0301", "nw"},
	{"dir\r", "k"}, {"token\n", "k"}, {"\u2028a", ""}, {"\ufffd", "w"}, {"..", "nwk"}, {"'a'", "nwk"}, {`"a"`, "nwk"}, {`a\n`, "nwk"}, {"\U0001f600", "nw"},
}

// door is a way by which a value comes in.
type door struct {
	name string
	kind rune
	take func(text string) bool
	// except says why a text can not come this way, or comes as another; "" is
	// no exception.
	except func(text string) string
}

// quotedText is a text as JSON and YAML have it.
func quotedText(text string) string { return string(wire.AppendQuoted(nil, text)) }

func bareJSON(text string) string {
	if text == "null" {
		return "a member that is null counts as absent"
	}
	if text != strings.Trim(text, " \t\r\n") {
		return "JSON has white space around a number"
	}
	return ""
}

func emptyIsAbsent(text string) string {
	if text == "" {
		return "an empty variable is not set, and an empty name of a worker is none"
	}
	return ""
}

func noNUL(text string) string {
	if strings.Contains(text, "\x00") {
		return "no argument of a program has a NUL"
	}
	return ""
}

func separated(text string) string {
	if strings.Contains(text, ",") || text == "" || strings.Contains(text, `\`) {
		return "a list has its values between commas"
	}
	return noNUL(text)
}

// settingDoors are flag, variable and file of a setting of the server.
func settingDoors(t *testing.T, kind rune, setting string) []door {
	env := "CODEQ_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
	resolves := func(from config.Sources) bool {
		_, err := config.Resolve(&config.Serve{}, from)
		return err == nil
	}
	return []door{
		{"--" + setting, kind, func(text string) bool {
			code, _, _ := codeq("", "serve", "--print-config", "--"+setting+"="+text)
			return code == exitFine
		}, noNUL},
		{env, kind, func(text string) bool {
			return resolves(config.Sources{Env: func(name string) string {
				if name == env {
					return text
				}
				return ""
			}})
		}, emptyIsAbsent},
		{setting + " in a file", kind, func(text string) bool {
			return resolves(config.Sources{File: fileWith(t, "codeq.yaml", setting+": "+quotedText(text)+"\n")})
		}, nil},
	}
}

func entryIsGood(format, text string) bool {
	entry := strings.NewReplacer("TENANT", `"a"`, "SUBJECT", `"a"`, "COMMAND", `"a"`, "TIME", `"2031-01-02T03:04:05Z"`)
	line := strings.Replace(`[{"name":"a","sha256":"`+auth.HashToken("x")+`","tenant":TENANT,"subject":SUBJECT,"scopes":["worker"],"commands":[COMMAND],"expiresAt":TIME}]`,
		format, quotedText(text), 1)
	_, err := auth.ParseEntries("f", []byte(entry.Replace(line)))
	return err == nil
}

func bodyIsGood(member string) bool {
	_, refusal := wire.ParseEnqueueRequest([]byte(`{"command":"a","payload":1,` + member + `}`))
	return refusal == nil
}

func frameIsGood(frame string) bool {
	frames, violation := wire.ParseClientMessage([]byte(frame))
	if violation != nil || len(frames) != 1 {
		return false
	}
	_, unknown := frames[0].(*wire.Unknown)
	return !unknown
}

func claimIsGood(member string) bool {
	_, refusal := wire.ParseClaimRequest([]byte("{" + member + "}"))
	return refusal == nil
}

// numberDoors are those of integers, spans and times beside the settings.
func numberDoors(t *testing.T) []door {
	srv, err := server.Open(server.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	query := func(path string) func(string) bool {
		return func(text string) bool {
			response, err := http.Get("http://" + srv.Addr() + "/v1/codeq" + path + url.QueryEscape(text))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close() // the status says all
			return response.StatusCode != http.StatusBadRequest
		}
	}
	runAt := func(text string) bool {
		_, err := (&enqueueCmd{Command: "a", RunAt: &text}).template()
		return err == nil
	}
	return []door{
		{"priority in a body", integer, func(text string) bool { return bodyIsGood(`"priority":` + text) }, bareJSON},
		{"size in a frame", integer, func(text string) bool { return frameIsGood(`{"type":"window","size":` + text + `}`) }, bareJSON},
		{"waitSeconds", integer, query("/tasks/" + heldID + "/result?waitSeconds="), nil},
		{"limit of a list", integer, query("/admin/queues/a/tasks?state=ready&limit="), nil},
		{"--shards of the bench", integer, func(text string) bool {
			_, _, said := codeq("", "bench", "--shards="+text, "--queues=0")
			return !strings.Contains(said, "--shards")
		}, noNUL},
		{"--expires-in", span, func(text string) bool {
			code, _, _ := codeq("", "token", "new", "--name", "a", "--expires-in="+text)
			return code == exitFine
		}, func(text string) string {
			if text == "0" || text == "1924560000" {
				return "a token is good for some time, and may be for longer than ten years"
			}
			return noNUL(text)
		}},
		{"runAt in a body", timestamp, func(text string) bool { return bodyIsGood(`"runAt":` + quotedText(text)) }, nil},
		{"runAt in a frame", timestamp, func(text string) bool {
			return frameIsGood(`{"type":"enqueue","command":"a","payload":1,"runAt":` + quotedText(text) + `}`)
		}, nil},
		{"--run-at", timestamp, runAt, nil},
		{"expiresAt in a body", timestamp, func(text string) bool { return bodyIsGood(`"expiresAt":` + quotedText(text)) }, nil},
		{"expiresAt of a token", timestamp, func(text string) bool { return entryIsGood("TIME", text) }, nil},
		{"before of a purge", timestamp, func(text string) bool {
			_, refusal := wire.ParseBulkRequest([]byte(`{"before":`+quotedText(text)+`}`), wire.BulkDead, wire.BulkRequest{})
			return refusal == nil
		}, nil},
	}
}

// textDoors are those of names, commands, credentials and paths.
func textDoors(t *testing.T) []door {
	wrongPath := func(args ...string) func(string) bool {
		return func(text string) bool {
			_, _, said := codeq("", append(args, text)...)
			return !strings.Contains(said, "the path ")
		}
	}
	empty := filepath.Join(t.TempDir(), "none")
	return []door{
		{"tenant of a token", name, func(text string) bool { return entryIsGood("TENANT", text) }, nil},
		{"subject of a token", name, func(text string) bool { return entryIsGood("SUBJECT", text) }, nil},
		{"--tenant", name, func(text string) bool {
			code, _, _ := codeq("", "token", "new", "--name", "a", "--tenant="+text)
			return code == exitFine
		}, noNUL},
		{"workerId of a hello", name, func(text string) bool { return frameIsGood(`{"type":"hello","workerId":` + quotedText(text) + `}`) }, emptyIsAbsent},
		{"workerId of a claim", name, func(text string) bool { return claimIsGood(`"workerId":` + quotedText(text)) }, emptyIsAbsent},
		{"command in a body", commandOf, func(text string) bool {
			_, refusal := wire.ParseEnqueueRequest([]byte(`{"payload":1,"command":` + quotedText(text) + `}`))
			return refusal == nil
		}, nil},
		{"command in a frame", commandOf, func(text string) bool {
			return frameIsGood(`{"type":"subscribe","window":1,"commands":[` + quotedText(text) + `]}`)
		}, nil},
		{"command of a claim", commandOf, func(text string) bool { return claimIsGood(`"commands":[` + quotedText(text) + `]`) }, nil},
		{"command of a token", commandOf, func(text string) bool { return entryIsGood("COMMAND", text) }, nil},
		{"command of enqueue", commandOf, func(text string) bool {
			_, err := (&enqueueCmd{Command: text}).template()
			return err == nil
		}, nil},
		{"--command", commandOf, func(text string) bool {
			code, _, _ := codeq("", "token", "new", "--name", "a", "--command="+text)
			return code == exitFine
		}, separated},
		{"the token of a client", credential, func(text string) bool {
			_, err := client.New("127.0.0.1:1", client.WithToken(text))
			return err == nil
		}, emptyIsAbsent},
		{"--token", credential, func(text string) bool {
			code, _, _ := codeq("", "queues", "--url=127.0.0.1:1", "--token="+text)
			return code != exitWrong
		}, emptyIsAbsent},
		{"a token at the server", credential, func(text string) bool {
			digest := auth.HashToken(strings.Trim(text, " \t\r\n"))
			tokens, err := auth.OpenTokens(fileWith(t, "tokens.yaml",
				fmt.Sprintf(`[{"name":"a","sha256":"%s","tenant":"a","subject":"a","scopes":["read"]}]`, digest)))
			if err != nil {
				t.Fatal(err)
			}
			_, refusal := tokens.Authenticate(context.Background(), text)
			return refusal == nil
		}, nil},
		{"--config", word, func(text string) bool {
			_, _, said := codeq("", "serve", "--print-config", "--config="+text)
			return !strings.Contains(said, "the path ")
		}, emptyIsAbsent},
		{"the directory of doctor", word, wrongPath("doctor", "--"), noNUL},
		{"the directory of a backup", word, wrongPath("backup", "--url=127.0.0.1:1", "--"), noNUL},
		{"the directory of restore", word, wrongPath("restore", "--", t.TempDir()), noNUL},
		{"--file of enqueue", word, func(text string) bool {
			_, _, said := codeq("1", "enqueue", "--url=127.0.0.1:1", "a", "--file="+empty+text)
			return !strings.Contains(said, "the path ")
		}, func(text string) string {
			if strings.TrimLeft(text, " \t\r\n\u00a0\u2028") != text || text == "" {
				return "it has a path in front"
			}
			return noNUL(text)
		}},
	}
}

func TestN15EveryDoorTakesTheSameTexts(t *testing.T) {
	if len(texts) < 100 {
		t.Errorf("there are %d texts", len(texts))
	}
	doors := append(numberDoors(t), textDoors(t)...)
	doors = append(doors, settingDoors(t, integer, "ping-seconds")...)
	doors = append(doors, settingDoors(t, integer, "shards")...)
	doors = append(doors, settingDoors(t, span, "retention")...)
	doors = append(doors, settingDoors(t, word, "data")...)
	// The parser of the command line is made anew for each text, which takes minutes
	// under the race detector. The short form, which runs there, takes every fourth
	// text, from another one on at each door; the long form takes all.
	step := 1
	if testing.Short() {
		step = 4
	}
	for first, d := range doors {
		for i := first % step; i < len(texts); i += step {
			x := texts[i]
			if d.except != nil && d.except(x.text) != "" || d.kind == integer && strings.ContainsRune(x.kinds, zero) {
				continue
			}
			if got, want := d.take(x.text), strings.ContainsRune(x.kinds, d.kind); got != want {
				t.Errorf("%s takes %q: %t, want %t", d.name, x.text, got, want)
			}
		}
	}
}

// What would be sent, or made, by a value from a file of another system.
func TestN15WhiteSpaceAndControlCharactersAreCutOrNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"queues", "--token", "a b"}, "the token must be ASCII letters, digits and signs without white space inside, byte 1 is none; set it with --token or CODEQ_TOKEN"},
		{[]string{"queues", "--token", "a\nb"}, "CODEQ_TOKEN"},
		{[]string{"queues", "--token", " \n"}, "the token is nothing but white space"},
		{[]string{"queues", "--url", "http://127.0.0.1:1\x00"}, "address"},
		{[]string{"serve", "--data", "dir\r"}, "--data must not begin or end with white space"},
		{[]string{"serve", "--data", "a\x1bb"}, "--data must have no control characters"},
		{[]string{"serve", "--config", "a.yaml\n"}, "the path must not begin or end with white space"},
		{[]string{"serve", "--tokens", "a\r"}, "--tokens must not begin or end with white space"},
		{[]string{"backup", "dir\n"}, "the path must not begin or end with white space"},
		{[]string{"backup", ""}, "the path must not be empty"},
		{[]string{"doctor", ""}, "the path must not be empty"},
		{[]string{"token", "new", "--name", "a", "--file", "a\r"}, "the path must not begin or end with white space"},
	} {
		code, out, said := codeq("", c.args...)
		if code != exitWrong || out != "" {
			t.Errorf("%q: exit code %d, output %q", c.args, code, out)
		}
		oneSentence(t, said, c.want)
	}
	// The white space of a file around a credential and an address is cut.
	if code, _, said := codeq("", "queues", "--url", " http://127.0.0.1:1\r\n", "--token", "a\r\n"); code != exitAgain || !strings.Contains(said, "127.0.0.1:1") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
