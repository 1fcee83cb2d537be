package llvm

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Module is the text of an LLVM module, taken apart at its top level. The order within each
// list is that of the text.
type Module struct {
	Types    []string // %name = type …
	Globals  []Global
	Declares []Declaration
	Funcs    []*Function
	Attrs    []string // attributes #n = { … }
	Metadata []string // !n = …, of nodes that have a number
	Named    []string // !name = …
	Comdats  []string
	nodes    map[string]string            // metadata by number, once it was asked for
	places   map[string]map[string]string // and what it says of places in the source
	Bodies   []string                     // text that was added: functions and globals
	Assembly string                       // the first line of assembly of the module's own
	layouts  map[string]Layout            // of types, by their text
}

// Global is a variable or constant: @name = text.
type Global struct{ Name, Text string }

// Declaration is a function without a body.
type Declaration struct {
	Name   string
	Result string   // LLVM type, without attributes
	Params []string // the same of the parameters
	Attrs  string   // what follows the parameters
}

// Function is a function with a body.
type Function struct {
	Name   string
	Head   string   // the line that begins with define, without the brace
	Lines  []string // between the braces
	Params []Param
	Attrs  string // what follows the parameters in head
}

// Param is a parameter of a function: its type without attributes, and its name.
type Param struct{ Typ, Name string }

// SymbolPattern matches the name of a global, in quotes or not, without its @.
const SymbolPattern = `(?:"(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+)`

var (
	globalLine  = regexp.MustCompile(`^@(` + SymbolPattern + `) = (.*)$`)
	defineLine  = regexp.MustCompile(`^define .*?@(` + SymbolPattern + `)\(`)
	DeclareLine = regexp.MustCompile(`^declare (.*?)@(` + SymbolPattern + `)\(`)
)

// Parse takes a module apart. name is the file's, for errors.
func Parse(name string, text []byte) (*Module, error) {
	m := &Module{}
	number := 0
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, number, fmt.Sprintf(format, args...))
	}
	var in *Function
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
				m.Funcs, in = append(m.Funcs, in), nil
				continue
			}
			in.Lines = append(in.Lines, line)
			continue
		}
		if line == "" || line[0] == ';' {
			continue
		}
		switch {
		case line[0] == '%':
			m.Types = append(m.Types, line)
		case line[0] == '@':
			g := globalLine.FindStringSubmatch(line)
			if g == nil {
				return nil, fail("this global is not understood: %.80q", line)
			}
			m.Globals = append(m.Globals, Global{g[1], g[2]})
		case strings.HasPrefix(line, "declare "):
			d, err := parseDeclare(line)
			if err != nil {
				return nil, fail("%v", err)
			}
			m.Declares = append(m.Declares, d)
		case strings.HasPrefix(line, "define "):
			f, err := parseDefine(line)
			if err != nil {
				return nil, fail("%v", err)
			}
			in = f
		case strings.HasPrefix(line, "attributes "):
			m.Attrs = append(m.Attrs, line)
		case line[0] == '!' && len(line) > 1 && line[1] >= '0' && line[1] <= '9':
			m.Metadata = append(m.Metadata, line)
		case line[0] == '!':
			m.Named = append(m.Named, line)
		case line[0] == '$':
			m.Comdats = append(m.Comdats, line)
		case strings.HasPrefix(line, "target "), strings.HasPrefix(line, "source_filename "):
		case strings.HasPrefix(line, "module asm "):
			if m.Assembly == "" {
				m.Assembly = line
			}
		default:
			return nil, fail("this line is not understood: %.80q", line)
		}
	}
	if in != nil {
		return nil, fail("the function @%s has no end", in.Name)
	}
	return m, nil
}

// parseDeclare reads `declare TYPE @name(TYPE, …) attributes`.
func parseDeclare(line string) (Declaration, error) {
	at := DeclareLine.FindStringSubmatchIndex(line)
	if at == nil {
		return Declaration{}, fmt.Errorf("this declaration is not understood: %.80q", line)
	}
	open := at[1] - 1
	end := Matching(line, open)
	if end < 0 {
		return Declaration{}, fmt.Errorf("the parameters of a declaration do not end: %.80q", line)
	}
	d := Declaration{Name: line[at[4]:at[5]], Result: TypeOf(line[at[2]:at[3]]), Attrs: strings.TrimSpace(line[end+1:])}
	for _, p := range Split(line[open+1 : end]) {
		d.Params = append(d.Params, TypeOf(p))
	}
	return d, nil
}

// parseDefine reads the first line of a function.
func parseDefine(line string) (*Function, error) {
	at := defineLine.FindStringSubmatchIndex(line)
	if at == nil {
		return nil, fmt.Errorf("this function is not understood: %.80q", line)
	}
	open := at[1] - 1
	end := Matching(line, open)
	if end < 0 || !strings.HasSuffix(line, "{") {
		return nil, fmt.Errorf("the head of a function does not end on its line: %.80q", line)
	}
	f := &Function{
		Name: line[at[2]:at[3]], Head: strings.TrimSuffix(line, "{"),
		Attrs: strings.TrimSpace(strings.TrimSuffix(line[end+1:], "{")),
	}
	for i, p := range Split(line[open+1 : end]) {
		name := fmt.Sprint("%", i) // that of a parameter without a name, if all are
		if k := strings.LastIndexByte(p, ' '); k >= 0 && p[k+1] == '%' {
			p, name = p[:k], p[k+1:]
		}
		typ := TypeOf(p)
		if typ == "" {
			return nil, fmt.Errorf("a parameter has no type: %.80q", line)
		}
		f.Params = append(f.Params, Param{typ, name})
	}
	return f, nil
}

// NameEnd is the end of the name whose sigil stands at an index: @f, @"f g", %struct.s, !7, #3.
func NameEnd(s string, i int) int {
	if i++; i < len(s) && s[i] == '"' {
		return min(Closing(s, i)+1, len(s))
	}
	for i < len(s) && nameByte(s[i]) {
		i++
	}
	return i
}

// Matching returns the index of the bracket that closes the one at open, or -1.
func Matching(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = Closing(s, i)
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			if depth--; depth == 0 {
				Counted(i - open)
				return i
			}
		}
	}
	Counted(len(s) - open)
	return -1
}

// span is a part of a text.
type span struct{ at, end int }

// Split splits a list at the commas that stand in no bracket.
func Split(s string) (out []string) {
	for _, p := range split(s, 0, len(s)) {
		out = append(out, s[p.at:p.end])
	}
	return out
}

// split splits a part of a text, and leaves out white space around the elements.
func split(s string, begin, end int) (out []span) {
	add := func(to int) {
		for begin < to && s[begin] == ' ' {
			begin++
		}
		p := span{begin, to}
		for p.end > p.at && s[p.end-1] == ' ' {
			p.end--
		}
		out, begin = append(out, p), to+1
	}
	for i := begin; i < end; i++ {
		switch s[i] {
		case '"':
			i = Closing(s, i)
		case '(', '[', '{', '<':
			if to := Matching(s[:end], i); to >= 0 {
				i = to
			} else {
				i = end
			}
		case ',':
			add(i)
		}
	}
	if strings.TrimSpace(s[min(begin, end):end]) != "" {
		add(end)
	}
	return out
}

// TypeOf returns the LLVM type at the end of s, before which linkage and attributes may
// stand, and after which others may: "noundef float" is float, "ptr addrspace(1) noundef
// align 4" is ptr addrspace(1).
func TypeOf(s string) string {
	s = strings.TrimSpace(s)
	for s != "" {
		switch c := s[0]; {
		case c == '<' || c == '[' || c == '{':
			if end := Matching(s, 0); end > 0 {
				return s[:end+1]
			}
			return s
		case c == '%':
			return s[:NameEnd(s, 0)]
		}
		word, rest, _ := strings.Cut(s, " ")
		if strings.HasPrefix(word, "ptr") {
			if strings.HasPrefix(rest, "addrspace(") {
				return "ptr " + rest[:strings.IndexByte(rest, ')')+1]
			}
			return "ptr"
		}
		if IsScalar(word) {
			return word
		}
		// An attribute, which may have an argument: align 4, range(i32 0, 5), "name"="value".
		if i := strings.IndexByte(word, '('); i >= 0 {
			end := Matching(s, i)
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

// ValueOf is an operand without its type, which it begins with, and without attributes.
func ValueOf(operand, typ string) string {
	v := strings.TrimSpace(strings.TrimPrefix(operand, typ))
	for {
		word, _, ok := strings.Cut(v, " ")
		name, argument, _ := strings.Cut(word, "(")
		if !ok || !parameterAttributes[name] {
			return v
		}
		end := len(word)
		if argument != "" {
			if end = Matching(v, len(name)) + 1; end == 0 {
				return v
			}
		}
		v = strings.TrimSpace(v[end:])
		if word == "align" {
			_, v, _ = strings.Cut(v, " ")
		}
	}
}

// parameterAttributes are those that may stand between the type of an argument and its value.
var parameterAttributes = map[string]bool{
	"noundef": true, "signext": true, "zeroext": true, "inreg": true, "nonnull": true, "readonly": true, "readnone": true, "writeonly": true,
	"nocapture": true, "noalias": true, "nofree": true, "returned": true, "immarg": true, "align": true, "dereferenceable": true,
	"dereferenceable_or_null": true, "captures": true, "range": true, "nofpclass": true, "byval": true, "sret": true, "initializes": true,
}

// IsScalar reports whether word is the name of a type without parts.
func IsScalar(word string) bool {
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

// BytesOf returns the size of a scalar or vector type in bytes, a bit counting as a byte, and
// 0 for other types.
func BytesOf(typ string) int {
	n, elem := Elements(typ)
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

// Elements returns how many elements a vector type has, and their type; of other types, and of
// vectors longer than any, 1 and the type.
func Elements(typ string) (int, string) {
	var n int
	var elem string
	if _, err := fmt.Sscanf(typ, "<%d x %s", &n, &elem); err != nil || n < 1 || n > maxLanes {
		return 1, typ
	}
	return n, strings.TrimSuffix(elem, ">")
}

// String is the text of the module.
func (m *Module) String() string {
	var b strings.Builder
	for _, group := range [][]string{m.Comdats, m.Types} {
		for _, l := range group {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	for _, g := range m.Globals {
		fmt.Fprintf(&b, "@%s = %s\n", g.Name, g.Text)
	}
	for _, d := range m.Declares {
		fmt.Fprintf(&b, "declare %s @%s(%s) %s\n", d.Result, d.Name, strings.Join(d.Params, ", "), d.Attrs)
	}
	for _, f := range m.Funcs {
		b.WriteString(f.Head)
		b.WriteString("{\n")
		for _, l := range f.Lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
		b.WriteString("}\n")
	}
	for _, t := range m.Bodies {
		b.WriteString(t)
		if !strings.HasSuffix(t, "\n") {
			b.WriteByte('\n')
		}
	}
	for _, group := range [][]string{m.Attrs, m.Named, m.Metadata} {
		for _, l := range group {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Function returns the function called name, or nil. A name may stand in quotes.
func (m *Module) Function(name string) *Function {
	for _, f := range m.Funcs {
		if strings.Trim(f.Name, `"`) == name {
			return f
		}
	}
	return nil
}

// Add adds text to the module, but for declarations of what is known.
func (m *Module) Add(text string, known map[string]bool) {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if d := DeclareLine.FindStringSubmatch(l); d != nil && known[strings.Trim(d[2], `"`)] {
			continue
		}
		b.WriteString(l)
	}
	m.Bodies = append(m.Bodies, b.String())
}
