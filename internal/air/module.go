package air

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
)

// module is the text of an LLVM module, taken apart at its top level. The order within each
// list is that of the text.
type module struct {
	types    []string // %name = type …
	globals  []global
	declares []declaration
	funcs    []*function
	attrs    []string     // attributes #n = { … }
	metadata []string     // !n = …, of nodes that have a number
	target   calls.Target // of the bodies of air.* functions
	aligned  bool         // Input.Aligned
	named    []string     // !name = …
	comdats  []string
	nodes    map[string]string            // metadata by number, once it was asked for
	places   map[string]map[string]string // and what it says of places in the source
	bodies   []string                     // text that was added: functions and globals
	assembly string                       // the first line of assembly of the module's own
	layouts  map[string]layout            // of types, by their text
}

// global is a variable or constant: @name = text.
type global struct{ name, text string }

// declaration is a function without a body.
type declaration struct {
	name   string
	result string   // LLVM type, without attributes
	params []string // the same of the parameters
	attrs  string   // what follows the parameters
}

// function is a function with a body.
type function struct {
	name   string
	head   string   // the line that begins with define, without the brace
	lines  []string // between the braces
	params []param
	attrs  string // what follows the parameters in head
}

// param is a parameter of a function: its type without attributes, and its name.
type param struct{ typ, name string }

// symbol matches the name of a global, in quotes or not, without its @.
const symbol = `(?:"(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+)`

var (
	globalLine = regexp.MustCompile(`^@(` + symbol + `) = (.*)$`)
	defineLine = regexp.MustCompile(`^define .*?@(` + symbol + `)\(`)
	declare    = regexp.MustCompile(`^declare (.*?)@(` + symbol + `)\(`)
)

// parseModule takes a module apart. name is the file's, for errors.
func parseModule(name string, text []byte) (*module, error) {
	m := &module{}
	number := 0
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, number, fmt.Sprintf(format, args...))
	}
	var in *function
	for raw := range bytes.Lines(text) {
		number++
		line := strings.TrimRight(string(raw), "\r\n")
		if line != "" {
			if err := withinLimits(line); err != nil {
				return nil, fail("%v", err)
			}
		}
		if in != nil {
			if line == "}" {
				m.funcs, in = append(m.funcs, in), nil
				continue
			}
			in.lines = append(in.lines, line)
			continue
		}
		if line == "" || line[0] == ';' {
			continue
		}
		switch {
		case line[0] == '%':
			m.types = append(m.types, line)
		case line[0] == '@':
			g := globalLine.FindStringSubmatch(line)
			if g == nil {
				return nil, fail("this global is not understood: %.80q", line)
			}
			m.globals = append(m.globals, global{g[1], g[2]})
		case strings.HasPrefix(line, "declare "):
			d, err := parseDeclare(line)
			if err != nil {
				return nil, fail("%v", err)
			}
			m.declares = append(m.declares, d)
		case strings.HasPrefix(line, "define "):
			f, err := parseDefine(line)
			if err != nil {
				return nil, fail("%v", err)
			}
			in = f
		case strings.HasPrefix(line, "attributes "):
			m.attrs = append(m.attrs, line)
		case line[0] == '!' && len(line) > 1 && line[1] >= '0' && line[1] <= '9':
			m.metadata = append(m.metadata, line)
		case line[0] == '!':
			m.named = append(m.named, line)
		case line[0] == '$':
			m.comdats = append(m.comdats, line)
		case strings.HasPrefix(line, "target "), strings.HasPrefix(line, "source_filename "):
		case strings.HasPrefix(line, "module asm "):
			if m.assembly == "" {
				m.assembly = line
			}
		default:
			return nil, fail("this line is not understood: %.80q", line)
		}
	}
	if in != nil {
		return nil, fail("the function @%s has no end", in.name)
	}
	return m, nil
}

// parseDeclare reads `declare TYPE @name(TYPE, …) attributes`.
func parseDeclare(line string) (declaration, error) {
	at := declare.FindStringSubmatchIndex(line)
	if at == nil {
		return declaration{}, fmt.Errorf("this declaration is not understood: %.80q", line)
	}
	open := at[1] - 1
	end := matching(line, open)
	if end < 0 {
		return declaration{}, fmt.Errorf("the parameters of a declaration do not end: %.80q", line)
	}
	d := declaration{name: line[at[4]:at[5]], result: typeOf(line[at[2]:at[3]]), attrs: strings.TrimSpace(line[end+1:])}
	for _, p := range splitTop(line[open+1 : end]) {
		d.params = append(d.params, typeOf(p))
	}
	return d, nil
}

// parseDefine reads the first line of a function.
func parseDefine(line string) (*function, error) {
	at := defineLine.FindStringSubmatchIndex(line)
	if at == nil {
		return nil, fmt.Errorf("this function is not understood: %.80q", line)
	}
	open := at[1] - 1
	end := matching(line, open)
	if end < 0 || !strings.HasSuffix(line, "{") {
		return nil, fmt.Errorf("the head of a function does not end on its line: %.80q", line)
	}
	f := &function{
		name: line[at[2]:at[3]], head: strings.TrimSuffix(line, "{"),
		attrs: strings.TrimSpace(strings.TrimSuffix(line[end+1:], "{")),
	}
	for i, p := range splitTop(line[open+1 : end]) {
		name := fmt.Sprint("%", i) // that of a parameter without a name, if all are
		if k := strings.LastIndexByte(p, ' '); k >= 0 && p[k+1] == '%' {
			p, name = p[:k], p[k+1:]
		}
		typ := typeOf(p)
		if typ == "" {
			return nil, fmt.Errorf("a parameter has no type: %.80q", line)
		}
		f.params = append(f.params, param{typ, name})
	}
	return f, nil
}

// matching returns the index of the bracket that closes the one at open, or -1.
func matching(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = closing(s, i)
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			if depth--; depth == 0 {
				counted(i - open)
				return i
			}
		}
	}
	counted(len(s) - open)
	return -1
}

// splitTop splits a list at the commas that stand in no bracket.
func splitTop(s string) (out []string) {
	begin := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{', '<', '"':
			var end int
			if s[i] == '"' {
				end = i + 1
				for end < len(s) && s[end] != '"' {
					end++
				}
			} else {
				end = matching(s, i)
			}
			if end < 0 || end >= len(s) {
				i = len(s)
				continue
			}
			i = end
		case ',':
			out = append(out, strings.TrimSpace(s[begin:i]))
			begin = i + 1
		}
	}
	if rest := strings.TrimSpace(s[begin:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// typeOf returns the LLVM type at the end of s, before which linkage and attributes may
// stand, and after which others may: "noundef float" is float, "ptr addrspace(1) noundef
// align 4" is ptr addrspace(1).
func typeOf(s string) string {
	s = strings.TrimSpace(s)
	for s != "" {
		switch c := s[0]; {
		case c == '<' || c == '[' || c == '{':
			if end := matching(s, 0); end > 0 {
				return s[:end+1]
			}
			return s
		case c == '%':
			word, _, _ := strings.Cut(s, " ")
			return word
		}
		word, rest, _ := strings.Cut(s, " ")
		if strings.HasPrefix(word, "ptr") {
			if strings.HasPrefix(rest, "addrspace(") {
				return "ptr " + rest[:strings.IndexByte(rest, ')')+1]
			}
			return "ptr"
		}
		if scalarType(word) {
			return word
		}
		// An attribute, which may have an argument: align 4, range(i32 0, 5), "name"="value".
		if i := strings.IndexByte(word, '('); i >= 0 {
			end := matching(s, i)
			if end < 0 {
				return s
			}
			s = strings.TrimSpace(s[end+1:])
			continue
		}
		s = strings.TrimSpace(rest)
	}
	return s
}

// scalarType reports whether word is the name of a type without parts.
func scalarType(word string) bool {
	switch word {
	case "void", "half", "bfloat", "float", "double", "token", "metadata":
		return true
	}
	if len(word) < 2 || word[0] != 'i' {
		return false
	}
	for _, c := range word[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// bytesOf returns the size of a scalar or vector type in bytes, a bit counting as a byte, and
// 0 for other types.
func bytesOf(typ string) int {
	n, elem := elements(typ)
	switch elem {
	case "float", "i32":
		return 4 * n
	case "half", "bfloat", "i16":
		return 2 * n
	case "i64", "double", "ptr":
		return 8 * n
	case "i8", "i1":
		return n
	}
	return 0
}

// elements returns how many elements a vector type has, and their type; of other types, and of
// vectors longer than any, 1 and the type.
func elements(typ string) (int, string) {
	var n int
	var elem string
	if _, err := fmt.Sscanf(typ, "<%d x %s", &n, &elem); err != nil || n < 1 || n > maxLanes {
		return 1, typ
	}
	return n, strings.TrimSuffix(elem, ">")
}

// String is the text of the module.
func (m *module) String() string {
	var b strings.Builder
	for _, group := range [][]string{m.comdats, m.types} {
		for _, l := range group {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	for _, g := range m.globals {
		fmt.Fprintf(&b, "@%s = %s\n", g.name, g.text)
	}
	for _, d := range m.declares {
		fmt.Fprintf(&b, "declare %s @%s(%s) %s\n", d.result, d.name, strings.Join(d.params, ", "), d.attrs)
	}
	for _, f := range m.funcs {
		b.WriteString(f.head)
		b.WriteString("{\n")
		for _, l := range f.lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
		b.WriteString("}\n")
	}
	for _, t := range m.bodies {
		b.WriteString(t)
		if !strings.HasSuffix(t, "\n") {
			b.WriteByte('\n')
		}
	}
	for _, group := range [][]string{m.attrs, m.named, m.metadata} {
		for _, l := range group {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// function returns the function called name, or nil. A name may stand in quotes.
func (m *module) function(name string) *function {
	for _, f := range m.funcs {
		if strings.Trim(f.name, `"`) == name {
			return f
		}
	}
	return nil
}
