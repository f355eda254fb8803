package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"codeq/wire"
)

// fileOf writes a file of lines.
func fileOf(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.ndjson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// linesOf reads a file of lines as a bulk does.
func linesOf(t testing.TB, f *lineFile) []line {
	t.Helper()
	var all []line
	reader := f.lines()
	for {
		next, err := reader.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, next)
	}
}

// naiveLines is the same by simpler means.
func naiveLines(text string) (all []line) {
	for i, one := range strings.Split(text, "\n") {
		one = strings.Trim(one, " \t\r")
		switch {
		case len(one)+1 > maxLineBytes:
			all = append(all, line{number: i + 1, tooLong: true})
		case one != "":
			all = append(all, line{number: i + 1, data: []byte(one)})
		}
	}
	return all
}

func checkLines(t testing.TB, text string) {
	t.Helper()
	for _, from := range []string{fileOf(t, text), "-"} {
		f, err := openLines(from, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, want := linesOf(t, f), naiveLines(text)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("lines of %.100q from %s are %.200v, want %.200v", text, from, got, want)
		}
		if counted := strings.Count(text, "\n"); f.count != counted && f.count != counted+1 {
			t.Errorf("%d lines counted in %.100q", f.count, text)
		}
		if want := fmt.Sprintf("sha256:%x:7", sha256.Sum256([]byte(text))); f.key(7) != want {
			t.Errorf("the key is %s, want %s", f.key(7), want)
		}
		name := f.file.Name()
		if err := f.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(name); from == "-" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy of standard input is left behind: %v", err)
		}
	}
}

func TestLinesAreLikeThoseOfANaiveReader(t *testing.T) {
	checkLines(t, "")
	checkLines(t, "\n\n")
	checkLines(t, "1\n2")
	checkLines(t, "1\r\n \t\r\n{\"a\": 2 } \n")
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString(strings.Repeat(string(" \t\r\nxy{"[random.IntN(7)]), 1+random.IntN(3)))
			if random.IntN(20) == 0 {
				b.WriteString(strings.Repeat("z", random.IntN(100_000)))
			}
		}
		checkLines(t, b.String())
	}
}

func TestLineThatIsTooLongIsNamedAndTheNextOneRead(t *testing.T) {
	fits := `"` + strings.Repeat("x", wire.MaxPayloadBytes-2) + `"`
	f, err := openLines(fileOf(t, "1\n"+strings.Repeat("x", 3*maxLineBytes)+"\n"+fits+"\n2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := linesOf(t, f)
	if len(got) != 4 || !got[1].tooLong || got[1].number != 2 || len(got[1].data) != 0 ||
		string(got[2].data) != fits || string(got[3].data) != "2" {
		t.Errorf("got %d lines %.300v", len(got), got)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}

func TestFileThatChangesBetweenItsReadingsIsNoticed(t *testing.T) {
	path := fileOf(t, "1\n2\n")
	f, err := openLines(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("1\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := f.lines()
	for range 2 {
		if _, err := reader.next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := reader.next(); !errors.Is(err, errChanged) {
		t.Errorf("error %v, want errChanged", err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("1\n2\r\n\n{}")
	f.Add(strings.Repeat("x", 70_000) + "\n1")
	f.Fuzz(func(t *testing.T, text string) { checkLines(t, text) })
}
