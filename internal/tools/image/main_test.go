package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var made = source{version: "1.2.3", commit: "0123456789ab", time: time.Unix(1_700_000_000, 0).UTC()}

func TestImageIsTheSameTwice(t *testing.T) {
	var digests []v1.Hash
	for range 2 {
		image, err := made.image("linux/arm64", []byte("program"))
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two images of the same program are %s and %s", digests[0], digests[1])
	}
}

// What is written is a layout whose digests and sizes hold.
func TestLayoutIsValid(t *testing.T) {
	image, err := made.image("linux/arm64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := layout.Write(t.TempDir(), mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image}))
	if err != nil {
		t.Fatal(err)
	}
	index, err := written.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
}

// Nobody but root may change what is in the image, and the program is not root.
func TestImageRunsAsNobody(t *testing.T) {
	image, err := made.image("linux/amd64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"User":"65532:65532"`, `"Entrypoint":["/codeq"]`, `"Test":["CMD","/codeq","health"]`, `"architecture":"amd64"`, `"StopSignal":"SIGTERM"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the configuration has no %s: %s", part, text)
		}
	}
	files, err := made.files([]byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*tar.Header{}
	for from := tar.NewReader(bytes.NewReader(files)); ; {
		h, err := from.Next()
		if err != nil {
			break
		}
		names[h.Name] = h
	}
	for name, h := range names {
		if own := name == "var/lib/codeq/"; own != (h.Uid == user) || h.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d and has the mode %o", name, h.Uid, h.Mode)
		}
	}
	if len(names) != 8 || names["etc/ssl/certs/ca-certificates.crt"].Size < 100_000 {
		t.Errorf("the image has %d files", len(names))
	}
}

func TestImageIsUnpacked(t *testing.T) {
	image, err := made.image("linux/amd64", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "root")
	if err := unpackTo(dir, image); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "codeq")); err != nil || string(text) != "program" {
		t.Errorf("it holds %q, %v", text, err)
	}
}
