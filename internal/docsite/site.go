package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codeq/docs"
	"codeq/sdk"
)

// home is the document that is the first page and the navigation.
const home = "docs/README.md"

//go:embed assets
var assets embed.FS

//go:embed frame.html
var frameText string

// Site is every file of the documents as a browser gets it. It does not change once it is
// made, so any goroutine may use it.
type Site struct {
	files map[string][]byte
	names []string
	made  time.Time
}

// New makes the pages of this program's documents. version stands on each of them.
func New(version string) (*Site, error) {
	tree := map[string][]byte{}
	for dir, files := range map[string]fs.FS{"docs": docs.Files, "sdk": sdk.Files, "assets": assets} {
		if err := collect(tree, dir, files); err != nil {
			return nil, err
		}
	}
	return build(tree, version)
}

// collect reads files into tree. Their names begin with dir; those of the package itself do
// already.
func collect(tree map[string][]byte, dir string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(name, dir+"/") {
			name = dir + "/" + name
		}
		tree[name] = text
		return nil
	})
}

// build makes the site of tree, which has documents and other files by their paths.
func build(tree map[string][]byte, version string) (*Site, error) {
	pages := map[string]*page{}
	for name, text := range tree {
		if path.Ext(name) == ".md" {
			pages[name] = read(name, text)
		}
	}
	first := pages[home]
	if first == nil {
		return nil, fmt.Errorf("there is no %s, which is the first page", home)
	}
	groups, err := first.navigation(pages)
	if err != nil {
		return nil, err
	}
	s := &Site{files: map[string][]byte{}, made: time.Now()}
	for name, text := range tree {
		if pages[name] == nil {
			s.files[name] = text
		}
	}
	var index []section
	for _, p := range inOrder(first, groups) {
		html, err := p.render(tree, pages)
		if err != nil {
			return nil, err
		}
		index = append(index, p.sections()...)
		if err := s.add(p, html, groups, version); err != nil {
			return nil, err
		}
	}
	found, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	s.files["assets/index.js"] = fmt.Appendf(nil, "codeqIndex(%s)\n", found)
	for name := range s.files {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	return s, nil
}

// inOrder is every page as the navigation has it, the first page before all.
func inOrder(first *page, groups []group) []*page {
	all := []*page{first}
	for _, g := range groups {
		all = append(all, g.Pages...)
	}
	return all
}

// view is what the frame of a page is filled with. Root leads from the page to the directory of
// all.
type view struct {
	*page
	Root, Version string
	Groups        []group
	Before, After *page
	Content       template.HTML
	OnPage        []heading
}

var frame = template.Must(template.New("frame").Parse(frameText))

// add puts p, whose text is html, into its frame.
func (s *Site) add(p *page, html template.HTML, groups []group, version string) error {
	v := view{page: p, Root: strings.Repeat("../", strings.Count(p.Out, "/")), Version: version, Groups: groups, Content: html}
	all := inOrder(p, groups)[1:]
	if i := slices.Index(all, p); i >= 0 {
		if i > 0 {
			v.Before = all[i-1]
		}
		if i+1 < len(all) {
			v.After = all[i+1]
		}
	}
	for _, h := range p.headings {
		if h.Level == 2 {
			v.OnPage = append(v.OnPage, h)
		}
	}
	var out bytes.Buffer
	if err := frame.Execute(&out, v); err != nil {
		return fmt.Errorf("make the page of %s: %w", p.name, err)
	}
	s.files[p.Out] = out.Bytes()
	return nil
}

// Write makes dir and writes every file of the site below it.
func (s *Site) Write(dir string) error {
	for _, name := range s.names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, s.files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Len is the number of files.
func (s *Site) Len() int { return len(s.names) }

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	text, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, name, s.made, bytes.NewReader(text))
}
