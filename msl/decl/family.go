package decl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/ir"
)

// The bounds of what declarations may expand to: sources come from users too.
const (
	maxMembers = 1 << 10 // kernels of one declaration
	maxLines   = 1 << 10 // lines of each
	maxText    = 8 << 20 // bytes that the lines of a source may expand to, in addition to four times its length
	maxDepth   = 32      // braces within braces, blocks within blocks
)

var errRoom = fmt.Errorf("the declarations of this source expand to more than %d MiB", maxText>>20)

// maxError is how many bytes the message of an error has. Texts that it quotes may have expanded to megabytes.
const maxError = 800

// bounded leaves out the middle of a message that is too long: its beginning says where, its end what is wrong.
func bounded(err error) error {
	if err == nil || len(err.Error()) <= maxError {
		return err
	}
	text := err.Error()
	return errors.New(strings.ToValidUTF8(text[:maxError/2], "") + " … " + strings.ToValidUTF8(text[len(text)-maxError/2:], ""))
}

// definition is a @text, whose body is one line, or a @lines block. Its body may use the definitions
// that stand before it in the source, so no definition can use itself.
type definition struct {
	params []string
	body   []line
	before int // how many definitions stand before this one
}

// family expands the declarations of one source: braces, @if, @each and @use become plain lines.
type family struct {
	defined map[string]definition
	room    int // bytes that lines may still expand to
	reading sync.Mutex
}

// scope holds the names that braces may use at one place of a source.
type scope struct {
	values map[string]string // of the parameters
	limit  int               // how many of the definitions, in the order of the source, can be used here
	depth  int               // how deeply the place is nested
	steers func(name string) // is called with each parameter that decides which lines there are
}

func (s scope) with(name, value string) scope {
	s.values = maps.Clone(s.values)
	s.values[name] = value
	return s
}

func (s scope) inner(limit int) scope {
	s.limit = limit
	s.depth++
	return s
}

// steer calls s.steers with the parameters that a condition or list in text names.
func (s scope) steer(text string) {
	for p := range s.values {
		if strings.Contains(text, "{"+p+"}") {
			s.steers(p)
		}
	}
}

// define reads @text NAME(P; …) = TEXT, or the head of @lines NAME(P; …) and the lines behind it.
func (f *family) define(head line, body []line) error {
	left, text := head.text, ""
	if head.key == "text" {
		var ok bool
		if left, text, ok = strings.Cut(head.text, "="); !ok {
			return head.errorf("want NAME(PARAMETER; …) = TEXT, found %q", head.text)
		}
		body = []line{{head.file, head.no, "text", strings.TrimSpace(text)}}
	}
	name, list, ok := strings.Cut(strings.TrimSpace(left), "(")
	list, ok2 := strings.CutSuffix(list, ")")
	if !ok || !ok2 || !isName(name) {
		return head.errorf("want NAME(PARAMETER; …), found %q", strings.TrimSpace(left))
	}
	d := definition{body: body, before: len(f.defined)}
	if list != "" {
		d.params = semicolons(list)
	}
	for i, p := range d.params {
		if !isName(p) || slices.Contains(d.params[:i], p) {
			return head.errorf("the parameter %q has no valid name, or there are two of it", p)
		}
	}
	if _, ok := f.defined[name]; ok {
		return head.errorf("%q is defined twice", name)
	}
	f.defined[name] = d
	return nil
}

// call finds the definition that NAME(ARGUMENT; …) names, and the scope of its body.
func (f *family) call(text string, s scope) (definition, scope, error) {
	name, list, ok := strings.Cut(text, "(")
	list, ok2 := strings.CutSuffix(list, ")")
	d, known := f.defined[name]
	if !ok || !ok2 || !known || d.before >= s.limit {
		return d, s, fmt.Errorf("{%s} is neither a parameter nor a @text or @lines that stands before", text)
	}
	var args []string
	if list != "" || len(d.params) > 0 {
		args = semicolons(list)
	}
	if len(args) != len(d.params) {
		return d, s, fmt.Errorf("%s has the parameters (%s), not %d", name, strings.Join(d.params, "; "), len(args))
	}
	for i, p := range d.params {
		s = s.with(p, args[i])
	}
	return d, s.inner(d.before), nil
}

// semicolons cuts a list at semicolons outside of braces.
func semicolons(list string) (out []string) {
	depth, from := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ';':
			if depth == 0 {
				out = append(out, strings.TrimSpace(list[from:i]))
				from = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(list[from:]))
}

// fill puts values in the place of braces.
func (f *family) fill(text string, s scope) (string, error) {
	if s.depth > maxDepth {
		return "", fmt.Errorf("braces are nested more than %d deep", maxDepth)
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if f.room -= len(before); f.room < 0 {
			return "", errRoom
		}
		if !ok {
			return b.String(), nil
		}
		end := closing(rest)
		if end < 0 {
			return "", fmt.Errorf("{ without }")
		}
		value, err := f.value(rest[:end], s.inner(s.limit))
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = rest[end+1:]
	}
}

// value is what stands in the place of a pair of braces.
func (f *family) value(inner string, s scope) (string, error) {
	if list, ok := strings.CutPrefix(inner, "each "); ok {
		return f.join(list, s)
	}
	inner, err := f.fill(inner, s)
	if err != nil {
		return "", err
	}
	if value, ok := s.values[inner]; ok {
		f.room -= len(value)
		return value, nil
	}
	d, in, err := f.call(inner, s)
	if err == nil && (len(d.body) == 0 || d.body[0].key != "text") {
		err = fmt.Errorf("%s has lines: put them in place by @use", inner)
	}
	if err != nil {
		return "", err
	}
	return f.fill(d.body[0].text, in)
}

// join reads NAME = WORD WORD …; TEXT; BETWEEN: the text for each word, joined by what stands between two of them.
func (f *family) join(text string, s scope) (string, error) {
	parts := semicolons(text)
	if len(parts) != 3 {
		return "", fmt.Errorf("{each %s} is not {each NAME = WORD WORD …; TEXT; BETWEEN}", text)
	}
	name, words, err := f.words(parts[0], s)
	if err != nil {
		return "", err
	}
	between, err := f.fill(parts[2], s)
	if err != nil {
		return "", err
	}
	out := make([]string, len(words))
	for i, w := range words {
		if out[i], err = f.fill(parts[1], s.with(name, w)); err != nil {
			return "", err
		}
	}
	return strings.Join(out, " "+between+" "), nil
}

// words reads NAME = WORD WORD ….
func (f *family) words(text string, s scope) (name string, words []string, err error) {
	name, list, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !ok || !isName(name) {
		return "", nil, fmt.Errorf("want NAME = WORD WORD …, found %q", text)
	}
	if _, ok := s.values[name]; ok {
		return "", nil, fmt.Errorf("%q is defined twice", name)
	}
	list, err = f.fill(list, s)
	return name, strings.Fields(list), err
}

// closing is the place of the brace that closes one that stands before text, or -1.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// flatten returns the plain lines that a block stands for.
func (f *family) flatten(block []line, s scope) (out []line, err error) {
	for len(block) > 0 {
		l := block[0]
		if s.depth > maxDepth {
			return nil, l.errorf("blocks are nested more than %d deep", maxDepth)
		}
		if f.room -= len(l.key) + 1; f.room < 0 {
			return nil, l.errorf("%w", errRoom)
		}
		var more []line
		switch l.key {
		case "if", "each":
			var body, other []line
			if body, other, block, err = enclosed(block); err != nil {
				return nil, err
			}
			if l.key == "if" {
				more, err = f.choose(l, body, other, s)
			} else {
				more, err = f.repeat(l, body, s)
			}
		case "end", "else":
			return nil, l.errorf("stands without @if or @each before it")
		case "use":
			block = block[1:]
			more, err = f.use(l, s)
		default:
			block = block[1:]
			if l.text, err = f.fill(l.text, s); err != nil {
				return nil, l.errorf("%w", err)
			}
			more = []line{l}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// enclosed cuts a block that begins with @if, @each or @lines behind the @end that ends it, and at @else.
func enclosed(block []line) (body, other, rest []line, err error) {
	depth, middle := 0, -1
	for i, l := range block {
		switch {
		case l.key == "if" || l.key == "each" || l.key == "lines":
			depth++
		case l.key == "else" && depth == 1 && block[0].key == "if" && middle < 0:
			middle = i
		case l.key == "else" && depth == 1:
			return nil, nil, nil, l.errorf("belongs to no @if")
		case l.key == "end":
			if depth--; depth > 0 {
				continue
			}
			if middle < 0 {
				return block[1:i], nil, block[i+1:], nil
			}
			return block[1:middle], block[middle+1 : i], block[i+1:], nil
		}
	}
	return nil, nil, nil, block[0].errorf("has no @end")
}

// choose takes the lines of @if NAME == VALUE|VALUE, or of @if NAME != VALUE|VALUE, where that holds.
func (f *family) choose(l line, body, other []line, s scope) ([]line, error) {
	name, list, equal := strings.Cut(l.text, "==")
	if !equal {
		var ok bool
		if name, list, ok = strings.Cut(l.text, "!="); !ok {
			return nil, l.errorf("want NAME == VALUE|VALUE, or !=, found %q", l.text)
		}
	}
	name = strings.TrimSpace(name)
	value, ok := s.values[name]
	if !ok {
		return nil, l.errorf("there is no parameter %q", name)
	}
	s.steers(name)
	found := slices.ContainsFunc(strings.Split(list, "|"), func(v string) bool { return strings.TrimSpace(v) == value })
	if found != equal {
		body = other
	}
	return f.flatten(body, s.inner(s.limit))
}

// repeat takes the lines of @each NAME = WORD WORD once for each word.
func (f *family) repeat(l line, body []line, s scope) (out []line, err error) {
	s.steer(l.text)
	name, words, err := f.words(l.text, s)
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	for _, w := range words {
		more, err := f.flatten(body, s.with(name, w).inner(s.limit))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// use puts the lines of a definition in place.
func (f *family) use(l line, s scope) ([]line, error) {
	name, _, _ := strings.Cut(l.text, "(")
	s.steer(name)
	text, err := f.fill(l.text, s)
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	d, in, err := f.call(text, s)
	if err == nil && len(d.body) > 0 && d.body[0].key == "text" {
		err = fmt.Errorf("%s is a @text: it stands in braces", text)
	}
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	return f.flatten(d.body, in)
}

// param is a template parameter. Each choice has a spelling in the kernel's name and a
// value in the declaration.
type param struct {
	name    string
	choices []choice
}

type choice struct{ spelled, value string }

// number is a value as an integer, if it is one or a truth value.
func number(value string) (int64, bool) {
	switch value {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}

// isNumber reports whether all choices are numbers: expressions may name the parameter then.
func (p *param) isNumber() bool {
	return !slices.ContainsFunc(p.choices, func(c choice) bool { _, ok := number(c.value); return !ok })
}

// expand returns the kernels that a declaration stands for. Their lines are read when they are asked for.
func (f *family) expand(file string, block []line, of *ir.Library) ([]*Member, error) {
	params, pieces, err := f.template(block[0].text)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, block[0].no, err)
	}
	members := 1
	for _, p := range params {
		if members *= len(p.choices); members > maxMembers {
			return nil, fmt.Errorf("%s:%d: the template parameters make more than %d kernels", file, block[0].no, maxMembers)
		}
	}
	limit := len(f.defined)
	var out []*Member
	for n := range members {
		name := pieces[0]
		for i, c := range chosen(params, n) {
			name += c.spelled + pieces[i+1]
		}
		if !isName(name) {
			return nil, (&Decl{File: file, Line: block[0].no, Name: name}).errorf("%q is no name of a function", name)
		}
		m := &Member{Name: name, File: file, Line: block[0].no, Of: of}
		m.lines = sync.OnceValues(func() (text, error) {
			f.reading.Lock()
			defer f.reading.Unlock()
			t, err := f.member(m, params, n, block[1:], limit)
			return t, bounded(err)
		})
		m.read = sync.OnceValues(func() (*Decl, error) {
			t, err := m.lines()
			if err != nil {
				return nil, err
			}
			d, err := m.build(params, t)
			return d, bounded(err)
		})
		out = append(out, m)
	}
	return out, nil
}

// chosen are the values that the parameters have in member n of a template.
func chosen(params []param, n int) []choice {
	out := make([]choice, len(params))
	for i := len(params) - 1; i >= 0; i-- {
		out[i] = params[i].choices[n%len(params[i].choices)]
		n /= len(params[i].choices)
	}
	return out
}

// text is what a template says of one member.
type text struct {
	values  map[string]string // of the parameters
	variant []string          // see [Decl]
	lines   []line
}

// member expands the lines of member n of a template, which may use the first definitions.
func (f *family) member(m *Member, params []param, n int, block []line, limit int) (t text, err error) {
	s := scope{values: map[string]string{}, limit: limit}
	for i, c := range chosen(params, n) {
		s.values[params[i].name] = c.value
	}
	steering := map[string]bool{}
	s.steers = func(name string) { steering[name] = true }
	t.values = s.values
	if t.lines, err = f.flatten(block, s); err != nil {
		return t, err
	}
	if len(t.lines) > maxLines {
		return t, m.empty().errorf("stands for more than %d lines", maxLines)
	}
	for _, p := range params {
		if steering[p.name] {
			t.variant = append(t.variant, p.name+"="+s.values[p.name])
		}
	}
	return t, nil
}

// empty is the declaration before any of its lines is read.
func (m *Member) empty() *Decl { return &Decl{Name: m.Name, File: m.File, Line: m.Line} }

// build reads the lines of a declaration.
func (m *Member) build(params []param, t text) (*Decl, error) {
	d := m.empty()
	d.Variant = t.variant
	if err := d.build(params, t.values, t.lines); err != nil {
		return nil, err
	}
	if d.Of = m.Of; m.Of != nil && !d.EffectsOnly {
		return nil, d.errorf("is of a library whose code nobody compares with terms: say @effects, and no @term")
	}
	return d, nil
}

// template cuts the name of a kernel at its parameters. Lists of values may be texts, in braces.
func (f *family) template(name string) (params []param, pieces []string, err error) {
	for {
		before, rest, ok := strings.Cut(name, "{")
		pieces = append(pieces, before)
		if !ok {
			return params, pieces, nil
		}
		end := closing(rest)
		if end < 0 {
			end = len(rest)
		}
		pname, list, ok := strings.Cut(rest[:end], ":")
		if end == len(rest) || !ok || !isName(pname) {
			return nil, nil, fmt.Errorf("template parameter %q is not {name:value|value}", "{"+rest[:end])
		}
		if list, err = f.fill(list, scope{limit: len(f.defined)}); err != nil {
			return nil, nil, err
		}
		p := param{name: pname}
		for _, c := range strings.Split(list, "|") {
			spelled, value, ok := strings.Cut(c, "=")
			if !ok {
				value = spelled
			}
			p.choices = append(p.choices, choice{spelled, value})
		}
		params = append(params, p)
		name = rest[end+1:]
	}
}

// alternatives returns the lines that a @witness or @equivalent line with {A|B} in it stands for: one for each
// combination.
func (f *family) alternatives(l line) ([]line, error) {
	before, rest, ok := strings.Cut(l.text, "{")
	if f.room -= len(l.text); f.room < 0 {
		return nil, l.errorf("%w", errRoom)
	}
	if !ok {
		return []line{l}, nil
	}
	list, after, ok := strings.Cut(rest, "}")
	if !ok {
		return nil, l.errorf("{ without }")
	}
	var out []line
	for _, a := range strings.Split(list, "|") {
		more, err := f.alternatives(line{l.file, l.no, l.key, before + a + after})
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// slotOf reads the slot of an @arg line, which counts on from the argument before in its space if none stands there.
func slotOf(text string) (slot int, rest string, err error) {
	first, rest, _ := strings.Cut(text, " ")
	if first == "" || first[0] < '0' || first[0] > '9' {
		return -1, text, nil
	}
	n, err := strconv.ParseUint(first, 10, 8)
	if err != nil {
		return 0, "", fmt.Errorf("%q is no slot", first)
	}
	return int(n), rest, nil
}
