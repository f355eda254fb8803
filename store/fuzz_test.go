package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// FuzzManifest: whatever stands in the manifest, it is either what a store
// could have written or a refusal that names the file. Nothing of it is changed.
func FuzzManifest(f *testing.F) {
	whole, err := json.Marshal(manifest{Version: manifestVersion, Shards: 4, CreationID: "c", State: stateReady, CreatedAt: "t"})
	if err != nil {
		f.Fatal(err)
	}
	for _, data := range []string{string(whole), "", "{}", "null", "[]", string(whole[:len(whole)-1]), string(whole) + "{}", "\x00\x00",
		`{"version":6}`, `{"version":5,"shards":33,"creationId":"c","state":"ready"}`, `{"version":5,"shards":-1,"creationId":"c","state":"new"}`,
		`{"version":5,"shards":1,"creationId":"c","state":"other"}`, `{"version":5,"shards":1,"state":"new"}`, `{"version":1e99}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := vfs.NewMem()
		file, err := fs.Create(manifestName, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		// Under the race detector this file system spoils what it was handed, to
		// find out who goes on using it.
		if _, err := file.Write(bytes.Clone(data)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		s := &Store{options: Options{FS: fs}}
		m, err := s.readManifest()
		if refused := (*RefusedError)(nil); err != nil && (!errors.As(err, &refused) || refused.File != manifestName) {
			t.Fatalf("%q is refused as %v", data, err)
		}
		if (err == nil) != (m != nil) {
			t.Fatalf("%q is %+v and %v", data, m, err)
		}
		if m != nil && (m.Shards < 1 || m.Shards > record.MaxShards || m.CreationID == "") {
			t.Errorf("%q is taken for %+v", data, m)
		}
		if left, err := readFile(fs, manifestName); err != nil || !bytes.Equal(left, data) {
			t.Errorf("%q is %q after a look (%v)", data, left, err)
		}
	})
}

// FuzzSynced: whatever stands in the file of notes, a note that is taken from it
// is written as it stands there, and none is taken twice.
func FuzzSynced(f *testing.F) {
	whole := appendNote(appendNote(nil, logFile{number: 7}, 4096), logFile{manifest: true, number: 1 << 40}, 1)
	for _, data := range [][]byte{nil, whole, whole[:len(whole)-1], whole[1:], make([]byte, syncedBytes), append(make([]byte, noteBytes), whole...),
		appendNote(whole, logFile{number: 7}, 2), appendNote(nil, logFile{}, -1)} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for file, length := range parseSynced(data) {
			if length <= 0 || !bytes.Contains(data, appendNote(nil, file, length)) {
				t.Errorf("%x is taken for %d bytes of %s", data, length, file.name())
			}
			if again, ok := parseLogFile(file.name()); !ok || again != file {
				t.Errorf("%s is taken for %+v", file.name(), again)
			}
		}
	})
}

// FuzzChunks: whatever stands in a log or a MANIFEST, its ends lie within it, and
// what is left when it is cut behind its last record is whole.
func FuzzChunks(f *testing.F) {
	fs := vfs.NewMem()
	s, err := Open(optionsIn(fs))
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	names, err := fs.List("data/db")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		if file, ok := parseLogFile(name); ok {
			data, err := readFile(fs, "data/db/"+name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, file.manifest, byte(file.number))
		}
	}
	f.Add(make([]byte, chunkBlock+8), false, byte(0))
	f.Fuzz(func(t *testing.T, data []byte, manifest bool, number byte) {
		file := logFile{manifest: manifest, number: uint64(number)}
		scan, err := scanChunks(file, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if scan.records > scan.end || scan.end > int64(len(data)) || scan.proof != 0 && scan.proof < scan.end {
			t.Errorf("%x: %+v", data, scan)
		}
		again, err := scanChunks(file, bytes.NewReader(data[:scan.records]))
		if err != nil || again.records != scan.records || again.end != scan.records {
			t.Errorf("%x: cut at the last record %+v, before %+v (%v)", data, again, scan, err)
		}
		firstLog(data)
	})
}
