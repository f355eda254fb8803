package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(t *testing.T, method, path string, header ...string) (status int, h http.Header, body string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	p := New()
	if !p.Has(r.URL.Path) {
		t.Fatalf("%s is not among the pages", path)
	}
	h = http.Header{}
	status, b := p.Answer(h, r)
	return status, h, string(b)
}

func TestPagesAnswerWithTheirFiles(t *testing.T) {
	status, h, page := ask(t, "GET", "/ui/")
	if status != 200 || h.Get("Cache-Control") != "no-cache" || h.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", status, h)
	}
	named := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(named) != 3 {
		t.Fatalf("the page names %v, want its script, its styles and its icon", named)
	}
	for _, m := range named {
		name, relative := strings.CutPrefix(m[1], "./")
		if !relative {
			t.Errorf("%s is not relative: it would not be found behind a proxy that adds a prefix", m[1])
		}
		status, h, plain := ask(t, "GET", "/ui/"+name)
		if status != 200 || h.Get("Content-Type") == "" || len(plain) == 0 {
			t.Errorf("%s: %d %v", name, status, h)
		}
		if immutable := strings.Contains(h.Get("Cache-Control"), "immutable"); immutable != strings.HasPrefix(name, hashed) {
			t.Errorf("%s: Cache-Control is %q", name, h.Get("Cache-Control"))
		}
		checkZipped(t, name, plain)
	}
}

func checkZipped(t *testing.T, name, plain string) {
	t.Helper()
	_, h, zipped := ask(t, "GET", "/ui/"+name, "Accept-Encoding", "br, gzip")
	if h.Get("Content-Encoding") == "" {
		if zipped != plain {
			t.Errorf("%s is another one without an encoding", name)
		}
		return
	}
	r, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil || b.String() != plain {
		t.Errorf("%s is another one as gzip: %v", name, err)
	}
}

func TestPagesAreNotSentAgain(t *testing.T) {
	_, h, _ := ask(t, "GET", "/ui/")
	status, _, body := ask(t, "GET", "/ui/", "If-None-Match", h.Get("ETag"))
	if status != 304 || body != "" {
		t.Errorf("%d %q", status, body)
	}
}

func TestPathsBesideThePages(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		header, want string
	}{
		{"GET", "/", 302, "Location", "ui/"},
		{"HEAD", "/ui", 302, "Location", "ui/"},
		{"GET", "/ui/../codeq.json", 404, "", ""},
		{"GET", "/ui/assets/", 404, "", ""},
		{"GET", "/ui/dist/index.html", 404, "", ""},
		{"POST", "/ui/", 405, "Allow", "GET, HEAD"},
	} {
		status, h, _ := ask(t, c.method, c.path)
		if status != c.status || c.header != "" && h.Get(c.header) != c.want {
			t.Errorf("%s %s: %d %v", c.method, c.path, status, h)
		}
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s has not the headers of a page: %v", c.method, c.path, h)
		}
	}
	if p := New(); p.Has("/uix") || p.Has("/v1/codeq/tasks") || p.Has("/metrics") {
		t.Error("a path of the API is among the pages")
	}
}
