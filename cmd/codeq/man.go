package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// roff makes text safe between requests of roff: a backslash is doubled, a point or an apostrophe
// begins no line, and a hyphen is one that can be copied.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// writeManual writes the manual page codeq(1), in roff: every command with its flags, out of the
// same table as the help and the completion.
func writeManual(w io.Writer, model *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CODEQ 1 \"\" \"codeq %s\" \"codeq\"\n.SH NAME\ncodeq \\- %s\n", roff.Replace(version), roff.Replace(description))
	b.WriteString(".SH SYNOPSIS\n.B codeq\n.I COMMAND\n[flags]\n.SH COMMANDS\n")
	for _, n := range model.Leaves(true) {
		fmt.Fprintf(&b, ".SS \"%s\"\n%s\n", roff.Replace("codeq "+n.Summary()), roff.Replace(n.Help))
		if n.Detail != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff.Replace(n.Detail))
		}
		manualFlags(&b, n.Flags)
	}
	b.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	manualFlags(&b, model.Flags)
	b.WriteString(".SH EXIT STATUS\n")
	for _, row := range exitTable {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s: %s\n", row.code, roff.Replace(row.word), roff.Replace(row.meaning))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// manualFlags writes a list of flags, with the values that they choose from.
func manualFlags(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += " " + f.FormatPlaceHolder()
		}
		help := strings.TrimSpace(f.Help)
		if f.Enum != "" {
			help += " One of " + strings.Join(slices.DeleteFunc(strings.Split(f.Enum, ","), func(s string) bool { return s == "" }), ", ") + "."
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff.Replace(name), roff.Replace(help))
	}
}
