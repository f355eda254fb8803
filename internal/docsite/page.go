package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown is the dialect that the documents are written in: that of GitHub. HTML among it is
// our own.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// page is one document.
type page struct {
	// name is its path among the documents, Out that of the page made of it.
	name, Out string
	// Title is its first heading, Listed what the navigation calls it.
	Title    string
	Listed   string
	source   []byte
	root     ast.Node
	headings []heading
}

// heading is a heading of a page and the name that it has in links.
type heading struct {
	Level    int
	ID, Text string
}

// group is a group of the navigation.
type group struct {
	Title string
	Pages []*page
}

// file is the mark before a block that is a file: a comment, which would not be seen.
var file = regexp.MustCompile(`(?m)^<!-- file: (.+) -->$`)

// read parses a document.
func read(name string, source []byte) *page {
	source = file.ReplaceAll(source, []byte("<div class=\"file\">$1</div>\n"))
	p := &page{name: name, Out: strings.TrimSuffix(name, ".md") + ".html", source: source}
	if name == home {
		p.Out = "index.html"
	}
	ctx := parser.NewContext(parser.WithIDs(&ids{used: map[string]int{}}))
	p.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(ctx))
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		id, _ := h.AttributeString("id")
		named, _ := id.([]byte)
		p.headings = append(p.headings, heading{h.Level, string(named), p.plain(h)})
	}
	p.Title = name
	if len(p.headings) > 0 {
		p.Title = p.headings[0].Text
	}
	return p
}

// navigation reads the groups of pages that the first page lists. Every page must be listed
// once.
func (p *page) navigation(pages map[string]*page) (groups []group, err error) {
	listed := map[*page]bool{p: true}
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Title: p.plain(n)})
			}
		case *ast.List:
			for item := n.FirstChild(); item != nil && len(groups) > 0; item = item.NextSibling() {
				name, title := p.firstLink(item)
				to := pages[name]
				switch {
				case to == nil:
					return nil, fmt.Errorf("%s lists %.60q, which begins with no link to a page; docs/doc.go names the files that are pages", p.name, p.plain(item))
				case listed[to]:
					return nil, fmt.Errorf("%s lists %s twice", p.name, to.name)
				}
				listed[to], to.Listed = true, title
				last := &groups[len(groups)-1]
				last.Pages = append(last.Pages, to)
			}
		}
	}
	for name, to := range pages {
		if !listed[to] {
			return nil, fmt.Errorf("%s does not list %s", p.name, name)
		}
	}
	return groups, nil
}

// firstLink is the document that the first link of an item leads to, and its text.
func (p *page) firstLink(item ast.Node) (name, title string) {
	for n := range walk(item) {
		if link, ok := n.(*ast.Link); ok {
			name, _ := p.target(link.Destination)
			return name, p.plain(link)
		}
	}
	return "", ""
}

// target is what a link leads to: a path among the documents, and the heading there.
func (p *page) target(link []byte) (name, heading string) {
	name, heading, _ = strings.Cut(string(link), "#")
	if name == "" {
		return p.name, heading
	}
	return path.Join(path.Dir(p.name), name), heading
}

// render makes HTML of the document. Links lead to pages and files of tree; of a link to a file
// that is not there, one of the source, its text stays.
func (p *page) render(tree map[string][]byte, pages map[string]*page) (template.HTML, error) {
	var outside []ast.Node
	for n := range walk(p.root) {
		switch n := n.(type) {
		case *ast.Link:
			if !p.lead(&n.Destination, tree, pages) {
				outside = append(outside, n)
			}
		case *ast.Image:
			if !p.lead(&n.Destination, tree, pages) {
				return "", fmt.Errorf("%s shows %s, which is not there", p.name, n.Destination)
			}
		}
	}
	for _, link := range outside {
		for link.FirstChild() != nil {
			link.Parent().InsertBefore(link.Parent(), link, link.FirstChild())
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.source, p.root); err != nil {
		return "", fmt.Errorf("render %s: %w", p.name, err)
	}
	return template.HTML(out.String()), nil
}

// lead has a link lead from this page to what is made of its target. It reports whether that
// is there.
func (p *page) lead(link *[]byte, tree map[string][]byte, pages map[string]*page) bool {
	if bytes.Contains(*link, []byte("://")) {
		return true
	}
	name, heading := p.target(*link)
	if tree[name] == nil {
		return false
	}
	if to := pages[name]; to != nil {
		name = to.Out
	}
	to := strings.Repeat("../", strings.Count(p.Out, "/")) + name
	if heading != "" {
		to += "#" + heading
	}
	*link = []byte(to)
	return true
}

// plain is the text of a node without its form.
func (p *page) plain(node ast.Node) string {
	var out strings.Builder
	for n := range walk(node) {
		switch n := n.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(p.source))
			if n.SoftLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.HTMLBlock: // a comment
		default:
			if n.Type() != ast.TypeBlock {
				continue
			}
			out.WriteByte(' ')
			if n.IsRaw() { // code
				out.Write(n.Lines().Value(p.source))
			}
		}
	}
	return strings.TrimSpace(out.String())
}

// walk goes through a node and all below it.
func walk(node ast.Node) func(yield func(ast.Node) bool) {
	return func(yield func(ast.Node) bool) {
		// Walk returns what its function does, and this one returns no error.
		_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering && !yield(n) {
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
	}
}

// section is what the search finds: a heading and what stands below it. Members are short,
// because the index has a thousand.
type section struct {
	Page    string `json:"p"`
	Title   string `json:"t"`
	Heading string `json:"h"`
	Text    string `json:"x"`
}

var spaces = regexp.MustCompile(`\s+`)

// sections are the parts of a page that the search knows.
func (p *page) sections() (all []section) {
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading {
			h := p.headings[len(all)]
			all = append(all, section{Page: p.Out + "#" + h.ID, Title: p.Title, Heading: h.Text})
			continue
		}
		if len(all) > 0 {
			last := &all[len(all)-1]
			last.Text = strings.TrimSpace(last.Text + " " + spaces.ReplaceAllString(p.plain(n), " "))
		}
	}
	return all
}

// ids name headings in links as GitHub does, so that the same links work there.
type ids struct{ used map[string]int }

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (i *ids) Generate(title []byte, _ ast.NodeKind) []byte {
	id := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(title))), "")
	id = strings.ReplaceAll(id, " ", "-")
	n := i.used[id]
	i.used[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (i *ids) Put(id []byte) { i.used[string(id)]++ }
