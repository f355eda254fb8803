package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"codeq/config"
)

//go:generate go test -run TestThePagesOfCommandsAreFresh -rewrite .

var rewrite = flag.Bool("rewrite", false, "write docs/reference/commands.md and the tables of docs/cli.md anew")

const (
	commandsPage = "../../docs/reference/commands.md"
	cliPage      = "../../docs/cli.md"
	commandsHead = "| Command | Short | What it does |\n|---|---|---|\n"
	exitHead     = "| Code | Name | When |\n|---|---|---|\n"
	flagHead     = "| Argument or flag | Default | Meaning |\n|---|---|---|\n"
)

// The page of commands, and the tables of commands, common flags and exit codes in cli.md, are written from the same
// table as the help. With -rewrite they are written; the text around the tables is written by hand.
func TestThePagesOfCommandsAreFresh(t *testing.T) {
	var c cli
	model := c.parser(&app{}, nil, func(int) {}).Model
	got, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	page := withTable(t, string(got), commandsHead, commandRows(model))
	page = withTable(t, page, flagHead, rowsOf(nil, model.Flags))
	fresh(t, cliPage, withTable(t, page, exitHead, exitRows()))
	fresh(t, commandsPage, commandsText(model))
}

// fresh compares a page with what it must be, or writes it.
func fresh(t *testing.T, name, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the program says: run \"go generate ./cmd/codeq\"", name)
	}
}

// withTable is a page with other rows below the head of a table.
func withTable(t *testing.T, page, head, rows string) string {
	t.Helper()
	before, rest, found := strings.Cut(page, head)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("there is no table that begins with\n%s", head)
	}
	return before + head + rows + "\n" + after
}

// commandRows is a row for each command that is no short form.
func commandRows(model *kong.Application) string {
	short := map[string]string{}
	for _, n := range model.Leaves(false) {
		short[n.Tag.Get("for")] = "`" + n.Name + "`"
	}
	delete(short, "")
	var b strings.Builder
	for _, n := range model.Leaves(true) {
		help, _, _ := strings.Cut(n.Help, " Short: ")
		fmt.Fprintf(&b, "| [`%s`](reference/commands.md#codeq-%s) | %s | %s |\n", n.Path(), strings.ReplaceAll(n.Path(), " ", "-"), short[n.Path()], cell(help))
	}
	return b.String()
}

func exitRows() string {
	var b strings.Builder
	for _, row := range exitTable {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", row.code, row.word, row.meaning)
	}
	return b.String()
}

// commandsText is the page of all commands with their arguments, flags and examples.
func commandsText(model *kong.Application) string {
	var b strings.Builder
	b.WriteString("# Commands and flags\n\n<!-- \"go generate ./cmd/codeq\" writes this page from the table of commands. -->\n\n" +
		"Every command with its arguments, flags and an example, as `codeq help COMMAND` shows it.\n" +
		"[The command line](../cli.md) says what holds for all of them, and has their answers in JSON.\n")
	for _, n := range model.Leaves(true) {
		fmt.Fprintf(&b, "\n## codeq %s\n\n`codeq %s`\n\n%s\n", n.Path(), n.Summary(), n.Help)
		if n.Detail != "" {
			b.WriteString("\n" + strings.ReplaceAll(n.Detail, "\n  ", "\n    ") + "\n") // what is indented becomes code
		}
		if n.Path() == "serve" {
			b.WriteString("\nBeside these flags it has one for each of the [settings](../config.md).\n")
		}
		b.WriteString(flagTable(n))
	}
	b.WriteString("\n## Flags of every command\n" + tableOf(nil, model.Flags))
	return b.String()
}

// flagTable is the table of the arguments and flags of a command; settings of the server have a page of their own.
func flagTable(n *kong.Node) string {
	settings := map[string]bool{}
	for _, s := range config.Table(&config.Serve{}) {
		settings[s.Name] = n.Path() == "serve"
	}
	return tableOf(n.Positional, slices.DeleteFunc(slices.Clone(n.Flags), func(f *kong.Flag) bool { return settings[f.Name] }))
}

func tableOf(args []*kong.Positional, flags []*kong.Flag) string {
	if rows := rowsOf(args, flags); rows != "" {
		return "\n" + flagHead + rows
	}
	return ""
}

// rowsOf is a row for each argument and flag.
func rowsOf(args []*kong.Positional, flags []*kong.Flag) string {
	var b strings.Builder
	for _, a := range args {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Summary(), byDefault(a), cell(a.Help))
	}
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := "--" + f.Name
		if f.Tag.Negatable != "" {
			name = "--[no-]" + f.Name
		}
		if !f.IsBool() {
			name += " " + f.FormatPlaceHolder()
		}
		if f.Short != 0 {
			name = "-" + string(f.Short) + "`, `" + name
		}
		help := f.Help
		if f.Enum != "" {
			help += " One of " + strings.Join(strings.FieldsFunc(f.Enum, func(r rune) bool { return r == ',' }), ", ") + "."
		}
		if len(f.Envs) > 0 {
			help += " Variable: `" + strings.Join(f.Envs, "`, `") + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, byDefault(f.Value), cell(help))
	}
	return b.String()
}

func byDefault(v *kong.Value) string {
	if v.Default == "" || v.IsBool() {
		return ""
	}
	return "`" + v.Default + "`"
}

// cell is a text as a cell of a table has it.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "\n", " ").Replace(strings.TrimSpace(text))
}
