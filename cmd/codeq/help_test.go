package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"codeq/wire"
)

// grammar is the model of the command line.
func grammar() *kong.Application {
	var c cli
	return c.parser(newTerminal("").app, nil, func(int) {}).Model
}

// examplesOf are the command lines on the page of a command, as a shell would split
// them. What is behind a pipe or a comment is no part of them.
func examplesOf(t *testing.T, n *kong.Node) (lines [][]string) {
	t.Helper()
	for line := range strings.SplitSeq(n.Detail, "\n") {
		if !strings.HasPrefix(line, "  codeq ") {
			continue
		}
		line, _, _ = strings.Cut(line, " | ")
		line, _, _ = strings.Cut(line, " > ")
		line = strings.TrimPrefix(strings.TrimSpace(line), "codeq ")
		words, err := exec.Command("/bin/sh", "-c", "id="+heldID+" token="+heldToken+"; printf '%s\\0' "+line).Output()
		if err != nil {
			t.Fatalf("%s: %q: %v", n.Path(), line, err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00"))
	}
	return lines
}

// Every page has an example of its command, and every example is a command line that is
// taken.
func TestU10EveryCommandHasAnExample(t *testing.T) {
	leaves := grammar().Leaves(false)
	for _, n := range leaves {
		own := n.Path()
		if verb := n.Tag.Get("for"); verb != "" {
			own = verb
		}
		shown := false
		for _, words := range examplesOf(t, n) {
			var c cli
			parsed, err := c.parse(newTerminal("").app, words)
			if err != nil {
				t.Errorf("%s: %q: %v", n.Path(), words, err)
				continue
			}
			selected := parsed.Selected()
			shown = shown || selected.Path() == own || selected.Tag.Get("for") == own
		}
		if !shown {
			t.Errorf("the page of %s has no example of it", n.Path())
		}
	}
	if len(leaves) < 40 {
		t.Errorf("there are %d commands", len(leaves))
	}
}

// The first page lists every command on one screen of 24 lines and 80 columns.
func TestU10FirstPageIsOneScreen(t *testing.T) {
	code, out, errs := codeq("", "--help")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != exitFine || errs != "" || len(lines) > 24 {
		t.Errorf("exit code %d, %d lines, %s", code, len(lines), errs)
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	words := strings.FieldsFunc(out, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
	for _, n := range grammar().Children {
		names := []string{n.Name}
		for _, verb := range n.Children {
			names = append(names, verb.Name)
		}
		for _, name := range names {
			if !slices.Contains(words, name) {
				t.Errorf("%s %s is not there", n.Name, name)
			}
		}
	}
}

// "codeq help X" is "codeq X --help", and a short word has the page of its verb.
func TestU10HelpIsTheSamePageEverywhere(t *testing.T) {
	model := grammar()
	nouns := slices.DeleteFunc(slices.Clone(model.Children), (*kong.Node).Leaf)
	for _, n := range append(model.Leaves(false), nouns...) {
		words := strings.Fields(n.Path())
		_, want, _ := codeq("", append(words, "--help")...)
		code, out, errs := codeq("", append([]string{"help"}, words...)...)
		if code != exitFine || errs != "" || out != want || !strings.HasPrefix(out, "Usage: codeq "+n.Path()) {
			t.Errorf("help %s: exit code %d, %s%s", n.Path(), code, errs, out)
		}
	}
	_, want, _ := codeq("", "--help")
	if code, out, _ := codeq("", "help"); code != exitFine || out != want {
		t.Errorf("exit code %d, %s", code, out)
	}
	code, _, errs := codeq("", "help", "bogus")
	if code != exitWrong {
		t.Errorf("exit code %d", code)
	}
	oneSentence(t, errs, "bogus")
}

func TestU10VersionFlag(t *testing.T) {
	code, out, errs := codeq("", "--version")
	if code != exitFine || errs != "" || !strings.HasPrefix(out, "codeq unknown, commit unknown, go1") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d, %q, %s", code, out, errs)
	}
}

// A flag that a command could only ignore is refused, and not on its page.
func TestU10FlagsThatMeanNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "--print-config", "--url", nowhere}, {"serve", "--print-config", "--token", "a"}, {"doctor", ".", "--url", nowhere}, {"restore", "a", "b", "--token", "a"},
		{"token", "new", "--name", "a", "--url", nowhere}, {"completion", "bash", "--json"}, {"--quiet", "help"},
	} {
		code, out, errs := codeq("", args...)
		if code != exitWrong || out != "" {
			t.Errorf("%q: exit code %d, %s", args, code, out)
		}
		oneSentence(t, errs, "means nothing to \"codeq "+strings.TrimPrefix(args[0], "--quiet"))
	}
	t.Setenv("CODEQ_URL", nowhere)
	if code, _, errs := codeq("", "serve", "--print-config"); code != exitFine {
		t.Errorf("a variable for other commands: exit code %d, %s", code, errs)
	}
	if _, out, _ := codeq("", "serve", "--help"); strings.Contains(out, "--url") || !strings.Contains(out, "--json") {
		t.Errorf("the page of serve is\n%s", out)
	}
}

// constantsOf are the values of the constants or the names of the variables of a file
// whose names begin so.
func constantsOf(t *testing.T, file, prefix string) (found []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", filepath.FromSlash(file)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, is := spec.Values[0].(*ast.BasicLit); is {
			found = append(found, strings.Trim(literal.Value, `"`))
		} else {
			found = append(found, spec.Names[0].Name)
		}
		return true
	})
	return found
}

// A tag holds a literal, so each bound that package wire has is compared with it here.
func TestBoundsOfFlagsAreThoseOfTheServer(t *testing.T) {
	most := map[string]string{
		"codeq enqueue --max-attempts":    fmt.Sprint(wire.MaxAttemptsLimit),
		"codeq work --window":             fmt.Sprint(wire.MaxWindow),
		"codeq work --lease":              spanOf(wire.MaxLeaseSeconds),
		"codeq task claim --lease":        spanOf(wire.MaxLeaseSeconds),
		"codeq task heartbeat --extend":   spanOf(wire.MaxLeaseSeconds),
		"codeq task nack --delay":         fmt.Sprint(wire.MaxBackoffSeconds/3600, "h"),
		"codeq task nack --exit-code":     fmt.Sprint(wire.MaxExitCode),
		"codeq task complete --exit-code": fmt.Sprint(wire.MaxExitCode),
		"codeq task move --to":            fmt.Sprint(wire.MaxPriority),
		"codeq task cancel --priority":    fmt.Sprint(wire.MaxPriority),
		"codeq bench --queues":            fmt.Sprint(wire.MaxSubscribeCommands),
	}
	for _, n := range grammar().Leaves(false) {
		for _, flag := range n.Flags {
			name := "codeq " + n.Path() + " --" + flag.Name
			if want, ok := most[name]; ok {
				delete(most, name)
				if got := flag.Tag.Get("most"); got != want {
					t.Errorf("%s: most is %s, want %s", name, got, want)
				}
			}
		}
	}
	if len(most) > 0 {
		t.Errorf("there are no flags %v", most)
	}
}
