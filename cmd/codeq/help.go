package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"codeq/wire"
)

type helpCmd struct {
	Words []string `arg:"" optional:"" name:"command" choice:"exit-codes man" help:"Command whose help is shown, like queue set, or exit-codes, or man for the manual page in roff."`
}

// Run shows what --help behind the same words shows.
func (h *helpCmd) Run(a *app) error {
	if slices.Equal(h.Words, []string{"exit-codes"}) {
		return a.showExitCodes()
	}
	var c cli
	if slices.Equal(h.Words, []string{"man"}) {
		return writeManual(a.out, c.parser(a, nil, func(int) {}).Model)
	}
	_, err := c.parse(a, append(h.Words, "--help"))
	if err != nil && len(h.Words) == 1 && wire.Nearest(h.Words[0], []string{"exit-codes"}) != "" {
		return wrong("there is no page %.40q, did you mean \"codeq help exit-codes\"?", h.Words[0])
	}
	return err
}

// explain adds the examples of commands to their pages, and gives each short form the page
// of its verb.
func explain(model *kong.Application) error {
	model.HelpFlag.Help = "Show this page."
	leaves := model.Leaves(false)
	for _, n := range leaves {
		if examples := n.Tag.Get("eg"); examples != "" {
			n.Detail = strings.TrimSpace(n.Detail + "\n\nExample:\n\n  " + strings.ReplaceAll(examples, "\n", "\n  "))
		}
	}
	for _, n := range leaves {
		verb := n.Tag.Get("for")
		if verb == "" {
			continue
		}
		i := slices.IndexFunc(leaves, func(n *kong.Node) bool { return n.Path() == verb })
		if i < 0 {
			return fmt.Errorf("%s stands for %q, which is no command", n.Name, verb)
		}
		n.Help, n.Detail = leaves[i].Help, leaves[i].Detail
		leaves[i].Help += fmt.Sprintf(" Short: codeq %s.", n.Name)
	}
	return nil
}

// meansNothing reports a global flag that the selected command does not use.
func meansNothing(flag *kong.Flag, selected *kong.Node) bool {
	for n := selected; n != nil; n = n.Parent {
		if slices.Contains(strings.Split(n.Tag.Get("without"), ","), flag.Name) {
			return true
		}
	}
	return false
}

// showHelp prints the page of a command or of a noun; of the program alone all commands
// on one screen.
func showHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	if selected == nil {
		return overview(ctx)
	}
	for _, flag := range ctx.Model.Flags {
		flag.Hidden = flag.Name == "version" || meansNothing(flag, selected)
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// overview lists every command once: a noun with its verbs.
func overview(ctx *kong.Context) error {
	w := tabwriter.NewWriter(ctx.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "Usage: codeq COMMAND [flags]. %s\n", description)
	group, other, short := "", []*kong.Node(nil), []*kong.Node(nil)
	for _, n := range ctx.Model.Children {
		switch {
		case n.Hidden:
			short = append(short, n)
			continue
		case n.Group.Title == "Other":
			other = append(other, n)
			continue
		}
		title := ""
		if n.Group.Title != group {
			group = n.Group.Title
			title = group
		}
		about := n.Help
		if len(n.Children) > 0 {
			about = namesOf(n.Children, "\n\t\t")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", title, n.Name, about)
	}
	fmt.Fprintf(w, "Other\t%s\n", namesOf(other, "\n\t"))
	fmt.Fprintf(w, "Short\t%s\n", namesOf(short, "\n\t"))
	fmt.Fprintln(w, "All\t--url, --token, --json, -q; \"codeq COMMAND --help\" shows examples")
	return w.Flush()
}

// namesOf are the names of commands, in lines short enough for the first page.
func namesOf(nodes []*kong.Node, lineEnd string) string {
	columns := 80 - 9*(1+strings.Count(lineEnd, "\t"))
	text, length := "", 0
	for i, n := range nodes {
		switch {
		case i == 0:
		case length+len(n.Name) > columns:
			text, length = text+","+lineEnd, 0
		default:
			text += ", "
		}
		text, length = text+n.Name, length+len(n.Name)+len(", ")
	}
	return text
}
