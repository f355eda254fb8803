package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

var released = time.Unix(1_700_000_000, 0).UTC()

func TestArchivesAreTheSameTwice(t *testing.T) {
	files := []file{{"codeq", 0o755, []byte("program")}, {"completion/_codeq", 0o644, []byte("script")}}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"tar": func(b *bytes.Buffer) error { return tarred(b, "codeq_1", files, released) },
		"zip": func(b *bytes.Buffer) error { return zipped(b, "codeq_1", files, released) },
	} {
		var one, two bytes.Buffer
		if err := write(&one); err != nil {
			t.Fatal(err)
		}
		if err := write(&two); err != nil {
			t.Fatal(err)
		}
		if one.Len() == 0 || !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: %d and %d bytes differ", name, one.Len(), two.Len())
		}
	}
}

// The bill of a program names what the linker put into it: here that of this test.
func TestBillNamesEveryModule(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&release{version: "1.2.3", commit: "0123456789ab", time: released}).bill(self, "linux/amd64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	var b cdx.BOM
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.BOMFormat != "CycloneDX" || b.Metadata.Component.Version != "1.2.3" || b.Metadata.Timestamp != "2023-11-14T22:13:20Z" || b.SerialNumber != "" {
		t.Errorf("the bill begins with %s", text[:200])
	}
	if len(*b.Components) != len(info.Deps)+1 {
		t.Errorf("%d parts, the program has %d modules and the standard library", len(*b.Components), len(info.Deps))
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(text), `"purl": "pkg:golang/`+m.Path+"@"+m.Version) {
			t.Errorf("%s is not in the bill", m.Path)
		}
	}
}
