package llvm

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	locationField = regexp.MustCompile(`\b(line|scope|inlinedAt|file|filename): ("[^"]*"|!?[0-9]+)`)
)

// node returns the fields of a metadata node that tell a place in the source. Many places may
// name one node: each is read once.
func (m *Module) node(name string) map[string]string {
	if fields, ok := m.places[name]; ok {
		return fields
	}
	if m.nodes == nil {
		m.nodes, m.places = map[string]string{}, map[string]map[string]string{}
		for _, l := range m.Metadata {
			if n, text, ok := strings.Cut(l, " = "); ok {
				m.nodes[n] = text
			}
		}
	}
	fields := map[string]string{}
	m.places[name] = fields
	Counted(len(m.nodes[name]))
	for _, f := range locationField.FindAllStringSubmatch(m.nodes[name], -1) {
		if _, ok := fields[f[1]]; !ok {
			fields[f[1]] = strings.Trim(f[2], `"`)
		}
	}
	return fields
}

// Line returns the line of the source that an instruction comes from, given its place as it is
// attached (", !dbg !7"); 0 if that is not known. Where it comes from a header that was inlined,
// it is the line that called.
func (m *Module) Line(dbg string) int {
	name := strings.TrimPrefix(dbg, ", !dbg ")
	best := 0
	for range 64 { // as deep as calls are inlined into each other
		if name == "" {
			break
		}
		at := m.node(name)
		n, _ := strconv.Atoi(at["line"])
		file := m.fileOf(at["scope"])
		if best == 0 || strings.HasSuffix(file, ".metal") {
			best = n
		}
		if strings.HasSuffix(file, ".metal") {
			break
		}
		name = at["inlinedAt"]
	}
	return best
}

// place is that of an instruction or a function in the source, as it is attached.
var place = regexp.MustCompile(`(?m),? !dbg ![0-9]+(, !|$)`)

// DbgSuffix is the place of a function in the source, as it is attached to its head.
var DbgSuffix = regexp.MustCompile(` !dbg ![0-9]+`)

// WithoutPlaces takes the places in the source out of all functions. The tables of sites and
// accesses have them by now, an object has no room for them, and LLVM 19 fails to split a
// coroutine that has them.
func (m *Module) WithoutPlaces() {
	for _, f := range m.Funcs {
		f.Head = DbgSuffix.ReplaceAllString(f.Head, "")
		for i, l := range f.Lines {
			f.Lines[i] = withoutPlace(l)
		}
	}
	for i, b := range m.Bodies {
		var out strings.Builder
		for l := range strings.Lines(b) {
			out.WriteString(withoutPlace(l))
		}
		m.Bodies[i] = out.String()
	}
	m.Named = nil
}

// withoutPlace takes the place out of a line, before which the expression has nothing to look for.
func withoutPlace(l string) string {
	i := strings.Index(l, " !dbg !")
	if i < 0 {
		return l
	}
	i -= min(i, 1) // a comma may stand before it
	return l[:i] + place.ReplaceAllString(l[i:], "$1")
}

// fileOf returns the file of a scope.
func (m *Module) fileOf(scope string) string {
	for range 64 {
		s := m.node(scope)
		if f := s["file"]; f != "" {
			return m.node(f)["filename"]
		}
		if scope = s["scope"]; scope == "" {
			break
		}
	}
	return ""
}
