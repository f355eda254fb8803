package docs

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
)

// What the example for KEDA reads is in the answers of the server, under those addresses and names.
func TestScaledObjectReadsWhatTheServerAnswers(t *testing.T) {
	page := readPage(t, "scaling.md")
	_, rest, found := strings.Cut(page, "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("scaling.md has no example for KEDA")
	}
	object, _, _ := strings.Cut(example, "---\n")
	root, err := yamlfile.Parse("scaling.md", []byte(object))
	if err != nil {
		t.Fatal(err)
	}
	x := openSite(t, nil)
	ask := func(method, path, body string) string {
		e := x.ask(method, path, body, nil)
		if e.status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, e.status, e.body)
		}
		return e.body
	}
	for _, payload := range []string{"1", "2", "3"} {
		ask("POST", "/v1/codeq/tasks", `{"command":"resize","payload":`+payload+`}`)
	}
	ask("POST", "/v1/codeq/tasks/claim", `{"commands":["resize"]}`)
	want := map[string]float64{"ready": 2, "inProgress": 1}
	file := &spec{root}
	for _, trigger := range file.path(root, "spec", "triggers").Items {
		if kind := file.text(trigger, "type"); kind != "metrics-api" {
			t.Errorf("a trigger is a %s", kind)
		}
		at, err := url.Parse(file.path(trigger, "metadata", "url").Text)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		if err := json.Unmarshal([]byte(ask("GET", at.Path, "")), &answer); err != nil {
			t.Fatal(err)
		}
		name := file.path(trigger, "metadata", "valueLocation").Text
		if got := answer[name]; want[name] == 0 || got != want[name] {
			t.Errorf("%s of %s is %v, want %v", name, at.Path, got, want[name])
		}
		delete(want, name)
	}
	if len(want) != 0 {
		t.Errorf("no trigger reads %v", want)
	}
}
