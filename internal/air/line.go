package air

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	locationField = regexp.MustCompile(`\b(line|scope|inlinedAt|file|filename): ("[^"]*"|!?[0-9]+)`)
)

// node returns the fields of a metadata node that tell a place in the source.
func (m *module) node(name string) map[string]string {
	if m.nodes == nil {
		m.nodes = map[string]string{}
		for _, l := range m.metadata {
			if n, text, ok := strings.Cut(l, " = "); ok {
				m.nodes[n] = text
			}
		}
	}
	fields := map[string]string{}
	for _, f := range locationField.FindAllStringSubmatch(m.nodes[name], -1) {
		if _, ok := fields[f[1]]; !ok {
			fields[f[1]] = strings.Trim(f[2], `"`)
		}
	}
	return fields
}

// line returns the line of the source that an instruction comes from, given its place as it is
// attached (", !dbg !7"); 0 if that is not known. Where it comes from a header that was inlined,
// it is the line that called.
func (m *module) line(dbg string) int {
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

// fileOf returns the file of a scope.
func (m *module) fileOf(scope string) string {
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
