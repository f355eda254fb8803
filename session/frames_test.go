package session

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"codeq/wire"
)

func TestTheDocumentHasTheScopeOfEachFrame(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for name, f := range map[string]wire.ClientFrame{
		"hello": &wire.Hello{}, "drain": &wire.Drain{}, "subscribe": &wire.Subscribe{}, "window": &wire.Window{}, "received": &wire.Received{},
		"heartbeat": &wire.Heartbeat{}, "result": &wire.Result{}, "nack": &wire.Nack{}, "abandon": &wire.Abandon{}, "release": &wire.Release{},
		"enqueue": &wire.Enqueue{}, "cancel": &wire.Cancel{},
	} {
		scope := "any"
		if s := scopeOf(f); s != "" {
			scope = "`" + s + "`"
		}
		want = append(want, fmt.Sprintf("| frame `%s` | %s |", name, scope))
	}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| frame `") {
			have = append(have, line)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("docs/security.md must have these lines in its table of frames:\n%s", strings.Join(want, "\n"))
	}
}
