package docs

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
)

// asked is one way to give a server names: the members of a body, of the items of
// a batch, or parameters. described are those that openapi.yaml has.
type asked struct {
	form      string // with %s for the name
	described []string
}

// ways are those of one operation.
func (s *spec) ways(t *testing.T, o operation) []asked {
	t.Helper()
	var parameters []string
	for _, v := range s.path(o.value, "parameters").Items {
		if v = s.follow(v); s.text(v, "in") == "query" {
			parameters = append(parameters, s.text(v, "name"))
		}
	}
	all := []asked{{"?%s=1 ", parameters}}
	schema := s.path(o.value, "requestBody", "content", "application/json", "schema")
	s.everyObjectIsClosed(t, schema)
	all = append(all, asked{` {"%s":null}`, s.names(schema)})
	for _, f := range s.path(schema, "properties").Fields {
		if item := s.path(f.Value, "items"); f.Name == "tasks" || f.Name == "results" {
			all = append(all, asked{` {"` + f.Name + `":[{"%s":null}]}`, s.names(item)})
		}
	}
	return all
}

// names are the members that a schema describes.
func (s *spec) names(schema yamlfile.Value) (names []string) {
	for _, f := range s.path(schema, "properties").Fields {
		names = append(names, f.Name)
	}
	return names
}

// everyObjectIsClosed looks through the schema of a request: what it says nothing
// of, but for the result of a task and the members of payloads, is refused.
func (s *spec) everyObjectIsClosed(t *testing.T, v yamlfile.Value) {
	t.Helper()
	kind := s.path(v, "type")
	isObject := kind.Text == "object" || slices.ContainsFunc(kind.Items, func(v yamlfile.Value) bool { return v.Text == "object" })
	if isObject && s.text(v, "additionalProperties") != "false" {
		t.Errorf("openapi.yaml:%d: an object of a request without additionalProperties: false", v.Line)
	}
	for _, f := range s.path(v, "properties").Fields {
		if f.Name != "result" && f.Name != "payload" && f.Name != "match" && f.Name != "labels" {
			s.everyObjectIsClosed(t, s.follow(f.Value))
		}
	}
	if items, ok := s.get(v, "items"); ok {
		s.everyObjectIsClosed(t, items)
	}
}

// What the file describes is known to the server, and nothing else is: parameters,
// members of bodies and of the items of batches.
func TestU03OpenAPIHasTheNamesThatTheServerKnows(t *testing.T) {
	s, site := readSpec(t, "openapi.yaml"), openSite(t, nil)
	everything := []string{"zzzzzzzz"}
	for _, o := range s.operations() {
		for _, way := range s.ways(t, o) {
			everything = append(everything, way.described...)
		}
	}
	slices.Sort(everything)
	for _, o := range s.operations() {
		method, path, _ := strings.Cut(o.route, " ")
		path = strings.NewReplacer("{id}", "00000000-0000-7000-8000-000000000000", "{command}", "c", "{name}", "w", "{artifact}", "f").Replace(path)
		for _, way := range s.ways(t, o) {
			noToken := path == "/version" || path == sessionsPath || path == eventsPath
			if strings.HasPrefix(o.route, "PUT") && strings.HasSuffix(path, "/artifacts/f") && !strings.HasPrefix(way.form, "?") {
				continue // a file may hold anything
			}
			if path == "/healthz" || path == "/readyz" || path == "/metrics" || noToken && !strings.HasPrefix(way.form, "?") {
				continue // nobody looks
			}
			for _, name := range slices.Compact(slices.Clone(everything)) {
				query, body, _ := strings.Cut(fmt.Sprintf(way.form, name), " ")
				x := site.ask(method, path+query, body, nil)
				if refused := strings.Contains(x.body, `"unknown_member"`); refused == slices.Contains(way.described, name) {
					t.Errorf("openapi.yaml:%d: %s%s %s: %d %s", o.line, o.route, query, body, x.status, x.body)
				}
			}
		}
	}
}

// The page for clients of the original API says what they send: none of it is
// refused as not known.
func TestU03NamesOfTheOriginalAPIAreKnown(t *testing.T) {
	site := openSite(t, nil)
	inBackticks := regexp.MustCompile("`([^`]+)`")
	rows := cells(t, readPage(t, "from-codeq-http.md"), "## Members that clients send")
	for _, row := range rows {
		for _, name := range inBackticks.FindAllStringSubmatch(row[1], -1) {
			list := ""
			for _, call := range inBackticks.FindAllStringSubmatch(row[0], -1) {
				method, path, isCall := strings.Cut(call[1], " ")
				if !isCall {
					list = call[1]
					continue
				}
				body := fmt.Sprintf(`{"%s":null}`, name[1])
				if list != "" {
					body = fmt.Sprintf(`{"%s":[%s]}`, list, body)
				}
				path = "/v1/codeq" + strings.Replace(path, "{id}", "00000000-0000-7000-8000-000000000000", 1)
				if x := site.ask(method, path, body, nil); x.status == http.StatusNotFound && !strings.Contains(x.body, "task_not_found") || strings.Contains(x.body, "unknown_member") {
					t.Errorf("%s %s: %d %s", call[1], body, x.status, x.body)
				}
			}
		}
	}
	if len(rows) < 9 {
		t.Errorf("the page has %d calls", len(rows))
	}
}
