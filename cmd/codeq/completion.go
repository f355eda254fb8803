package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the longer text of "codeq completion --help".
func (c *completionCmd) Help() string {
	return `The script knows the commands and flags of this program and asks no server. Each shell reads it at its start: the
first line belongs into ~/.bashrc, the second into ~/.zshrc after compinit, the third is run once.

  source <(codeq completion bash)
  source <(codeq completion zsh)
  codeq completion fish > ~/.config/fish/completions/codeq.fish`
}

// Run prints the script of a shell.
func (c *completionCmd) Run(a *app) error {
	var all cli
	pages := completionPages(all.parser(a, nil, func(int) {}).Model)
	script := fishScript(pages)
	switch c.Shell {
	case "bash":
		script = fmt.Sprintf(bashScript, shellCases(pages))
	case "zsh":
		script = fmt.Sprintf(zshScript, shellCases(pages))
	}
	_, err := fmt.Fprint(a.out, script)
	return err
}

// completionPage is what may stand behind the words of a command.
type completionPage struct {
	path  string
	words []*kong.Node
	// choice are the values of its first argument, if they are few.
	choice string
	flags  []*kong.Flag
}

// completionPages are those of every command, the program itself first.
func completionPages(model *kong.Application) (pages []completionPage) {
	for nodes := []*kong.Node{model.Node}; len(nodes) > 0; nodes = nodes[1:] {
		n := nodes[0]
		nodes = append(nodes, n.Children...)
		p := completionPage{path: n.Path(), words: n.Children}
		if len(n.Positional) > 0 {
			p.choice = choiceOf(n.Positional[0])
		}
		if n.Tag.Has("pages") {
			for _, command := range model.Children {
				p.choice += " " + command.Name
			}
		}
		for _, flag := range slices.Concat(n.AllFlags(true)...) {
			if !meansNothing(flag, n) {
				p.flags = append(p.flags, flag)
			}
		}
		pages = append(pages, p)
	}
	return pages
}

// choiceOf are the values that a flag or an argument is chosen of: its enum, or what its
// tag choice offers.
func choiceOf(v *kong.Value) string {
	return strings.ReplaceAll(cmp.Or(v.Enum, v.Tag.Get("choice")), ",", " ")
}

// bashScript and zshScript share what stands in place of %s: it finds the command in the
// words before the cursor, and sets what may come next. Where that is nothing, the shell
// offers files.
const (
	bashScript = `# Completion of codeq for bash: source <(codeq completion bash)
_codeq() {
	local before=("${COMP_WORDS[@]:1:COMP_CWORD-1}") last=${COMP_WORDS[COMP_CWORD-1]} current=${COMP_WORDS[COMP_CWORD]}
	local at= next= flags= word
%s	[[ $current == -* ]] && next=$flags
	COMPREPLY=($(compgen -W "$next" -- "$current"))
}
complete -o default -F _codeq codeq
`
	zshScript = `#compdef codeq
# Completion of codeq for zsh: source <(codeq completion zsh)
_codeq() {
	local before=("${(@)words[2,CURRENT-1]}") last=${words[CURRENT-1]} current=${words[CURRENT]}
	local at= next= flags= word
%s	[[ $current == -* ]] && next=$flags
	if [[ -n $next ]]; then compadd -- ${=next}; else _files; fi
}
compdef _codeq codeq
`
	completionCases = `	for word in "${before[@]}"; do
		case "$at $word" in
		*" --") at=-- ;;
		%s) at="${at:+$at }$word" ;;
		esac
	done
	case "$at $last" in
%s	*)
		case "$at" in
%s		esac
		;;
	esac
`
)

// shellCases are the cases of bash and zsh.
func shellCases(pages []completionPage) string {
	var paths []string
	var values, words strings.Builder
	for _, p := range pages {
		next, flags := []string{p.choice}, []string(nil)
		for _, n := range p.words {
			next = append(next, n.Name)
			paths = append(paths, fmt.Sprintf("%q", p.path+" "+n.Name))
		}
		for _, flag := range p.flags {
			flags = append(flags, "--"+flag.Name)
			if !flag.IsBool() {
				fmt.Fprintf(&values, "\t%q) next=%q ;;\n", p.path+" --"+flag.Name, choiceOf(flag.Value))
			}
		}
		fmt.Fprintf(&words, "\t\t%q) next=%q flags=%q ;;\n", p.path, strings.TrimSpace(strings.Join(next, " ")), strings.Join(flags, " "))
	}
	return fmt.Sprintf(completionCases, strings.Join(paths, " | "), values.String(), words.String())
}

const fishHead = `# Completion of codeq for fish: codeq completion fish > ~/.config/fish/completions/codeq.fish
function __codeq_at
	set -l at ""
	for word in (commandline -opc)[2..]
		switch "$at $word"
			case '* --'
				set at --
			case %s
				set at (string trim -- "$at $word")
		end
	end
	test "$at" = "$argv[1]"
end
`

// fishScript has a line for each word and flag.
func fishScript(pages []completionPage) string {
	var paths []string
	var lines strings.Builder
	add := func(path, what, help string) {
		fmt.Fprintf(&lines, "complete -c codeq -n '__codeq_at \"%s\"' %s -d '%s'\n", path, what, strings.ReplaceAll(help, "'", `\'`))
	}
	for _, p := range pages {
		for _, n := range p.words {
			paths = append(paths, fmt.Sprintf("%q", p.path+" "+n.Name))
			if !n.Hidden {
				add(p.path, "-f -a "+n.Name, n.Help)
			}
		}
		if p.choice != "" {
			add(p.path, "-f -a '"+p.choice+"'", "")
		}
		for _, flag := range p.flags {
			what := "-l " + flag.Name
			switch {
			case choiceOf(flag.Value) != "":
				what += " -x -a '" + choiceOf(flag.Value) + "'"
			case !flag.IsBool():
				what += " -r"
			}
			add(p.path, what, flag.Help)
		}
	}
	return fmt.Sprintf(fishHead, strings.Join(paths, " ")) + lines.String()
}
