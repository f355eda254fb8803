package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// silent are commands without an answer that could be JSON. Those of a cluster need three servers:
// TestThreeProcessesAreACluster runs them, and cli.md has their members.
var silent = map[string]bool{
	"completion": true, "help": true,
	"cluster init": true, "cluster token": true, "cluster join": true, "cluster status": true, "cluster transfer": true, "cluster remove": true,
}

// The examples themselves are run by the tests of docs.
func TestU10EveryCommandThatAnswersHasAnExampleInJSON(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\$ .*\bcodeq (.*) --json`).FindAllStringSubmatch(string(page), -1) {
		words := append(strings.Fields(line[1]), "")
		shown[words[0]], shown[words[0]+" "+words[1]] = true, true
	}
	parser, err := kong.New(&cli{}, kong.Name("codeq"))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		if path := strings.TrimPrefix(leaf.FullPath(), "codeq "); !silent[path] && !shown[path] {
			t.Errorf("docs/cli.md has no \"$ codeq %s … --json\"", path)
		}
	}
}
