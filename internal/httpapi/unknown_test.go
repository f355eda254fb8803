package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"codeq/wire"
)

// unlooked are the routes whose parameters and bodies nobody looks at.
var unlooked = map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /metrics": true}

// targetOf is a path that a pattern serves.
func targetOf(pattern string) string {
	return strings.NewReplacer("{id}", unknownID, "{command}", "c", "{name}", "w", "{artifact}", "f").Replace(pattern)
}

// Every route of the router refuses a parameter and a member that it does not know,
// names the one that was meant, and does nothing.
func TestU03EveryRouteRefusesWhatItDoesNotKnow(t *testing.T) {
	b := newBench(t, setup{})
	for _, res := range b.api.resources() {
		for _, v := range res.verbs {
			route, target := v.method+" "+res.pattern, targetOf(res.pattern)
			methods := []string{v.method}
			if v.method == http.MethodGet && !v.noHead {
				methods = append(methods, http.MethodHead)
			}
			for _, method := range methods {
				b.refusesParameters(method, target, &v, unlooked[route])
			}
			if v.anyQuery != unlooked[route] {
				t.Errorf("%s takes any parameter: %t", route, v.anyQuery)
			}
			if v.public || v.streams {
				continue
			}
			g := b.do(v.method, target, `{"zzzzzzzz":{"command":"c","payload":1}}`)
			g.mustRefuse(t, wire.CodeUnknownMember)
			if !strings.Contains(g.body, "zzzzzzzz is not known; ") {
				t.Errorf("%s: %s", route, g.body)
			}
		}
	}
	if g := b.do("GET", "/v1/codeq/admin/queues", ""); g.body != `{"queues":[]}` {
		t.Errorf("what was refused made %s", g.body)
	}
}

// refusesParameters asks one route with what it does not know, with each of its
// parameters misspelt, twice and empty.
func (b *bench) refusesParameters(method, target string, v *verb, unlooked bool) {
	b.t.Helper()
	if unlooked {
		if g := b.do(method, target+"?zzzzzzzz=1&a=%zz", ""); g.status != http.StatusOK {
			b.t.Errorf("%s %s: %d %s", method, target, g.status, g.body)
		}
		return
	}
	refused := func(query string, code wire.Code, sentence string) {
		b.t.Helper()
		g := b.do(method, target+"?"+query, "")
		if g.status != code.HTTPStatus() || method != http.MethodHead && (!strings.Contains(g.body, `"`+string(code)+`"`) || !strings.Contains(g.body, sentence)) {
			b.t.Errorf("%s %s?%s: %d %s, want %s", method, target, query, g.status, g.body, sentence)
		}
	}
	refused("zzzzzzzz=1", wire.CodeUnknownMember, "parameter zzzzzzzz is not known; ")
	refused("zzzzzzzz", wire.CodeUnknownMember, "parameter zzzzzzzz is not known; ")
	refused("a=%zz", wire.CodeInvalidArgument, "the query is not of the form")
	for _, name := range v.query {
		for at := range name {
			wrong := name[:at] + "q" + name[at+1:]
			refused(wrong+"=1", wire.CodeUnknownMember, "parameter "+wrong+" is not known; did you mean "+name+"?")
		}
		if name != "label" {
			refused(name+"=1&"+name+"=1", wire.CodeInvalidArgument, name+" must be given once")
		}
		if name != "cursor" {
			refused(name+"=", wire.CodeInvalidArgument, name+" must be given once and not be empty")
		}
	}
}

// An empty cursor is the first page, wherever there is one.
func TestU03EmptyCursorIsTheFirstPage(t *testing.T) {
	b := newBench(t, setup{})
	for range 3 {
		b.post(okBody)
	}
	for _, query := range []string{"?state=ready&limit=2", "/reasons?limit=2"} {
		target := "/v1/codeq/admin/queues/c/tasks" + query
		if strings.HasPrefix(query, "/reasons") {
			target = "/v1/codeq/admin/queues/c/dlq" + query
		}
		first, again := b.do("GET", target, ""), b.do("GET", target+"&cursor=", "")
		if first.status != http.StatusOK || again.status != first.status || again.body != first.body {
			t.Errorf("%s: %d %s\nwith an empty cursor: %d %s", target, first.status, first.body, again.status, again.body)
		}
	}
	b.mustSay("GET", "/v1/codeq/admin/sessions?cursor=", "", `{"sessions":[]}`)
	b.mustSay("DELETE", "/v1/codeq/admin/queues/c/dlq?cursor=", "", `{"purged":0,"remaining":0}`)
	b.mustSay("POST", "/v1/codeq/admin/queues/c/dlq/replay", `{"cursor":""}`, `{"replayed":0,"remaining":0}`)
}

// FuzzReadQuery: what a handler gets is known, and each name has one value.
func FuzzReadQuery(f *testing.F) {
	for _, query := range []string{"", "limit=1", "limit=1&limit=2", "cursor=", "limit=", "%6cimit=1", "limit=%zz", "limti=1", "a;b", "&&", "=", "limit"} {
		f.Add(query)
	}
	known := []string{"limit", "cursor"}
	f.Fuzz(func(t *testing.T, query string) {
		c := &call{r: &http.Request{URL: &url.URL{RawQuery: query}}}
		refusal := c.readQuery(known)
		if refusal != nil {
			if c.query != nil || refusal.Sentence == "" {
				t.Fatalf("%q is refused with %v and read as %v", query, refusal, c.query)
			}
			return
		}
		for name, values := range c.query {
			if name != "limit" && name != "cursor" || len(values) != 1 || values[0] == "" && name != "cursor" {
				t.Fatalf("%q is read as %v", query, c.query)
			}
		}
	})
}
