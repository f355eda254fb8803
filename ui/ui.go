package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed all:dist
var dist embed.FS

const (
	// home is the path of the pages. Which page is shown stands in the fragment of the address,
	// so all addresses are relative, and the pages work behind a proxy that adds a prefix.
	home  = "/ui/"
	index = "index.html"
	// hashed is the directory of files whose names change with their content.
	hashed = "assets/"
)

// policy allows the pages their own files and the API, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// types are the types of the files, not those of the machine, which may have others.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// file is one file of the pages. zipped is nil if it would not be smaller.
type file struct {
	plain, zipped []byte
	etag, typ     string
	isHashed      bool
}

// Pages are the files of the dashboard by their name below /ui/. They do not change.
type Pages struct{ files map[string]*file }

// New makes the pages from the files in the program.
func New() *Pages {
	p := &Pages{files: make(map[string]*file)}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := dist.ReadFile(name)
		name = strings.TrimPrefix(name, "dist/")
		p.files[name] = newFile(name, plain)
		return err
	})
	if err != nil {
		panic(err) // the files are in the program
	}
	return p
}

func newFile(name string, plain []byte) *file {
	sum := sha256.Sum256(plain)
	f := &file{
		plain: plain, typ: types[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:8]) + `"`,
		isHashed: strings.HasPrefix(name, hashed),
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(plain) // a buffer takes everything
	if w.Close() == nil && zipped.Len() < len(plain) {
		f.zipped = zipped.Bytes()
	}
	return f
}

// Has reports whether a path is one of the pages, or leads to them.
func (p *Pages) Has(path string) bool {
	return path == "/" || path == "/ui" || strings.HasPrefix(path, home)
}

// Answer answers a request for a path that Has has. It sets headers.
func (p *Pages) Answer(h http.Header, r *http.Request) (status int, body []byte) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", types[".txt"])
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		return http.StatusMethodNotAllowed, []byte("the pages take GET and HEAD\n")
	}
	name, below := strings.CutPrefix(r.URL.Path, home)
	if !below {
		// Relative, because a proxy may have cut a prefix off.
		h.Set("Location", "ui/")
		return http.StatusFound, nil
	}
	if name == "" {
		name = index
	}
	f := p.files[name]
	if f == nil {
		return http.StatusNotFound, []byte("there is no such file; the pages begin at " + home + "\n")
	}
	return f.answer(h, r.Header)
}

func (f *file) answer(h, asked http.Header) (status int, body []byte) {
	h.Set("Content-Type", f.typ)
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if f.isHashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if asked.Get("If-None-Match") == f.etag {
		return http.StatusNotModified, nil
	}
	if f.zipped != nil && strings.Contains(asked.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		return http.StatusOK, f.zipped
	}
	return http.StatusOK, f.plain
}
