package main

import (
	"errors"
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
	defer f.close()
	var all []line
	for {
		next, err := f.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, next)
	}
}

// naiveLines is the same by simpler means, for a text that is no other encoding.
func naiveLines(text string) (all []line) {
	size := 0
	rest := strings.SplitAfter(text, "\n")
	for i, one := range rest {
		size += len(one)
		data := strings.Trim(strings.TrimPrefix(one[:min(len(one), maxLineBytes)], "\ufeff"), " \t\r\n")
		if len(one) > maxLineBytes {
			data = strings.Trim(strings.TrimPrefix(one[:maxHeadBytes], "\ufeff"), " \t\r\n")
		} else if data == "" {
			continue
		}
		all = append(all, line{number: i + 1, data: []byte(data), tooLong: len(one) > maxLineBytes, size: size})
		size = 0
	}
	return all
}

func checkLines(t testing.TB, text string) {
	t.Helper()
	for _, from := range []string{fileOf(t, text), "-"} {
		f, err := openLines(t.Context(), from, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := linesOf(t, f), naiveLines(text); !reflect.DeepEqual(got, want) {
			t.Errorf("lines of %.100q from %s are %.200v, want %.200v", text, from, got, want)
		}
		if size := int64(len(text)); f.size != size && (from != "-" || f.size != -1) {
			t.Errorf("the size of %s is %d, want %d", from, f.size, size)
		}
	}
}

func TestLinesAreLikeThoseOfANaiveReader(t *testing.T) {
	checkLines(t, "")
	checkLines(t, "\n\n")
	checkLines(t, "1\n2")
	checkLines(t, "1\r\n \t\r\n{\"a\": 2 } \n")
	checkLines(t, "\ufeff1\r\n\ufeff2\r\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		b := &strings.Builder{}
		b.WriteString("1\n") // the first line says what the file is
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
	f, err := openLines(t.Context(), fileOf(t, "1\n"+strings.Repeat("x", 3*maxLineBytes)+"\n"+fits+"\n2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := linesOf(t, f)
	if len(got) != 4 || !got[1].tooLong || got[1].number != 2 || len(got[1].data) != maxHeadBytes ||
		string(got[2].data) != fits || string(got[3].data) != "2" {
		t.Errorf("got %d lines %.300v", len(got), got)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("2\r\n\n{}")
	f.Add(strings.Repeat("x", 70_000) + "\n1")
	f.Fuzz(func(t *testing.T, text string) { checkLines(t, "1\n"+text) })
}
