package auth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
)

// hash of the token "one", which is no token of the format but a credential
// like any other.
var hashOne = HashToken("one")

const entryHead = "- name: ci\n  sha256: HASH\n  tenant: acme\n  subject: builder\n"

func text(s string) []byte { return []byte(strings.ReplaceAll(s, "HASH", hashOne)) }

func TestEntriesAreReadFromYAMLAndJSON(t *testing.T) {
	want := []Entry{{
		Name: "ci", SHA256: hashOne, Tenant: "acme", Subject: "builder", Scopes: []string{"producer", "worker"},
		Commands: []string{"a.b", "c"}, ExpiresAtMs: 1955858400000,
	}}
	for _, file := range []string{
		"# first\n" + entryHead + "  scopes: [worker, producer]\n  commands:\n  - c\n  - a.b\n  expiresAt: 2031-12-24T05:00:00-01:00\n",
		`[{"name":"ci","sha256":"` + strings.ToUpper(hashOne) + `","tenant":"acme","subject":"builder",` +
			`"scopes":["producer","worker"],"commands":["a.b","c"],"expiresAt":"2031-12-24T06:00:00Z"}]`,
	} {
		got, err := ParseEntries("f", text(file))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", file, got, err, want)
		}
	}
	for _, file := range []string{"[]", "# none\n[]\n"} {
		if got, err := ParseEntries("f", []byte(file)); err != nil || len(got) != 0 {
			t.Errorf("%q: %+v, %v", file, got, err)
		}
	}
}

func TestABadEntryIsToldWithFileAndLine(t *testing.T) {
	good := entryHead + "  scopes: [admin]\n"
	certified := "- {name: n, certificate: a, tenant: t, subject: s, scopes: [read]}\n"
	for file, want := range map[string]string{
		"":                          "f: the file must be a list of tokens",
		"tokens: []\n":              "f:1: the file must be a list of tokens",
		"- a\n":                     "f:1: a token must be a map",
		"- name: ci\n  cq_abc: x\n": "f:2: a token has only name, sha256",
		"- name: x\n- name: y\n":    "f:1: this token has no sha256 and no certificate",
		good + "  certificate: a\n": "f:1: this token has sha256 and certificate: an entry is for a token or for a certificate",
		certified + strings.Replace(certified, "name: n", "name: m", 1): "f:2: certificate is that of the token on line 1 already",
		"- certificate: [a]\n":                                 "f:1: certificate must be a text, got a list",
		entryHead:                                              "f:1: this token has no scopes",
		entryHead + "  scopes: [worker]\n":                     "f:1: this token has no commands",
		entryHead + "  scopes: []\n":                           "f:5: scopes must name at least one of producer, worker, admin, operator, codeq:claim, ",
		entryHead + "  scopes: [root]\n":                       `f:5: scopes must be among producer, worker, admin, operator, codeq:claim, codeq:subscribe, codeq:heartbeat, codeq:result, codeq:nack, codeq:abandon, codeq:produce, codeq:read, codeq:admin, codeq:admin:all, read, got "root"`,
		entryHead + "  scopes: [read, read]\n":                 "f:5: scopes names something twice",
		entryHead + "  scopes: read\n":                         "f:5: scopes must be a list in brackets, got a single value",
		entryHead + "  scopes: [[read]]\n":                     "f:5: scopes must be a list of names, got a list in it",
		good + "  commands: [\"*\", a]\n":                      `f:6: commands has "*"`,
		good + "  commands: [a b]\n":                           "f:6: commands must be names of commands, prefixes like build.*, or *: command may hold",
		good + "  commands: [\"a*\"]\n":                        "f:6: commands must be names of commands, prefixes like build.*, or *: command may hold",
		good + "  expiresAt: tomorrow\n":                       "f:6: expiresAt must be a time like",
		good + "  name: x\n":                                   "f:6: not YAML: this name is given twice",
		good + good:                                            "f:6: name is that of the token on line 1 already",
		good + strings.Replace(good, "name: ci", "name: x", 1): "f:6: sha256 is that of the token on line 1 already",
		"- name: \"\"\n":                                       "f:1: name must not be empty",
		"- name: \"a\\e[1m\"\n":                                "f:1: name must have no control characters and no byte order mark, byte 1 is one",
		"- name: \" a\"\n":                                     "f:1: name must not begin or end with white space",
		"- name: [a]\n":                                        "f:1: name must be a text, got a list",
		"- tenant: " + strings.Repeat("a", 129) + "\n":         "f:1: tenant must be at most 128 bytes, got 129",
		"- sha256: abc\n":                                      "f:1: sha256 must be the SHA-256 of the token in 64 hexadecimal digits",
		"- sha256: cq_abc\n":                                   "f:1: sha256 holds a token itself",
	} {
		_, err := ParseEntries("f", text(file))
		var refused *yamlfile.Error
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", file, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), hashOne) || strings.Contains(err.Error(), "cq_abc")) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}

// shown is the word that a token has reached whoever wants it.
func shown() error { return nil }

func TestAnAppendedEntryIsReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := []Entry{
		{Name: "san", Certificate: "spiffe://a/b", Tenant: "t", Subject: "s", Scopes: []string{"read"}},
		{Name: "null", SHA256: HashToken("1"), Tenant: "~", Subject: "it's \"#1\": ok", Scopes: []string{"admin", "read"}},
		{Name: "1e9", SHA256: HashToken("2"), Tenant: "yes", Subject: "ünï", Scopes: []string{"worker"}, Commands: []string{"*"}},
		{Name: "c", SHA256: HashToken("3"), Tenant: "t", Subject: "s", Scopes: []string{"producer"},
			Commands: []string{"1", "a-b:c"}, ExpiresAtMs: 1955858400000},
	}
	for i := range entries {
		if err := AppendToFile(file, &entries[i], shown); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseEntries(file, data)
	if err != nil || !reflect.DeepEqual(got, entries) {
		t.Fatalf("\n got %+v, %v\nwant %+v", got, err, entries)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestEntriesThatAreAppendedAtOnceAreAllThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	const added = 30
	errs := make(chan error, added)
	for i := range added {
		name := fmt.Sprint("t", i)
		e := &Entry{
			Name: name, SHA256: HashToken(name), Tenant: "acme", Subject: name, Scopes: []string{ScopeRead}, Commands: []string{"c"},
		}
		go func() { errs <- AppendToFile(file, e, shown) }()
	}
	for range added {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := ParseEntries(file, data); err != nil || len(entries) != added {
		t.Errorf("the file has %d of %d entries: %v", len(entries), added, err)
	}
}

func TestAppendingKeepsWhatIsThereOrRefuses(t *testing.T) {
	dir := t.TempDir()
	e := &Entry{Name: "new", SHA256: HashToken("new"), Tenant: "t", Subject: "s", Scopes: []string{"read"}}
	for name, was := range map[string]string{
		"flow": "[]\n", "json": `[{"name":"x"}]`, "bad": "- name: [\n", "twice": "- name: new\n  sha256: HASH\n  tenant: t\n  subject: s\n  scopes: [read]\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text(was), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := AppendToFile(file, e, shown); err == nil {
			t.Errorf("%s: an entry was put behind %q", name, was)
		}
		if is, err := os.ReadFile(file); err != nil || string(is) != string(text(was)) {
			t.Errorf("%s: the refusal changed the file: %q, %v", name, is, err)
		}
	}
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	was := string(text(entryHead)) + "  scopes: [read]  # no newline"
	if err := os.WriteFile(file, []byte(was), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := AppendToFile(link, e, shown); err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(is), was+"\n- name: \"new\"") {
		t.Errorf("the file behind a link became %q, %v", is, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func FuzzParseEntries(f *testing.F) {
	for _, seed := range []string{
		"", "[]", entryHead + "  scopes: [admin]\n", entryHead + "  scopes: [worker]\n  commands: [\"*\"]\n  expiresAt: 2031-12-24T05:00:00Z\n",
		"- name: a\n- b\n", "[{\"name\":1}]", "- {}", "a: b", "- sha256: cq_x", "- {name: n, certificate: \"a: b\", tenant: t, subject: s, scopes: [read]}",
	} {
		f.Add(text(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := ParseEntries("f", data)
		var refused *yamlfile.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("an error of another type: %T %v", err, err)
		}
		var again []byte
		for i := range entries {
			e := &entries[i]
			if e.Tenant == "" || e.Subject == "" || len(e.Scopes) == 0 {
				t.Fatalf("an entry without what it needs: %+v", e)
			}
			// The file says it to the second.
			e.ExpiresAtMs -= e.ExpiresAtMs % 1000
			again = e.AppendYAML(again)
		}
		if len(entries) == 0 {
			return
		}
		same, err := ParseEntries("f", again)
		if err != nil || !reflect.DeepEqual(same, entries) {
			t.Fatalf("written and read again:\n%s\n got %+v, %v\nwant %+v", again, same, err, entries)
		}
	})
}
