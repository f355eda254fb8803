package docsite

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// found is what a browser reads of a page: the names of its elements, and what it leads to.
type found struct{ ids, links []string }

func look(t *testing.T, text []byte) (f found) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				f.ids = append(f.ids, a.Val)
			case "href", "src":
				f.links = append(f.links, a.Val)
			}
		}
	}
	return f
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	s, err := New("v1")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]found{}
	for _, name := range s.names {
		if path.Ext(name) == ".html" {
			pages[name] = look(t, s.files[name])
		}
	}
	links := 0
	for name, p := range pages {
		for _, link := range p.links {
			if strings.Contains(link, "://") {
				continue
			}
			links++
			file, id, _ := strings.Cut(link, "#")
			to := path.Join(path.Dir(name), file)
			if file == "" {
				to = name
			}
			if s.files[to] == nil {
				t.Errorf("%s leads to %s, which is not there", name, link)
			}
			if id != "" && !slices.Contains(pages[to].ids, id) {
				t.Errorf("%s leads to %s, where nothing has that name", name, link)
			}
		}
		if n := len(p.ids); len(slices.Compact(slices.Sorted(slices.Values(p.ids)))) != n {
			t.Errorf("%s has a name twice", name)
		}
	}
	if len(pages) < 20 || links < 500 {
		t.Errorf("%d pages and %d links: most are missing", len(pages), links)
	}
}

// small is a tree of two pages and a picture.
func small() map[string][]byte {
	return map[string][]byte{
		home:          []byte("# Home\n\nHello.\n\n- no page\n\n## Start\n\n- [A](a.md#who-has-it): what\n"),
		"docs/a.md":   []byte("# A\n\n## Who has `it`?\n\n[home](README.md), ![p](p.svg), [the *source*](../main.go), [there](https://example.com/)\n\n## Who has it\n\nlast\n\n<!-- file: b.sh -->\n```sh\nls\n```\n"),
		"docs/p.svg":  []byte("<svg/>"),
		"assets/x.js": []byte("1"),
	}
}

func TestPagesLeadToPages(t *testing.T) {
	s, err := build(small(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	page := string(s.files["docs/a.html"])
	for _, want := range []string{
		`<a href="../index.html">home</a>`, `src="../docs/p.svg"`, `, the <em>source</em>, `, `<a href="https://example.com/">there</a>`,
		`<h2 id="who-has-it">Who has <code>it</code>?</h2>`, `<h2 id="who-has-it-1">`, `<a href="#who-has-it">Who has it?</a>`,
		`<title>A · codeq</title>`, `aria-current="page"`, "v1", "<div class=\"file\">b.sh</div>\n<pre><code class=\"language-sh\">ls",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
	first := string(s.files["index.html"])
	if !strings.Contains(first, `<a href="docs/a.html#who-has-it">A</a>`) || !strings.Contains(first, "<title>Home</title>") {
		t.Errorf("the first page:\n%s", first)
	}
	want := `codeqIndex([{"p":"index.html#home","t":"Home","h":"Home","x":"Hello. no page"},{"p":"index.html#start","t":"Home","h":"Start","x":"A: what"},` +
		`{"p":"docs/a.html#a","t":"A","h":"A","x":""},{"p":"docs/a.html#who-has-it","t":"A","h":"Who has it?","x":"home, p, the source, there"},` +
		`{"p":"docs/a.html#who-has-it-1","t":"A","h":"Who has it","x":"last ls"}])` + "\n"
	if got := string(s.files["assets/index.js"]); got != want {
		t.Errorf("the search knows\n%s, want\n%s", got, want)
	}
}

func TestDocumentsThatMakeNoPages(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no first page":    {home, "", "there is no docs/README.md"},
		"a page unlisted":  {"docs/b.md", "# B\n", "docs/README.md does not list docs/b.md"},
		"a page twice":     {home, "## A\n\n- [A](a.md)\n- [A](a.md)\n", "docs/README.md lists docs/a.md twice"},
		"an item, no page": {home, "## A\n\n- [A](a.md)\n- hello\n", `docs/README.md lists "hello", which begins with no link to a page`},
		"no picture":       {"docs/p.svg", "", "docs/a.md shows p.svg, which is not there"},
	} {
		tree := small()
		tree[c.file] = []byte(c.text)
		if c.text == "" {
			delete(tree, c.file)
		}
		if _, err := build(tree, "v1"); err == nil || err.Error() != c.want && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestTheSiteIsServedAndWritten(t *testing.T) {
	s, err := build(small(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := s.Write(filepath.Join(dir, "site")); err != nil {
		t.Fatal(err)
	}
	for _, name := range s.names {
		written, err := os.ReadFile(filepath.Join(dir, "site", name))
		if err != nil || !bytes.Equal(written, s.files[name]) {
			t.Errorf("%s is written differently: %v", name, err)
		}
	}
	for at, want := range map[string]struct {
		status int
		typ    string
	}{
		"/": {200, "text/html; charset=utf-8"}, "/docs/a.html": {200, "text/html; charset=utf-8"}, "/docs/p.svg": {200, "image/svg+xml"},
		"/docs/": {404, "text/plain; charset=utf-8"}, "/../docs/a.md": {404, "text/plain; charset=utf-8"},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", at, nil))
		if w.Code != want.status || w.Header().Get("Content-Type") != want.typ {
			t.Errorf("%s: %d %s", at, w.Code, w.Header().Get("Content-Type"))
		}
	}
}
