package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/record"
	"codeq/store"
)

func TestU12ABackupOfABusyServerIsRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, said := serve(t, filepath.Join(dir, "data"), "127.0.0.1:0")
	code, first, errs := command(t, said.URL, "enqueue", "copy", `{"n":1}`)
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	load := start(t, "bench", "--url", said.URL, "--seconds", "3", "--json")
	for _, name := range []string{"monday", "tuesday"} {
		if code, _, errs := command(t, said.URL, "backup", filepath.Join(dir, name)); code != exitFine {
			t.Fatalf("exit code %d, errors %q", code, errs)
		}
	}
	// The server notes the moment after the last byte has left it.
	for limit := time.Now().Add(10 * time.Second); !strings.Contains(pageOf(t, said.URL+"/metrics"), "\ncodeq_last_backup_timestamp_seconds "); {
		if time.Now().After(limit) {
			t.Fatal("no metric says when the newest backup was made")
		}
	}
	var measured struct{ Lost, Duplicated int }
	if code := load.exit(); code != exitFine {
		t.Errorf("the load ended with exit code %d, errors %q", code, load.err)
	}
	if err := json.Unmarshal([]byte(load.out.String()), &measured); err != nil || measured.Lost+measured.Duplicated > 0 {
		t.Errorf("the load says %q: %v", load.out, err)
	}
	for _, name := range []string{"monday", "tuesday"} {
		backup, restored := filepath.Join(dir, name), filepath.Join(dir, "restored "+name)
		if code, out, errs := command(t, said.URL, "doctor", backup); code != exitFine || out != "" {
			t.Errorf("%s: exit code %d, %q, errors %q", name, code, out, errs)
		}
		code, _, errs := command(t, said.URL, "serve", "--data", backup, "--listen", "127.0.0.1:0")
		has(t, errs, "is a backup of", "codeq restore")
		if code != exitFailed {
			t.Errorf("%s: a server over the backup: exit code %d, want %d", name, code, exitFailed)
		}
		code, _, errs = command(t, said.URL, "restore", backup, restored)
		oneSentence(t, errs, "start the server with")
		if code != exitFine {
			t.Fatalf("%s: exit code %d, errors %q", name, code, errs)
		}
		_, again := serve(t, restored, "127.0.0.1:0")
		if again.Created {
			t.Errorf("%s: the server made a new directory", name)
		}
		code, out, errs := command(t, again.URL, "task", strings.TrimSpace(first))
		if code != exitFine {
			t.Errorf("%s: exit code %d, errors %q", name, code, errs)
		}
		has(t, out, "PENDING", `{"n":1}`)
	}
}

func pageOf(t *testing.T, url string) string {
	t.Helper()
	page, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(page.Body)
	if err := errors.Join(err, page.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBackupWritesOverNothing(t *testing.T) {
	dir := t.TempDir()
	_, said := serve(t, filepath.Join(dir, "data"), "127.0.0.1:0")
	code, _, errs := command(t, said.URL, "backup", dir)
	oneSentence(t, errs, "exists already")
	if code != exitWrong {
		t.Errorf("exit code %d, want %d", code, exitWrong)
	}
	if err := os.Mkdir(filepath.Join(dir, "copy.part"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, errs = command(t, said.URL, "backup", filepath.Join(dir, "copy"))
	oneSentence(t, errs, "ended early")
	code, _, errs = command(t, said.URL, "backup", filepath.Join(dir, "no", "such", "parent"))
	if code != exitFine {
		t.Errorf("parents are made: exit code %d, errors %q", code, errs)
	}
}

func TestDoctorNamesWhatDoesNotAgreeAndRebuildsCounters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p, said := serve(t, dir, "127.0.0.1:0")
	if code, _, errs := command(t, said.URL, "enqueue", "sick", "1"); code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	code, _, errs := command(t, said.URL, "doctor", dir)
	oneSentence(t, errs, "in use")
	if code != exitFailed {
		t.Errorf("beside a server: exit code %d, want %d", code, exitFailed)
	}
	p.kill()
	if code, out, errs := command(t, said.URL, "doctor", dir); code != exitFine || out != "" {
		t.Errorf("a healthy directory: exit code %d, %q, errors %q", code, out, errs)
	}
	miscount(t, dir)
	code, out, _ := command(t, said.URL, "doctor", dir)
	has(t, out, "wrong-counters", "sick")
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	code, _, errs = command(t, said.URL, "doctor", dir, "--rebuild-counters")
	has(t, errs, "counters of", "in order")
	if code != exitFine {
		t.Errorf("exit code %d after the repair, errors %q", code, errs)
	}
	_, _, errs = command(t, said.URL, "restore", filepath.Join(dir, "nowhere"), filepath.Join(dir, "restored"))
	oneSentence(t, errs, `the directory is not there; name one that "codeq backup" has made`)
	code, _, errs = command(t, said.URL, "doctor", t.TempDir())
	oneSentence(t, errs, "holds no data of codeq")
	if code == exitFine {
		t.Error("an empty directory is in order")
	}
}

// miscount gives a queue a task too many in the counters of every shard.
func miscount(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, MustExist: true, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	for shard := range s.Shards() {
		span := s.Span(shard)
		span.Batch().PutCounters(record.QueueKey{Command: "sick", Tenant: "default"}, &record.Counters{Done: 7})
		if _, err := span.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Barrier(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A power cut takes nothing of a backup back that has its name: every file and directory
// is synced before it gets the name, and the directory with the name behind that.
func TestBackupIsDurableWithItsName(t *testing.T) {
	broken := errors.New("the disk is broken")
	copied := func(root string, fails int) (synced []string, err error) {
		name := filepath.Join(root, "monday")
		b := &backup{dir: name + backupPart, sync: func(f *os.File) error {
			what, err := filepath.Rel(root, f.Name())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(name); err == nil {
				what += " with the name"
			}
			if synced = append(synced, what); len(synced) == fails {
				return broken
			}
			return f.Sync()
		}}
		for _, file := range []string{"codeq.json", "db/000001.log"} {
			if err := b.write(file, 1, strings.NewReader("x")); err != nil {
				return synced, err
			}
		}
		return synced, b.finish(name)
	}
	synced, err := copied(t.TempDir(), 0)
	want := []string{"monday.part/codeq.json", "monday.part/db/000001.log", "monday.part", "monday.part/db", ". with the name"}
	if err != nil || !slices.Equal(synced, want) {
		t.Errorf("synced %q, %v, want %q", synced, err, want)
	}
	for n := range want {
		if synced, err := copied(t.TempDir(), n+1); !errors.Is(err, broken) {
			t.Errorf("sync %d of %q fails, and the backup says %v", n, synced, err)
		}
	}
}
