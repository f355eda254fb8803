package docs

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeq/internal/httpapi"
	"codeq/internal/yamlfile"
)

// operation is one method of one path of openapi.yaml.
type operation struct {
	route string // "METHOD pattern", as httpapi names it
	line  int
	value yamlfile.Value
}

func (s *spec) operations() []operation {
	var all []operation
	for _, path := range s.path(s.root, "paths").Fields {
		for _, method := range path.Value.Fields {
			if method.Name == "parameters" {
				continue // those of every method
			}
			all = append(all, operation{strings.ToUpper(method.Name) + " " + path.Name, method.Line, method.Value})
		}
	}
	return all
}

func TestOpenAPIHasEveryRouteAndNoOther(t *testing.T) {
	var described []string
	s := readSpec(t, "openapi.yaml")
	for _, o := range s.operations() {
		described = append(described, o.route)
		if !slices.Contains(httpapi.Routes(), o.route) {
			t.Errorf("openapi.yaml:%d: the server has no %s", o.line, o.route)
		}
	}
	for _, route := range httpapi.Routes() {
		if !slices.Contains(described, route) {
			t.Errorf("openapi.yaml lacks %s", route)
		}
	}
}

func TestOpenAPIHoldsTogether(t *testing.T) {
	s := readSpec(t, "openapi.yaml")
	if version := s.text(s.root, "openapi"); !strings.HasPrefix(version, "3.1.") {
		t.Errorf("the version is %q", version)
	}
	ids := map[string]bool{}
	for _, o := range s.operations() {
		id := s.text(o.value, "operationId")
		if id == "" || ids[id] || s.text(o.value, "summary") == "" {
			t.Errorf("openapi.yaml:%d: %s needs a summary and an operationId of its own", o.line, o.route)
		}
		ids[id] = true
		if strings.Contains(o.route, "{id}") && !s.hasParameter(o, "path", "id") {
			t.Errorf("openapi.yaml:%d: %s lacks the parameter of its path", o.line, o.route)
		}
		for _, r := range s.path(o.value, "responses").Fields {
			if s.text(s.follow(r.Value), "description") == "" {
				t.Errorf("openapi.yaml:%d: an answer without a description", r.Line)
			}
		}
	}
	s.everyRefLeads(t, s.root)
	s.everyRequiredIsThere(t, s.root)
}

func (s *spec) hasParameter(o operation, in, name string) bool {
	return slices.ContainsFunc(s.path(o.value, "parameters").Items, func(v yamlfile.Value) bool {
		v = s.follow(v)
		return s.text(v, "in") == in && s.text(v, "name") == name
	})
}

// everyRefLeads panics in follow if one does not, with its line.
func (s *spec) everyRefLeads(t *testing.T, v yamlfile.Value) {
	s.follow(v)
	for _, f := range v.Fields {
		s.everyRefLeads(t, f.Value)
	}
	for _, item := range v.Items {
		s.everyRefLeads(t, item)
	}
}

// everyRequiredIsThere looks for members that are required and not described.
func (s *spec) everyRequiredIsThere(t *testing.T, v yamlfile.Value) {
	properties := s.path(v, "properties")
	for _, name := range s.path(v, "required").Items {
		if _, ok := s.get(properties, name.Text); !ok {
			t.Errorf("openapi.yaml:%d: %s is required and not described", name.Line, name.Text)
		}
	}
	for _, f := range v.Fields {
		s.everyRequiredIsThere(t, f.Value)
	}
	for _, item := range v.Items {
		s.everyRequiredIsThere(t, item)
	}
}

// compareWithOpenAPI holds every exchange of the replay, and some that only go
// wrong, against the file: route, status, body. Each status that is no refusal
// must have been seen.
func compareWithOpenAPI(t *testing.T, r *replay) {
	s := readSpec(t, "openapi.yaml")
	seen := map[string]bool{}
	for _, x := range slices.Concat(refusals(t), ofACluster(t), r.exchanges) {
		if err := s.compare(x); err != nil {
			t.Errorf("%s %s: %d: %v", x.method, x.path, x.status, err)
		}
		seen[routeOf(x)+" "+strconv.Itoa(x.status)] = true
	}
	for _, o := range s.operations() {
		for _, answer := range s.path(o.value, "responses").Fields {
			if answer.Name == "307" {
				continue // a server with a bucket alone sends on: internal/server TestWhoAsksForAFileIsSentOnToTheBucket
			}
			if answer.Name < "4" && !seen[o.route+" "+answer.Name] {
				t.Errorf("openapi.yaml:%d: %s never answered %s", answer.Line, o.route, answer.Name)
			}
		}
	}
}

// compare holds one exchange against its operation.
func (s *spec) compare(x *exchange) error {
	route := routeOf(x)
	for _, o := range s.operations() {
		if o.route != route {
			continue
		}
		answer, ok := s.get(s.path(o.value, "responses"), strconv.Itoa(x.status))
		if !ok {
			return fmt.Errorf("openapi.yaml:%d knows no such status", o.line)
		}
		// An accepted batch may hold tasks that are refused, and a schema would
		// refuse all of it.
		if x.sent != "" && x.status < 300 && !strings.Contains(x.body, `"code":`) {
			schema := s.path(o.value, "requestBody", "content", "application/json", "schema")
			if _, isFile := s.get(s.path(o.value, "requestBody", "content"), "*/*"); isFile {
				return s.compareBody(answer, x)
			}
			if err := s.checkText("request", schema, x.sent); err != nil {
				return err
			}
		}
		return s.compareBody(answer, x)
	}
	return fmt.Errorf("no such route")
}

func (s *spec) compareBody(answer yamlfile.Value, x *exchange) error {
	content := s.path(answer, "content")
	if len(content.Fields) == 0 {
		if x.body != "" {
			return fmt.Errorf("a body that is not described: %s", x.body)
		}
		return nil
	}
	kind, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
	media, ok := s.get(content, kind)
	if !ok {
		return fmt.Errorf("the media type %s is not described", kind)
	}
	if kind != "application/json" {
		return nil
	}
	return s.checkText("answer", s.path(media, "schema"), x.body)
}

func (s *spec) checkText(at string, schema yamlfile.Value, text string) error {
	value, err := parseJSON(text)
	if err != nil {
		return err
	}
	return s.check(at, schema, value)
}

// refusals asks each route for what it refuses.
func refusals(t *testing.T) []*exchange {
	tokens, token := newTokens(t)
	guarded, open := openSite(t, tokens), openSite(t, nil)
	producer := http.Header{"Authorization": {"Bearer " + token}}
	const unknown = "00000000-0000-7000-8000-000000000000"
	all := []*exchange{
		open.ask("POST", "/v1/codeq/tasks", `{"command":"c"}`, nil),
		open.ask("POST", "/v1/codeq/tasks", `{"command":"c","payload":"`+strings.Repeat("x", 1<<20)+`"}`, nil),
		open.ask("POST", "/v1/codeq/tasks/batch", `{"tasks":[]}`, nil),
		guarded.ask("POST", "/v1/codeq/tasks/batch", `{"tasks":[{"command":"c","payload":1}]}`, nil),
		open.ask("GET", "/v1/codeq/tasks/"+unknown+"/result?waitSeconds=61", "", nil),
		open.ask("GET", "/v1/codeq/admin/sessions?cursor=x", "", nil),
		guarded.ask("GET", "/v1/codeq/admin/queues", "", producer),
		guarded.ask("GET", "/v1/codeq/admin/sessions", "", producer),
		guarded.ask("GET", "/v1/codeq/session", "", nil),
	}
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		path := strings.Replace(pattern, "{id}", unknown, 1)
		all = append(all, guarded.ask(method, path, "", nil), open.ask(method, path+"?zzzzzzzz=1", "", nil))
	}
	return all
}
