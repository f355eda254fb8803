package docs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAsyncAPISaysWhatFramesAre: the golden bytes of every frame of events are what asyncapi.yaml
// describes, in the direction that it says, and it describes no other.
func TestAsyncAPISaysWhatFramesAre(t *testing.T) {
	s := readSpec(t, "asyncapi.yaml")
	if version := s.text(s.root, "asyncapi"); version != "3.0.0" {
		t.Errorf("the version is %q", version)
	}
	s.everyRefLeads(t, s.root)
	s.everyRequiredIsThere(t, s.root)
	files, err := filepath.Glob("../wire/testdata/watch/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("frames: %v, %v", files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		frame, err := parseJSON(readPage(t, file))
		if err != nil {
			t.Fatal(err)
		}
		members, _ := frame.(map[string]any) // a frame is an object, or has no type
		kind := fmt.Sprint(members["type"])
		side := map[bool]string{true: "ask", false: "tell"}[strings.HasPrefix(filepath.Base(file), "client-")]
		if !slices.Contains(s.messagesOf(side), kind) {
			t.Errorf("%s: asyncapi.yaml does not let the side %s send %s", file, side, kind)
			continue
		}
		seen[kind] = true
		if err := s.check(kind, s.path(s.root, "components", "messages", kind, "payload"), frame); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, m := range s.path(s.root, "components", "messages").Fields {
		if !seen[m.Name] || !slices.ContainsFunc([]string{"ask", "tell"}, func(side string) bool {
			return slices.Contains(s.messagesOf(side), m.Name)
		}) {
			t.Errorf("asyncapi.yaml:%d: there is no frame %s", m.Line, m.Name)
		}
	}
}

// messagesOf are the names of the messages of an operation.
func (s *spec) messagesOf(operation string) (names []string) {
	for _, item := range s.path(s.root, "operations", operation, "messages").Items {
		for _, f := range item.Fields {
			names = append(names, f.Value.Text[strings.LastIndex(f.Value.Text, "/")+1:])
		}
	}
	return names
}
