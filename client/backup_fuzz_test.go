package client

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"
)

// FuzzReadArchive: a backup is only whole when its manifest came last, and no
// file of it is longer or shorter than it said.
func FuzzReadArchive(f *testing.F) {
	archive := func(names ...string) []byte {
		var data bytes.Buffer
		w := tar.NewWriter(&data)
		for _, name := range names {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(name))}); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, name); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return data.Bytes()
	}
	whole := archive("000002.log", "db/MANIFEST-1", manifestFile)
	for _, data := range [][]byte{nil, whole, whole[:len(whole)-700], whole[:100], archive(manifestFile, "late"), archive()} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		last := ""
		err := readArchive(bytes.NewReader(data), func(name string, sizeBytes int64, content io.Reader) error {
			last = name
			n, err := io.Copy(io.Discard, content)
			if err == nil && n != sizeBytes {
				t.Fatalf("%q has %d bytes and said %d", name, n, sizeBytes)
			}
			return err
		})
		if err == nil && last != manifestFile {
			t.Fatalf("a backup that ends with %q is taken for whole", last)
		}
	})
}
