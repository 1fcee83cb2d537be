package decl

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Source is what the comments of a Metal source declare.
type Source struct {
	File    string
	Decls   []*Decl   // one for each combination of template values, in the order of the file; nil after [Index]
	Members []*Member // the same kernels

	tests func() (*Tests, error)
}

// Member is a kernel that a source declares.
type Member struct {
	Name string
	File string
	Line int         // of @kernel
	Of   *ir.Library // see [Decl]

	lines func() (text, error)
	read  func() (*Decl, error)
}

// Decl returns the declaration, which it reads when it is first asked for. Several may ask at the same time.
func (m *Member) Decl() (*Decl, error) { return m.read() }

// Takes reports whether an argument in memory has elements of type t. It is much faster than reading the declaration.
func (m *Member) Takes(t ir.DType) (bool, error) {
	of, err := m.lines()
	if err != nil {
		return false, err
	}
	for _, l := range of.lines {
		if l.key != "arg" {
			continue
		}
		_, _, space, types, _, rest, err := split(l.text)
		if err != nil {
			return false, l.errorf("%w", err)
		}
		if outer, inner, _ := strings.Cut(types, " as "); space == ir.DeviceArg.String() && rest != "unused" && cmp.Or(inner, outer) == t.String() {
			return true, nil
		}
	}
	return false, nil
}

// all reads all declarations in order, up to the first that is wrong.
func (s *Source) all() (out []*Decl, err error) {
	for _, m := range s.Members {
		d, err := m.Decl()
		if err != nil {
			return out, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Parse reads the declarations of a Metal source. With an error it returns what it has
// read before.
func Parse(file, src string) (*Source, error) { return ParseWith(file, src, nil) }

// ParseWith is [Parse] of a source that includes some of these headers, by name, whose definitions
// (@text and @lines) it may use.
func ParseWith(file, src string, headers map[string]string) (*Source, error) {
	out, wrong := Index(file, src, headers)
	var err error
	if out.Decls, err = out.all(); err != nil { // it stands before what Index may have found
		return out, err
	}
	return out, wrong
}

// Index is [ParseWith] that finds out what kernels a source declares and leaves the lines of their declarations for
// later: a template may have hundreds of kernels, of which a program uses a few.
func Index(file, src string, headers map[string]string) (*Source, error) {
	out := &Source{File: file}
	p := &parser{source: out, headers: headers, done: map[string]bool{}, family: family{defined: map[string]definition{}, room: maxText + 4*len(src)}}
	out.tests = sync.OnceValues(func() (*Tests, error) {
		ds, err := out.all()
		if err != nil {
			return nil, err
		}
		p.reading.Lock()
		defer p.reading.Unlock()
		tests, err := p.readTests(ds, p.tests)
		return tests, bounded(err)
	})
	return out, bounded(p.read(file, src))
}

// parser is what [ParseWith] has read so far.
type parser struct {
	family
	source  *Source
	headers map[string]string
	done    map[string]bool // those that were read
	of      *ir.Library     // that the following declarations are of
	tests   []line
}

// read takes the declarations of a file block by block.
func (p *parser) read(file, src string) error {
	lines := strings.Split(src, "\n")
	for i := 0; i < len(lines); {
		if name, ok := Included(lines[i]); ok && p.headers[name] != "" && !p.done[name] {
			p.done[name] = true
			if err := p.read(name, p.headers[name]); err != nil {
				return err
			}
		}
		if _, ok := directive(lines[i]); !ok {
			i++
			continue
		}
		var block []line
		for ; i < len(lines); i++ {
			text, ok := directive(lines[i])
			if !ok {
				break
			}
			at := i
			for strings.HasSuffix(text, "\\") {
				text = strings.TrimSuffix(text, "\\")
				if i++; i >= len(lines) {
					return fmt.Errorf("%s:%d: the declaration ends in a continuation", file, i)
				}
				more, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), "//")
				if !ok {
					return fmt.Errorf("%s:%d: the line above is continued, this one is no comment", file, i+1)
				}
				text += " " + remarkCut(more)
			}
			key, rest, _ := strings.Cut(text, " ")
			l := line{file, at + 1, key, strings.TrimSpace(rest)}
			switch {
			case key == "witness" || key == "equivalent":
				p.tests = append(p.tests, l)
			case key == "library" && len(block) > 0:
				return fmt.Errorf("%s:%d: @library stands within a declaration: it concerns those behind it, so put it before @kernel", file, l.no)
			case key == "library":
				lib, err := libraryOf(l.text)
				if err != nil {
					return fmt.Errorf("%s:%d: @library: %w", file, l.no, err)
				}
				p.of = lib
			default:
				block = append(block, l)
			}
		}
		if err := p.block(file, block); err != nil {
			return err
		}
	}
	return nil
}

// Included returns the name in a line that includes a file by its name in quotes.
func Included(l string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimSpace(l), `#include "`)
	return strings.TrimSuffix(name, `"`), ok
}

// block reads directives that follow one another: definitions and declarations, each begun by @text, @lines or
// @kernel.
func (p *parser) block(file string, block []line) error {
	for len(block) > 0 {
		switch head := block[0]; head.key {
		case "text":
			if err := p.define(head, nil); err != nil {
				return err
			}
			block = block[1:]
		case "lines":
			body, _, rest, err := enclosed(block)
			if err == nil {
				err = p.define(head, body)
			}
			if err != nil {
				return err
			}
			block = rest
		case "kernel":
			end := 1
			for end < len(block) && !slices.Contains([]string{"kernel", "text", "lines"}, block[end].key) {
				end++
			}
			members, err := p.expand(file, block[:end], p.of)
			if err != nil {
				return err
			}
			p.source.Members = append(p.source.Members, members...)
			block = block[end:]
		default:
			return fmt.Errorf("%s:%d: @%s stands before @kernel", file, head.no, head.key)
		}
	}
	return nil
}

type line struct {
	file      string
	no        int
	key, text string
}

func (l line) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: @%s: %w", l.file, l.no, l.key, fmt.Errorf(format, args...))
}

// directive returns what follows "// @".
func directive(s string) (string, bool) {
	s, ok := strings.CutPrefix(strings.TrimSpace(s), "//")
	if !ok {
		return "", false
	}
	s, ok = strings.CutPrefix(strings.TrimLeft(s, "/ \t"), "@")
	if !ok {
		return "", false
	}
	return remarkCut(s), true
}

func remarkCut(s string) string {
	if i := strings.Index(s, " --"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// builder is the scope in which one declaration's expressions are read.
type builder struct{ d *Decl }

func (b builder) Symbol(name string) (int, term.Kind, bool) {
	for i, s := range b.d.Symbols {
		if s.Name == name {
			return i, s.Kind, true
		}
	}
	return 0, 0, false
}

func (b builder) Load(name string) (int, int, term.Kind, bool) {
	for i, a := range b.d.Args {
		// What a must-write held before it does not matter to the kernel.
		if a.Name == name && a.Kind == ir.DeviceArg && a.Mode != Unused && a.Mode != Write {
			kind := term.Int
			if a.Elem.Float() {
				kind = term.Float
			}
			return i, len(a.Shape), kind, true
		}
	}
	return 0, 0, 0, false
}

func (b builder) Abbrev(name string) (int, int, term.Kind, bool) {
	for i, w := range b.d.Wheres {
		if w.Name == name {
			return i, len(w.Vars), w.Body.Kind, true
		}
	}
	return 0, 0, 0, false
}

// free returns an error if a name is defined already.
func (b builder) free(name string) error {
	_, _, symbol := b.Symbol(name)
	_, _, _, where := b.Abbrev(name)
	if _, arg := b.d.ArgNamed(name); arg || symbol || where {
		return fmt.Errorf("%q is defined twice", name)
	}
	return nil
}

func (b builder) define(name string, kind term.Kind) (int, error) {
	if err := b.free(name); err != nil {
		return 0, err
	}
	b.d.Symbols = append(b.d.Symbols, Symbol{name, kind})
	return len(b.d.Symbols) - 1, nil
}

// build reads the lines of one declaration. They are read in the order
// of what they need: constants and constant arguments define symbols, grids
// bind more, then @let, then shapes, then conditions and terms.
func (d *Decl) build(params []param, values map[string]string, block []line) error {
	d.Template = map[int]int64{}
	for i := range d.Group {
		d.Group[i].Bind = -1
	}
	b := builder{d}
	for _, p := range params {
		if !p.isNumber() {
			continue
		}
		i, err := b.define(p.name, term.Int)
		if err != nil {
			return d.errorf("%v", err)
		}
		d.Template[i], _ = number(values[p.name])
	}
	type step struct {
		keys []string
		do   func(text string) error
	}
	steps := []step{
		{[]string{"constant"}, b.constant},
		{[]string{"arg"}, b.arg},
		{[]string{"groups", "threads", "group"}, nil},
		{[]string{"let"}, b.let},
		{[]string{"arg"}, b.shape},
		{[]string{"groups", "threads", "group"}, nil},
		{[]string{"require"}, b.require},
		{[]string{"inplace"}, b.inplace},
		{[]string{"nondeterministic"}, func(string) error { d.Nondeterministic = true; return nil }},
		{[]string{"effects"}, func(source string) error { d.EffectsOnly, d.Source = true, source; return nil }},
		{[]string{"mlx"}, func(like string) error { d.MLX, d.MLXLike = true, like; return nil }},
		{[]string{"where"}, b.where},
		{[]string{"term"}, b.term},
	}
	var known []string
	for _, s := range steps {
		known = append(known, s.keys...)
	}
	for _, l := range block {
		if !slices.Contains(known, l.key) {
			return l.of(d, fmt.Errorf("there is no @%s line (docs/kernels.md lists those that there are)", l.key))
		}
	}
	for _, k := range []string{"groups", "threads", "group"} {
		if n := slices.IndexFunc(block, func(l line) bool { return l.key == k }); n >= 0 {
			if m := slices.IndexFunc(block[n+1:], func(l line) bool { return l.key == k }); m >= 0 {
				return block[n+1+m].of(d, fmt.Errorf("a second @%s", k))
			}
		}
	}
	for n, s := range steps {
		for _, l := range block {
			if !slices.Contains(s.keys, l.key) {
				continue
			}
			var err error
			switch {
			case s.do != nil:
				err = s.do(l.text)
			case n == 2:
				err = b.gridBinds(l.key, l.text)
			default:
				err = b.gridChecks(l.key, l.text)
			}
			if err != nil {
				return l.of(d, fmt.Errorf("@%s: %w", l.key, err))
			}
		}
	}
	if !slices.ContainsFunc(block, func(l line) bool { return l.key == "group" }) {
		return d.errorf("has no @group line: say how many threads a threadgroup has, or @group _, _, _ if any number will do")
	}
	return d.whole()
}

// of says where in the declaration of d an error is.
func (l line) of(d *Decl, err error) error {
	return fmt.Errorf("%s:%d: kernel %s: %w", l.file, l.no, d.Name, err)
}

// whole checks what cannot be seen in any single line.
func (d *Decl) whole() error {
	if (d.Groups == nil) == (d.Threads == nil) {
		return d.errorf("has not exactly one of @groups and @threads: the grid in threadgroups, or in threads")
	}
	var unclassed *term.Expr
	class := func(e *term.Expr) {
		if e.Op == term.Sum && e.Class == "" {
			unclassed = e
		}
	}
	for _, w := range d.Wheres {
		w.Body.Walk(class)
	}
	if d.EffectsOnly && (len(d.Results) > 0 || len(d.Wheres) > 0) {
		return d.errorf("has terms, and @effects, which says that it has none")
	}
	results := map[int]bool{}
	for _, r := range d.Results {
		r.Body.Walk(class)
		if results[r.Arg] {
			return d.errorf("has two @term lines for %s", d.Args[r.Arg].Name)
		}
		results[r.Arg] = true
	}
	if unclassed != nil {
		return d.errorf("%s has no class: name the order in which the kernel adds, as in sum[%s](…) (docs/terms.md, \"Reductions\")", unclassed, d.Name)
	}
	for i, a := range d.Args {
		if (a.Whole || a.At != nil) && !d.EffectsOnly {
			return d.errorf("%s: only a declaration of effects (@effects) has arguments [_] or [… at …]", a.Name)
		}
		if a.Kind == ir.DeviceArg && !d.EffectsOnly && (a.Mode == Write || a.Mode == Update && !d.Nondeterministic) && !results[i] {
			return d.errorf("writes %s but has no @term for it: say what each element becomes", a.Name)
		}
		if i == 0 {
			continue
		}
		prev := d.Args[i-1]
		if tg := a.Kind == ir.ThreadgroupArg; tg == (prev.Kind == ir.ThreadgroupArg) && a.Slot <= prev.Slot || !tg && prev.Kind == ir.ThreadgroupArg {
			return d.errorf("argument %s stands behind %s: list buffers in the order of their slots, then threadgroup memory", a.Name, prev.Name)
		}
	}
	return nil
}

func (b builder) constant(text string) error {
	f := strings.Fields(text)
	if len(f) != 3 {
		return fmt.Errorf("want INDEX NAME TYPE, found %q", text)
	}
	i, err := strconv.ParseUint(f[0], 10, 16)
	if err != nil {
		return fmt.Errorf("%q is no index", f[0])
	}
	if !isName(f[1]) {
		return fmt.Errorf("%q is no name", f[1])
	}
	t, err := ir.ParseDType(f[2])
	if err != nil {
		return err
	}
	s, err := b.define(f[1], kindOf(t))
	if err != nil {
		return err
	}
	b.d.Constants = append(b.d.Constants, Constant{uint16(i), f[1], t, s})
	return nil
}

func kindOf(t ir.DType) term.Kind {
	if t.Float() {
		return term.Float
	}
	return term.Int
}

// split cuts an @arg line: [SLOT] NAME SPACE TYPE [as TYPE] [SHAPE] REST. The slot is -1 if none stands there.
func split(text string) (slot int, name, space, types, shape, rest string, err error) {
	given := text
	if slot, text, err = slotOf(text); err != nil {
		return 0, "", "", "", "", "", err
	}
	if i := strings.IndexByte(text, '['); i >= 0 {
		j := strings.LastIndexByte(text, ']')
		if j < i {
			return 0, "", "", "", "", "", fmt.Errorf("[ without ]")
		}
		text, shape, rest = text[:i], text[i+1:j], strings.TrimSpace(text[j+1:])
	}
	f := strings.Fields(text)
	if len(f) < 3 {
		return 0, "", "", "", "", "", fmt.Errorf("want SLOT NAME SPACE TYPE, found %q", given)
	}
	if !isName(f[0]) {
		return 0, "", "", "", "", "", fmt.Errorf("%q is no name", f[0])
	}
	if shape == "" && f[len(f)-1] == "unused" {
		rest, f = "unused", f[:len(f)-1]
	}
	return slot, f[0], f[1], strings.Join(f[2:], " "), shape, rest, nil
}

func (b builder) arg(text string) error {
	slot, name, space, types, shape, rest, err := split(text)
	if err != nil {
		return err
	}
	if err := b.free(name); err != nil {
		return err
	}
	kind, ok := ir.ParseArgKind(space)
	if !ok {
		return fmt.Errorf("%q is no address space", space)
	}
	if slot < 0 {
		if slot = b.nextSlot(kind); slot > math.MaxUint8 {
			return fmt.Errorf("%d is no slot", slot)
		}
	}
	a := Arg{Slot: uint8(slot), Name: name, Kind: kind}
	outer, inner, as := strings.Cut(types, " as ")
	if a.Type, err = ir.ParseDType(outer); err != nil {
		return err
	}
	a.Elem = a.Type
	if as {
		if a.Elem, err = ir.ParseDType(inner); err != nil {
			return err
		}
	}
	switch kind {
	case ir.ConstantArg:
		if rest != "" && rest != "unused" {
			return fmt.Errorf("unexpected %q after a constant argument", rest)
		}
		a.Count = 1
		if shape != "" {
			n, err := strconv.ParseInt(shape, 10, 32)
			if err != nil || n < 1 {
				return fmt.Errorf("a constant array has a fixed length, not %q", shape)
			}
			a.Count = int32(n)
		}
		if rest == "unused" {
			break
		}
		if a.Elem != a.Type || a.Type.Size() == 0 {
			return fmt.Errorf("a constant argument has a type of whole bytes")
		}
		a.Mode = Read
		for i := int32(0); i < a.Count; i++ {
			n := name
			if shape != "" {
				n = fmt.Sprintf("%s[%d]", name, i)
			}
			s, err := b.define(n, kindOf(a.Type))
			if err != nil {
				return err
			}
			if i == 0 {
				a.Symbol = s
			}
		}
	case ir.ThreadgroupArg:
		if rest != "" || shape == "" {
			return fmt.Errorf("threadgroup memory has a shape and no access")
		}
		a.Mode = Update
	default:
		i := slices.Index(modes[:], rest)
		if i < 0 {
			return fmt.Errorf("%q is no access (read, write, update, atomic, unused)", rest)
		}
		a.Mode = Mode(i)
		if (a.Mode == Unused) != (shape == "") {
			return fmt.Errorf("%s has no shape, or is unused and has one", name)
		}
	}
	b.d.Args = append(b.d.Args, a)
	return nil
}

// nextSlot is the slot behind that of the last argument of a kind: threadgroup memory has its own slots.
func (b builder) nextSlot(kind ir.ArgKind) int {
	for _, a := range slices.Backward(b.d.Args) {
		if (a.Kind == ir.ThreadgroupArg) == (kind == ir.ThreadgroupArg) {
			return int(a.Slot) + 1
		}
	}
	return 0
}

func (b builder) shape(text string) error {
	_, name, _, _, shape, _, err := split(text)
	if err != nil {
		return err
	}
	a, _ := b.d.ArgNamed(name)
	if a.Kind == ir.ConstantArg || shape == "" {
		return nil
	}
	if strings.TrimSpace(shape) == "_" {
		if a.Whole = true; a.Mode == Write {
			return fmt.Errorf("%s: all of a view is certainly written only if it has a shape: say which, or update", name)
		}
		return nil
	}
	if before, at, ok := cutAt(shape); ok {
		shape = before
		e, err := b.exprs(at)
		if err != nil {
			return err
		}
		if len(e) != 1 || a.Kind != ir.DeviceArg {
			return fmt.Errorf("%s: one place stands behind at, of a device argument", name)
		}
		a.At = e[0]
	}
	dims, strides, strided := strings.Cut(shape, ":")
	if a.Shape, err = b.exprs(dims); err != nil {
		return err
	}
	if strided {
		if a.Strides, err = b.exprs(strides); err != nil {
			return err
		}
		if len(a.Strides) != len(a.Shape) {
			return fmt.Errorf("%d dimensions but %d strides", len(a.Shape), len(a.Strides))
		}
	}
	if a.Elem.Size() == 0 && a.At != nil {
		return fmt.Errorf("packed elements begin where their view begins")
	}
	if a.Elem != a.Type && a.Elem.Bits() > 8 {
		return fmt.Errorf("only codes of up to 8 bits stand behind \"as\"")
	}
	return nil
}

// cutAt cuts SHAPE at PLACE.
func cutAt(shape string) (before, at string, ok bool) {
	if i := strings.LastIndex(shape, " at "); i >= 0 {
		return shape[:i], strings.TrimSpace(shape[i+4:]), true
	}
	return shape, "", false
}

// libraryOf reads a @library line: KIND "PATH" sha256 DIGEST.
func libraryOf(text string) (*ir.Library, error) {
	kind, rest, _ := strings.Cut(text, " ")
	l := &ir.Library{}
	switch kind {
	case ir.Metallib.String():
		l.Kind = ir.Metallib
	case ir.SourceFile.String():
		l.Kind = ir.SourceFile
	default:
		return nil, fmt.Errorf("want metallib or source, then \"PATH\" sha256 DIGEST, found %q", text)
	}
	quoted, err := strconv.QuotedPrefix(strings.TrimSpace(rest))
	if err != nil {
		return nil, fmt.Errorf("%q has no path in quotes", text)
	}
	l.Path, _ = strconv.Unquote(quoted)
	f := strings.Fields(strings.TrimSpace(rest)[len(quoted):])
	if len(f) != 2 || f[0] != "sha256" || len(f[1]) != 2*len(l.Digest) {
		return nil, fmt.Errorf("want sha256 and %d hexadecimal digits behind the path, found %q", 2*len(l.Digest), strings.Join(f, " "))
	}
	if _, err := hex.Decode(l.Digest[:], []byte(f[1])); err != nil {
		return nil, err
	}
	if l.Path == "" || l.Digest == (ir.Digest{}) {
		return nil, fmt.Errorf("the path is empty, or the digest is all zeros: declarations are of one file")
	}
	return l, nil
}

// exprs reads a list of integer expressions, cut at top-level commas.
func (b builder) exprs(text string) ([]*term.Expr, error) {
	var out []*term.Expr
	for _, s := range commas(text) {
		e, err := term.Parse(s, b)
		if err != nil {
			return nil, err
		}
		if e.Kind != term.Int {
			return nil, fmt.Errorf("%q is a %s, not an integer", s, e.Kind)
		}
		out = append(out, e)
	}
	return out, nil
}

func commas(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}

// gridBinds defines the names that a grid line binds: plain names that nothing
// defined before it.
func (b builder) gridBinds(key, text string) error {
	parts := commas(text)
	if len(parts) != 3 {
		return fmt.Errorf("has %d dimensions, not 3", len(parts))
	}
	g := &Grid{}
	for i, s := range parts {
		g[i].Bind = -1
		if s == "_" || !isName(s) {
			continue
		}
		if _, _, ok := b.Symbol(s); ok {
			continue
		}
		n, err := b.define(s, term.Int)
		if err != nil {
			return err
		}
		g[i].Bind = n
	}
	switch key {
	case "groups":
		b.d.Groups = g
	case "threads":
		b.d.Threads = g
	default:
		b.d.Group = *g
	}
	return nil
}

func isName(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func (b builder) gridChecks(key, text string) error {
	g := &b.d.Group
	switch key {
	case "groups":
		g = b.d.Groups
	case "threads":
		g = b.d.Threads
	}
	for i, s := range commas(text) {
		if s == "_" || g[i].Bind >= 0 {
			continue
		}
		e, err := term.Parse(s, b)
		if err != nil {
			return err
		}
		if e.Kind != term.Int {
			return fmt.Errorf("%q is a %s, not an integer", s, e.Kind)
		}
		g[i].Check = e
	}
	return nil
}

func (b builder) let(text string) error {
	n, value, ok := strings.Cut(text, "=")
	n = strings.TrimSpace(n)
	if !ok || !isName(n) {
		return fmt.Errorf("want NAME = EXPRESSION, found %q", text)
	}
	e, err := term.Parse(value, b)
	if err != nil {
		return err
	}
	if e.Kind != term.Int {
		return fmt.Errorf("%s is a %s, not an integer", n, e.Kind)
	}
	s, err := b.define(n, term.Int)
	if err != nil {
		return err
	}
	b.d.Lets = append(b.d.Lets, Let{s, e})
	return nil
}

func (b builder) require(text string) error {
	e, err := term.Parse(text, b)
	if err != nil {
		return err
	}
	if e.Kind != term.Bool {
		return fmt.Errorf("%q is a number, not a condition", text)
	}
	b.d.Requires = append(b.d.Requires, e)
	return nil
}

func (b builder) inplace(text string) error {
	f := strings.Fields(text)
	if len(f) != 2 {
		return fmt.Errorf("want OUT IN, found %q", text)
	}
	pair := [2]int{-1, -1}
	for i, a := range b.d.Args {
		if a.Name == f[0] && (a.Mode == Write || a.Mode == Update) && a.Kind == ir.DeviceArg {
			pair[0] = i
		}
		if a.Name == f[1] && a.Mode == Read && a.Kind == ir.DeviceArg {
			pair[1] = i
		}
	}
	if pair[0] < 0 || pair[1] < 0 {
		return fmt.Errorf("%q is not a written and a read argument", text)
	}
	b.d.Inplace = append(b.d.Inplace, pair)
	return nil
}

// indexed cuts NAME[i, j] = BODY.
func (b builder) indexed(text string) (n string, vars []string, body string, err error) {
	left, body, ok := strings.Cut(text, "=")
	n, list, ok2 := strings.Cut(strings.TrimSpace(left), "[")
	list, ok3 := strings.CutSuffix(strings.TrimSpace(list), "]")
	n = strings.TrimSpace(n)
	if !ok || !ok2 || !ok3 || !isName(n) {
		return "", nil, "", fmt.Errorf("want NAME[i, j] = TERM, found %q", text)
	}
	for _, v := range strings.Split(list, ",") {
		v = strings.TrimSpace(v)
		if !isName(v) || slices.Contains(vars, v) {
			return "", nil, "", fmt.Errorf("%q is no index of its own", v)
		}
		if _, _, ok := b.Symbol(v); ok {
			return "", nil, "", fmt.Errorf("index %q hides a constant of this name", v)
		}
		vars = append(vars, v)
	}
	return n, vars, body, nil
}

func (b builder) where(text string) error {
	n, vars, body, err := b.indexed(text)
	if err != nil {
		return err
	}
	if err := b.free(n); err != nil {
		return err
	}
	if len(vars) > term.MaxParams {
		return fmt.Errorf("%s has %d indices, at most %d are possible", n, len(vars), term.MaxParams)
	}
	e, err := term.Parse(body, b, vars...)
	if err != nil {
		return err
	}
	b.d.Wheres = append(b.d.Wheres, Where{n, vars, e})
	return nil
}

func (b builder) term(text string) error {
	n, vars, body, err := b.indexed(text)
	if err != nil {
		return err
	}
	for i, a := range b.d.Args {
		if a.Name != n || a.Kind != ir.DeviceArg || a.Mode < Write {
			continue
		}
		if len(vars) != len(a.Shape) {
			return fmt.Errorf("%s has %d dimensions, not %d", n, len(a.Shape), len(vars))
		}
		e, err := term.Parse(body, b, vars...)
		if err != nil {
			return err
		}
		if err := b.store(a, e); err != nil {
			return err
		}
		b.d.Results = append(b.d.Results, Result{i, vars, e})
		return nil
	}
	return fmt.Errorf("%q is no written argument", n)
}

// store checks that the value has an explicit rounding to the element's type,
// or is a plain load of it.
func (b builder) store(a Arg, e *term.Expr) error {
	switch {
	case e.Op == term.Round && e.Type == a.Elem, e.Op == term.ToInt && e.Type == a.Elem:
		return nil
	case e.Op == term.Load && b.d.Args[e.Index].Elem == a.Elem:
		return nil
	}
	of := "round(" + a.Elem.String() + ", …)"
	if !a.Elem.Float() {
		of = a.Elem.String() + "(…)"
	}
	return fmt.Errorf("what is stored to %s needs %s around it, unless it is a load of an element of the same type", a.Name, of)
}
