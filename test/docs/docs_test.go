package docs

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"codeq/internal/httpapi"
	"codeq/wire"
)

// protocolPages are the pages of the protocol in the order in which their examples are played: one
// begins with the tasks that those before it have left.
var protocolPages = []string{
	"reference/protocol.md", "reference/tasks.md", "reference/errors.md", "reference/limits.md", "reference/http.md",
	"reference/http-producers.md", "reference/http-workers.md", "reference/admin-queues.md", "reference/admin-tasks.md",
	"reference/admin-server.md", "reference/admin-webhooks.md", "reference/health.md",
	"reference/events.md", "reference/sessions.md",
}

func TestEveryExampleOfTheProtocolIsTrueAndNothingIsWithoutOne(t *testing.T) {
	r := newReplay(t)
	for _, page := range protocolPages {
		for _, e := range examplesOf(t, page, readPage(t, page)) {
			r.play(&e)
		}
	}
	t.Run("every route has an example", func(t *testing.T) {
		seen := map[string]bool{}
		for _, x := range r.exchanges {
			seen[routeOf(x)] = true
		}
		for _, route := range httpapi.Routes() {
			if !seen[route] {
				t.Errorf("%s has no example in docs/reference", route)
			}
		}
	})
	t.Run("every frame has an example", func(t *testing.T) {
		for _, name := range frameTypes(t) {
			if !r.frames[name] {
				t.Errorf("the frame %s has no example in docs/reference", name)
			}
		}
	})
	t.Run("every answer is as openapi.yaml says", func(t *testing.T) {
		compareWithOpenAPI(t, r)
	})
}

// pathMember is a member of a pattern of routes, as a regular expression has it.
var pathMember = regexp.MustCompile(`\\\{\w+\\\}`)

// routeOf is the route that served an exchange, "" if none did.
func routeOf(x *exchange) string {
	path, _, _ := strings.Cut(x.path, "?")
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		form := "^" + pathMember.ReplaceAllString(regexp.QuoteMeta(pattern), "[^/]+") + "$"
		if method == x.method && pattern == path {
			return route // a plain path beats one with {id} or the like
		}
		if method == x.method && !isPlainRoute(method+" "+path) && regexp.MustCompile(form).MatchString(path) {
			return route
		}
	}
	return ""
}

func isPlainRoute(route string) bool {
	for _, r := range httpapi.Routes() {
		if r == route {
			return true
		}
	}
	return false
}

// frameTypes are the names of all frames, from the types that wire has.
func frameTypes(t *testing.T) []string {
	t.Helper()
	// A client's frame embeds Ref; a server's has its marker.
	frame := regexp.MustCompile(`type (\w+) struct {\n\tRef\n|func \(\*(\w+)\) serverFrame\(\)`)
	var names []string
	for _, m := range frame.FindAllStringSubmatch(readPage(t, "../wire/frame.go")+readPage(t, "../wire/frame_server.go"), -1) {
		if m[1] != "Unknown" {
			names = append(names, strings.ToLower(strings.TrimSuffix(m[1]+m[2], "Frame")))
		}
	}
	// The frames of events are written by their word behind Watch.
	for _, m := range frame.FindAllStringSubmatch(readPage(t, "../wire/events.go"), -1) {
		names = append(names, strings.ToLower(strings.TrimPrefix(m[1]+m[2], "Watch")))
	}
	if len(names) < 28 {
		t.Fatalf("found only the frames %v", names)
	}
	return names
}

// constantsOf are the constants of one file of another package that needs no
// import.
func constantsOf(t *testing.T, file string) map[string]constant.Value {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	// Only constants: what else is in the file may need its imports.
	var kept []ast.Decl
	for _, decl := range parsed.Decls {
		d, ok := decl.(*ast.GenDecl)
		if ok && (d.Tok == token.CONST || d.Tok == token.TYPE && filepath.Base(file) == "code.go") {
			kept = append(kept, decl)
		}
	}
	parsed.Decls, parsed.Imports = kept, nil
	config := types.Config{Error: func(error) {}}
	pkg, _ := config.Check("constants", files, []*ast.File{parsed}, nil) // its errors are of what was left out
	all := map[string]constant.Value{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && c.Exported() {
			all[name] = c.Val()
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no constants", file)
	}
	return all
}

func TestTheTableOfCodesIsWhatTheServerKnows(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range cells(t, readPage(t, "reference/errors.md"), "## Codes") {
		name := strings.Trim(row[0], "`")
		code := wire.Code(name)
		retry := map[bool]string{true: "yes", false: "no"}[code.Retryable()]
		if row[1] != strconv.Itoa(code.HTTPStatus()) || row[2] != retry {
			t.Errorf("%s: the page says %s and %s, the server %d and %s", name, row[1], row[2], code.HTTPStatus(), retry)
		}
		listed[name] = true
	}
	known := constantsOf(t, "../wire/code.go")
	for _, value := range known {
		if !listed[constant.StringVal(value)] {
			t.Errorf("the code %s is not in the page", value)
		}
	}
	if len(listed) != len(known) {
		t.Errorf("the page lists %d codes, the server knows %d", len(listed), len(known))
	}
}

func TestTheTableOfLimitsIsWhatTheServerKeeps(t *testing.T) {
	limits := constantsOf(t, "../wire/limits.go")
	delete(limits, "Subprotocol")
	name := regexp.MustCompile(`<!-- (\w+) -->`)
	for _, row := range cells(t, readPage(t, "reference/limits.md"), "# Limits") {
		m := name.FindStringSubmatch(row[0])
		if m == nil {
			t.Errorf("%s: name the constant in a comment", row[0])
			continue
		}
		if value, ok := limits[m[1]]; !ok || value.ExactString() != row[1] {
			t.Errorf("%s: the page says %s, the server %v", m[1], row[1], value)
		}
		delete(limits, m[1])
	}
	for left := range limits {
		t.Errorf("the limit %s is not in the page", left)
	}
}

func TestTheTableOfCloseCodesIsWhatTheServerSays(t *testing.T) {
	codes := map[string]bool{}
	for name, value := range constantsOf(t, "../session/action.go") {
		if strings.HasPrefix(name, "Close") {
			codes[value.ExactString()] = true
		}
	}
	if len(codes) < 5 {
		t.Fatalf("found only the close codes %v", codes)
	}
	for _, row := range cells(t, readPage(t, "reference/sessions.md"), "## How a session ends") {
		if !codes[row[0]] {
			t.Errorf("the server closes with no %s", row[0])
		}
		delete(codes, row[0])
	}
	for code := range codes {
		t.Errorf("the close code %s is not in the page", code)
	}
}

// link is a link of a page to a file or to a heading.
var link = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages := []string{"../README.md", "../ARCHITECTURE.md", "../sdk/python/README.md", "../sdk/typescript/README.md"}
	for _, page := range append(pages, pagesBelow(t)...) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			file := page
			if m[1] != "" {
				file = filepath.Join(filepath.Dir(page), m[1])
			}
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if m[2] != "" && !anchors(t, file)[m[2]] {
				t.Errorf("%s links to %s#%s, which is no heading", page, m[1], m[2])
			}
		}
	}
}

// pagesBelow are all pages below docs/, those of its directories too.
func pagesBelow(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("the pages are %v: %v", pages, err)
	}
	return pages
}

// anchors are the names that a page's headings have in links.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	all := map[string]bool{}
	for line := range strings.Lines(readPage(t, file)) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return all
}

// statusLine is how an answer begins.
func statusLine(status int) string { return strconv.Itoa(status) + " " + http.StatusText(status) }
