package auth

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The path of the file may lead elsewhere by a change at any part of it.
func TestAFileBehindAnyPartOfItsPathThatChangesIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		name, path string
		swap       [2]string // the second takes the place of the first
	}{
		{"a link to the directory", "x/link/tokens.yaml", [2]string{"x/link", "x/next"}},
		{"a link further up", "up/a/tokens.yaml", [2]string{"up", "upnext"}},
		{"a link behind a link", "one/tokens.yaml", [2]string{"two", "twonext"}},
		{"the directory itself", "x/a/tokens.yaml", [2]string{"x/a", "x/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			for _, d := range []string{"x/a", "x/b", "y/a"} {
				if err := os.MkdirAll(at(d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, at("x/a/tokens.yaml"), entryOf("old", everything))
			write(t, at("x/b/tokens.yaml"), entryOf("new", everything))
			write(t, at("y/a/tokens.yaml"), entryOf("new", everything))
			for name, to := range map[string]string{
				"x/link": "a", "x/next": "b", "up": "x", "upnext": at("y"),
				"one": "two", "two": "x/a", "twonext": "x/b",
			} {
				if err := os.Symlink(to, at(name)); err != nil {
					t.Fatal(err)
				}
			}
			tokens, err := OpenTokens(at(c.path))
			if err != nil {
				t.Fatal(err)
			}
			told := make(chan error, 100)
			stop, err := WatchFile(tokens.File(), tokens.Reload, func(err error) { told <- err })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if err := os.Rename(at(c.swap[0]), at("gone")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(at(c.swap[1]), at(c.swap[0])); err != nil {
				t.Fatal(err)
			}
			for {
				if _, refusal := tokens.Authenticate(context.Background(), "old"); refusal != nil {
					break
				}
				_ = toldOnce(t, told) // it may be seen while it is away
			}
			if _, refusal := tokens.Authenticate(context.Background(), "new"); refusal != nil {
				t.Errorf("the token of the new file: %v", refusal)
			}
		})
	}
}

// Somebody who may read the file may not look into each directory on the way: the
// file is watched all the same. The superuser may look everywhere, so this shows
// something to others only.
func TestAFileBelowADirectoryThatIsClosedIsWatched(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tokens.yaml")
	write(t, file, entryOf("old", everything))
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o300); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(above, 0o700) }() // so that it can be removed
	told := make(chan error, 100)
	stop, err := WatchFile(tokens.File(), tokens.Reload, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	write(t, file, entryOf("new", everything))
	for {
		if _, refusal := tokens.Authenticate(context.Background(), "new"); refusal == nil {
			return
		}
		_ = toldOnce(t, told) // it may be seen while it is empty
	}
}
