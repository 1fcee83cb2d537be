package site

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	_ "embed"
)

// source is where files are that are no page.
const source = "https://github.com/mlxc/mlxc/blob/main/"

//go:embed page.html
var layout string

var pageTemplate = template.Must(template.New("page").Parse(layout))

// page is one Markdown file.
type page struct {
	name    string // its path in the repository, with slashes
	title   string
	text    []byte
	tree    ast.Node
	anchors map[string]bool
	body    template.HTML
}

// Files returns the Markdown files of a repository that are pages, README first.
func Files(root string) (out []string, err error) {
	for _, pattern := range []string{"README.md", "docs/start-*.md", "docs/install.md", "docs/*.md", "examples/*/README.md", "*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				return nil, err
			}
			if name = filepath.ToSlash(name); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// Site is the documentation of a repository.
type Site struct {
	root  string
	pages map[string]*page
	names []string
	files map[string]bool // what else the pages show, such as pictures
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()), // comments, and what the pages themselves write
)

// Read reads pages by their names below root.
func Read(root string, names []string) (*Site, error) {
	s := &Site{root: root, pages: map[string]*page{}, names: names, files: map[string]bool{}}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		p := &page{name: name, text: data, title: name, anchors: map[string]bool{}}
		ids := &anchors{seen: p.anchors}
		p.tree = markdown.Parser().Parse(text.NewReader(data), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
		if h, ok := p.tree.FirstChild().(*ast.Heading); ok {
			p.title = plain(h, data)
		}
		s.pages[name] = p
	}
	return s, nil
}

// anchors names headings as GitHub does, so that a link is the same there and here.
type anchors struct{ seen map[string]bool }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	base := Anchor(string(value))
	name := base
	for i := 1; a.seen[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	a.seen[name] = true
	return []byte(name)
}

func (a *anchors) Put(value []byte) { a.seen[string(value)] = true }

// Anchor returns the anchor that GitHub gives a heading: its letters, digits, hyphens and underscores in lower case, with hyphens
// for spaces.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// plain is the text of a node without its markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// resolve says where a link of a page leads, as the site has it. fault says why it leads nowhere.
func (s *Site) resolve(from *page, link string) (to, fault string) {
	u, err := url.Parse(link)
	if err != nil {
		return link, err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return link, ""
	}
	target := from.name
	if u.Path != "" {
		target = path.Join(path.Dir(from.name), u.Path)
	}
	if p := s.pages[target]; p != nil {
		if u.Fragment != "" && !p.anchors[u.Fragment] {
			return link, fmt.Sprintf("%s has no heading #%s", target, u.Fragment)
		}
		out := ""
		if u.Path != "" {
			out = relative(from.name, htmlName(target))
		}
		if u.Fragment != "" {
			out += "#" + u.Fragment
		}
		return out, ""
	}
	if strings.HasPrefix(target, "../") {
		return link, "it lies outside of the repository"
	}
	st, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(target)))
	if err != nil {
		return link, fmt.Sprintf("there is no %s", target)
	}
	if st.IsDir() {
		if p := s.pages[path.Join(target, "README.md")]; p != nil {
			return relative(from.name, htmlName(p.name)), ""
		}
	}
	return source + target, ""
}

// shows adds a picture that a page shows to the files of the site.
func (s *Site) shows(from *page, link string) (to, fault string) {
	if _, fault = s.resolve(from, link); fault == "" && !strings.Contains(link, ":") {
		s.files[path.Join(path.Dir(from.name), link)] = true
	}
	return link, fault
}

// Check makes the links of the pages those of the site, and returns an error that names all that lead nowhere.
func (s *Site) Check() error {
	var faults []error
	for _, name := range s.names {
		p := s.pages[name]
		_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering {
				return ast.WalkContinue, nil
			}
			var link *[]byte
			lead := s.resolve
			switch n := n.(type) {
			case *ast.Link:
				link = &n.Destination
			case *ast.Image:
				link, lead = &n.Destination, s.shows
			default:
				return ast.WalkContinue, nil
			}
			to, fault := lead(p, string(*link))
			if fault != "" {
				faults = append(faults, fmt.Errorf("%s: [%s](%s): %s", name, plain(n, p.text), *link, fault))
			}
			*link = []byte(to)
			return ast.WalkContinue, nil
		})
	}
	return errors.Join(faults...)
}

// htmlName is the file of a page: README.md is index.html.
func htmlName(name string) string {
	if name == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// relative is the way from one page to a file.
func relative(from, to string) string {
	up := strings.Count(from, "/")
	if dir := path.Dir(from); dir != "." && strings.HasPrefix(to, dir+"/") {
		return strings.TrimPrefix(to, dir+"/")
	}
	return strings.Repeat("../", up) + to
}

// Write writes the site into a folder. Check comes first.
func (s *Site) Write(out string) error {
	type entry struct {
		Link, Title string
		Here        bool
	}
	for _, name := range s.names {
		p := s.pages[name]
		var body bytes.Buffer
		if err := markdown.Renderer().Render(&body, p.text, p.tree); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.body = template.HTML(body.String())
		var pages []entry
		for _, other := range s.names {
			pages = append(pages, entry{relative(name, htmlName(other)), s.pages[other].title, other == name})
		}
		var file bytes.Buffer
		if err := pageTemplate.Execute(&file, map[string]any{"Title": p.title, "Body": p.body, "Pages": pages}); err != nil {
			return err
		}
		if err := put(out, htmlName(name), file.Bytes()); err != nil {
			return err
		}
	}
	for name := range s.files {
		data, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
		if err == nil {
			err = put(out, name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func put(out, name string, data []byte) error {
	to := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
