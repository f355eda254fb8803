package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// completions are lines up to the cursor, and what the shell must offer: all of it, or at
// least that.
var completions = []struct {
	line string
	all  bool
	want string
}{
	{"codeq ", false, "serve work enqueue task queue dlq session token backup restore doctor bench completion version help"},
	{"codeq ta", false, "task"},
	{"codeq task ", false, "show list result cancel claim complete nack release heartbeat"},
	{"codeq task l", true, "list"},
	{"codeq --url http://host:1 --json queue re", true, "resume"},
	{"codeq queue set mail --back", true, "--backoff --backoff-base --backoff-max"},
	{"codeq tasks mail --st", true, "--state --status"},
	{"codeq task list mail --state ", true, "ready delayed inProgress dlq done"},
	{"codeq task list mail --state d", true, "delayed dlq done"},
	{"codeq dlq list mail --cause ", true, "exhausted released_too_often failed all"},
	{"codeq serve --to", true, "--tokens"},
	{"codeq help ex", true, "exit-codes"},
	{"codeq help que", true, "queue queues"},
	{"codeq completion ", true, "bash zsh fish"},
	{"codeq work mail -- task l", true, ""},
	{"codeq work mail -- tool --wi", true, ""},
}

// shells complete a line by the script in the file that the variable script names, the words of it
// being their arguments. A variable itself has room for 128 KiB, and the script for fish is longer.
var shells = map[string]string{
	"bash": `set -u; source "$script"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _codeq; printf '%s\n' "${COMPREPLY[@]-}"`,
	// compadd works only while somebody types: what it would be given is printed.
	"zsh": `compdef() { :; }; compadd() { shift; for w in "$@"; do [[ $w == $current* ]] && print -r -- $w; done; }; _files() { :; }
		source "$script"; words=("$@") CURRENT=$#; _codeq; true`,
	"fish": `source "$script"; complete -C (string join ' ' -- $argv) | string replace -r '\t.*' ''; true`,
}

func TestU10ShellsComplete(t *testing.T) {
	for shell, program := range shells {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err) // runs where the shell is installed
			}
			code, script, errs := codeq("", "completion", shell)
			if code != exitFine || errs != "" {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			file := fileWith(t, "script", script)
			dir := t.TempDir() // without files, which are offered where no word is
			for _, c := range completions {
				args := append([]string{"-c", program}, strings.Split(c.line, " ")...)
				if shell != "fish" {
					args = slices.Insert(args, 2, shell) // what the shell calls itself
				}
				cmd := exec.Command(path, args...)
				cmd.Dir = dir
				cmd.Env = append(cmd.Environ(), "script="+file)
				out, err := cmd.CombinedOutput()
				got := strings.Fields(string(out))
				want := strings.Fields(c.want)
				missing := slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
				if err != nil || missing || c.all && len(got) != len(want) {
					t.Errorf("%q offers %q (%v), want %q", c.line, got, err, want)
				}
			}
		})
	}
}

// Nothing is run while somebody types.
func TestU10CompletionCallsNothing(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		_, script, _ := codeq("", "completion", shell)
		for line := range strings.SplitSeq(script, "\n") {
			line, _, _ = strings.Cut(line, "-d '")
			if !strings.HasPrefix(line, "#") && (strings.Contains(line, "$(codeq") || strings.Contains(line, "(codeq") || strings.Contains(line, "`")) {
				t.Errorf("%s: %s", shell, line)
			}
		}
	}
}
