package mlxt

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Parse reads the text of a module. file is its name in error messages and in [ir.Source]. Lines
// and columns there begin at 1, and columns count bytes. The error is an [*ir.Error] if src is not
// the text of a module, and an [ir.Errors] if [ir.Module.Check] refuses the module.
//
// Time and memory are linear in len(src), whatever src holds. Once ctx is done, Parse returns the
// cause of that as an error.
func Parse(ctx context.Context, file string, src []byte) (m *ir.Module, err error) {
	defer interrupt.Catch(&err)
	p := &parser{ctx: ctx, file: file, lex: lexer{src: src, line: 1}, m: &ir.Module{}}
	p.advance()
	p.module()
	if p.err != nil {
		return nil, p.err
	}
	if err := p.m.CheckContext(ctx); err != nil {
		p.locate(err)
		return nil, err
	}
	return p.m, nil
}

// parser reads the source by recursive descent, but without recursion: only groups nest, and for
// those it keeps a list.
//
// After the first error, tok stays the end of the file, so that every loop ends.
type parser struct {
	ctx   context.Context
	polls interrupt.Every
	file  string
	lex   lexer
	tok   token // the next token, which was not consumed yet
	err   *ir.Error
	m     *ir.Module

	// where things are declared, by [ir.Error.At], for defects that Check reports without a place
	places []declaredAt

	g        *ir.Graph
	params   map[string]ir.ParamID
	memories map[string]ir.MemID
	kernels  map[string]ir.KernelID
	groups   []token // groups that are open

	// scratch memory, reused from command to command
	terms    []ir.Term
	bindings []ir.Binding
	reads    []ir.Region
	writes   []ir.Write
	ids      []ir.ID
	dims     []ir.Dim
	bytes    []byte
}

// declaredAt says where something is declared whose place [ir.Source] does not keep.
type declaredAt struct {
	graph string
	what  string // "", or the rest of At after "graph NAME: "
	pos   ir.Pos
}

func (t token) pos() ir.Pos {
	return ir.Pos{Line: int(t.line), Col: int(t.col), Offset: int64(t.offset)}
}

// locate adds to defects where the faulty thing is declared, if [ir.Source] does not keep that.
func (p *parser) locate(err error) {
	var all ir.Errors
	if !errors.As(err, &all) {
		return
	}
	at := map[string]ir.Pos{}
	for _, pl := range p.places {
		key := pl.what
		if pl.graph != "" {
			key = strings.TrimSuffix("graph "+pl.graph+": "+pl.what, ": ")
		}
		at[key] = pl.pos
	}
	for _, e := range all {
		if e.Pos.Line == 0 {
			e.Pos = at[e.At]
		}
		e.File = p.file
	}
}

func (p *parser) place(what string, t token) {
	graph := ""
	if p.g != nil {
		graph = ir.QuoteName(p.g.Name)
	}
	p.places = append(p.places, declaredAt{graph, what, t.pos()})
}

// Errors and tokens.

func (p *parser) fail(at token, what, hint string) {
	if p.err == nil {
		p.err = &ir.Error{File: p.file, Pos: at.pos(), What: what, Hint: hint}
		p.tok = token{}
	}
}

// want reports that the next token is not what it must be.
func (p *parser) want(what, hint string) {
	p.fail(p.tok, fmt.Sprintf("found %s, want %s", p.tok.describe(), what), hint)
}

// next consumes the next token and returns it.
func (p *parser) next() token {
	t := p.tok
	p.advance()
	return t
}

// advance consumes the next token.
func (p *parser) advance() {
	if p.err != nil {
		return
	}
	p.polls.Poll(p.ctx, 256)
	p.lex.next(&p.tok)
	if p.tok.kind == tokBad {
		p.fail(p.tok, "found "+p.tok.describe(), p.lex.problem)
	}
}

// accept consumes the next token if it is s, and reports whether it did.
func (p *parser) accept(s string) bool {
	if !p.tok.is(s) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.want("'"+s+"'", "")
	}
}

// word consumes the next token, which must be one of the words.
func (p *parser) word(what string, words ...string) string {
	if p.tok.kind == tokIdent {
		if i := slices.Index(words, string(p.tok.text)); i >= 0 {
			p.advance()
			return words[i]
		}
	}
	p.want(what, p.similarWord(words))
	return ""
}

func (p *parser) similarWord(words []string) string {
	if p.tok.kind != tokIdent {
		return ""
	}
	return didYouMean("", nearest(string(p.tok.text), slices.Values(words)))
}

func didYouMean(sigil, name string) string {
	if name == "" {
		return ""
	}
	if sigil != "" {
		name = ir.QuoteName(name)
	}
	return "did you mean " + sigil + name + "?"
}

// text returns the text that a string, name or quoted name denotes.
func (p *parser) text(t token) string {
	s := t.text
	switch t.kind {
	case tokMemory, tokKernel, tokParam:
		s = s[1:]
	}
	if len(s) == 0 || s[0] != '"' {
		return string(s)
	}
	if !t.escaped {
		return string(s[1 : len(s)-1])
	}
	out, err := strconv.Unquote(string(s))
	if err != nil {
		p.fail(t, "found "+t.describe()+`, whose \ begins no escape sequence`, `they are Go's: \n, \", \\, \xff, \u00ff, …`)
	}
	return out
}

func (p *parser) string(what string) string {
	if p.tok.kind != tokString {
		p.want(what, "")
		return ""
	}
	return p.text(p.next())
}

// name parses a bare or quoted name.
func (p *parser) name(what string) string {
	if p.tok.kind != tokString && p.tok.kind != tokIdent {
		p.want(what, "")
		return ""
	}
	return p.text(p.next())
}

// uint parses an unsigned integer of at most most.
func (p *parser) uint(what string, most uint64) uint64 {
	if p.tok.kind != tokNumber {
		p.want(what, "")
		return 0
	}
	t := p.next()
	v, err := parseUint(string(t.text))
	if err != nil {
		p.fail(t, fmt.Sprintf("%s %v", t.describe(), err), "want "+what)
		return 0
	}
	if v > most {
		p.fail(t, fmt.Sprintf("%s is more than %d", t.describe(), most), "want "+what)
		return 0
	}
	return v
}

// int parses an integer that may have a minus sign.
func (p *parser) int(what string) int64 {
	at := p.tok
	negative := p.accept("-")
	v := p.uint(what, math.MaxUint64)
	return p.signed(at, negative, v)
}

func (p *parser) signed(at token, negative bool, v uint64) int64 {
	switch {
	case negative && v <= 1<<63:
		return -int64(v)
	case !negative && v < 1<<63:
		return int64(v)
	}
	p.fail(at, fmt.Sprintf("%d leaves 64 bits", v), "")
	return 0
}

// more parses what follows an element of a list that ends with close: a comma (then it returns
// true) or close.
func (p *parser) more(close string) bool {
	if p.accept(",") {
		return p.err == nil
	}
	if !p.accept(close) {
		p.want("',' or '"+close+"'", "")
	}
	return false
}

// open parses the bracket that opens a list, and reports whether the list has elements.
func (p *parser) open(bracket, close string) bool {
	p.expect(bracket)
	return p.err == nil && !p.accept(close)
}

// Module level.

func (p *parser) module() {
	if !p.accept("mlxt") {
		p.want("'mlxt 1', the first words of a text form", "")
	}
	at := p.tok
	if v := p.uint("the version of the text form", math.MaxUint64); v != Version && p.err == nil {
		p.fail(at, fmt.Sprintf("text form has version %d, this program reads version %d", v, Version), "record the graph again")
	}
	for p.err == nil && p.tok.kind != tokEOF {
		switch t := p.tok; p.word("'graph' or 'data'", "graph", "data") {
		case "graph":
			p.graph(t)
		case "data":
			name := p.name("the name of a data blob")
			p.g = nil
			p.place("data "+ir.QuoteName(name), t)
			p.expect("=")
			p.m.Data = append(p.m.Data, ir.Data{Name: name, Blob: p.blob()})
		}
	}
}

// attributes parses the words after the name of a graph.
func (p *parser) attributes() {
	const what = "'serial', 'edges', 'next host' or '{'"
	ordered := false
	for p.tok.kind == tokIdent && !p.g.NextHost {
		at := p.tok
		word := p.word(what, "serial", "edges", "next")
		switch {
		case word == "next":
			p.expect("host")
			p.g.NextHost = true
		case ordered:
			p.fail(at, fmt.Sprintf("found '%s' behind '%s'", word, p.g.Ordering), "a graph is ordered in one way")
		case word == "serial":
			p.g.Ordering = ir.Serial
		case word == "edges":
			p.g.Ordering = ir.ByEdges
		}
		ordered = true
	}
}

var statements = []string{"param", "require", "memory", "kernel", "barrier", "commit", "group", "end"}

func (p *parser) graph(at token) {
	p.g = &ir.Graph{Name: p.name("the graph's name"), Source: &ir.Source{File: p.file}}
	p.m.Graphs = append(p.m.Graphs, p.g)
	p.params, p.memories, p.kernels = map[string]ir.ParamID{}, map[string]ir.MemID{}, map[string]ir.KernelID{}
	p.groups = p.groups[:0]
	p.place("", at)
	p.attributes()
	p.expect("{")
	for p.err == nil && !p.tok.is("}") {
		t := p.tok
		if t.kind == tokID {
			p.command(t)
			continue
		}
		switch p.word("a declaration, a command (#0 …) or '}'", statements...) {
		case "param":
			p.param(t)
		case "require":
			p.require(t)
		case "memory":
			p.memory(t)
		case "kernel":
			p.kernel(t)
		case "barrier":
			p.node(t, &ir.Barrier{})
		case "commit":
			p.node(t, p.commit())
		case "group":
			p.groups = append(p.groups, t)
			p.node(t, &ir.GroupBegin{Label: p.string("the group's label in quotes")})
		case "end":
			if len(p.groups) == 0 {
				p.fail(t, "'end' closes a group that is not open", "a graph ends with '}'")
				return
			}
			p.groups = p.groups[:len(p.groups)-1]
			p.node(t, &ir.GroupEnd{})
		}
	}
	if n := len(p.groups); n > 0 && p.err == nil {
		t := p.groups[n-1]
		p.fail(p.tok, fmt.Sprintf("graph ends inside the group of line %d", t.line), "close it with 'end'")
	}
	p.expect("}")
	p.g = nil
}

func (p *parser) node(at token, n ir.Node) {
	p.g.Nodes = append(p.g.Nodes, n)
	p.g.Source.Nodes = append(p.g.Source.Nodes, at.pos())
}

// Declarations.

func (p *parser) param(at token) {
	name := p.declared(tokParam, "a param like $pos")
	x := ir.Param{Name: name}
	p.place("param $"+ir.QuoteName(name), at)
	if p.word("'u32' or 'f32'", "u32", "f32") == "f32" {
		x.Type = ir.F32
	} else {
		x.Type = ir.U32
	}
	p.expect("in")
	p.expect("[")
	x.Min = p.bound(x.Type)
	p.expect(",")
	x.Max = p.bound(x.Type)
	p.expect("]")
	if p.tok.is("+") || p.tok.is("-") {
		negative := p.tok.is("-")
		p.advance()
		p.expect("=")
		x.Advance = int64(p.uint("what is added from replay to replay", math.MaxUint32))
		if negative {
			x.Advance = -x.Advance
		}
	}
	p.params[name] = ir.ParamID(len(p.g.Params))
	p.g.Params = append(p.g.Params, x)
}

func (p *parser) bound(d ir.DType) float64 {
	bits := p.value(d)
	if d == ir.F32 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return float64(bits)
}

// declared parses the name, with its sigil, that a declaration declares.
func (p *parser) declared(kind tokenKind, what string) string {
	if p.tok.kind != kind {
		p.want(what, "")
		return ""
	}
	return p.text(p.next())
}

func (p *parser) require(at token) {
	p.place(fmt.Sprintf("constraint %d", len(p.g.Constraints)), at)
	c := ir.Constraint{LHS: p.affine()}
	p.expect("<=")
	c.Max = p.int("an integer")
	p.g.Constraints = append(p.g.Constraints, c)
}

func (p *parser) memory(at token) {
	m := ir.Memory{Name: p.declared(tokMemory, "a memory like %x"), Alias: ir.NoMem}
	const what = "a kind of memory (weight, input, output, state, scratch, argument) or 'alias'"
	kind := p.word(what, "weight", "input", "output", "state", "scratch", "argument", "alias")
	if kind == "alias" {
		m.Alias = p.memoryID()
		p.expect("+")
		m.AliasOff = p.size("the alias's offset in bytes")
		p.expect("size")
		m.Size = p.size("the alias's size in bytes")
		if p.err == nil {
			m.Kind, m.Storage = p.g.Memories[m.Alias].Kind, p.g.Memories[m.Alias].Storage
		}
	} else {
		m.Kind, _ = ir.ParseMemKind(kind)
		m.Size = p.size("the memory's size in bytes")
		if p.accept("private") {
			m.Storage = ir.Private
		} else {
			p.accept("shared")
		}
	}
	if p.accept("align") {
		m.Align = p.size("an alignment in bytes")
	}
	if p.tok.kind == tokIdent && !slices.Contains(statements, string(p.tok.text)) && !p.tok.is("every") {
		if !slices.Contains(dtypeNames, string(p.tok.text)) {
			p.want("an element type, '=', a command, a declaration or '}'", p.similarWord(slices.Concat([]string{"private", "shared", "align", "every"}, dtypeNames, statements)))
		}
		m.DType = p.dtype()
		m.Shape = p.shape()
	}
	m.Every = p.accept("every")
	if p.accept("=") {
		m.Init = p.contents()
	}
	p.memories[m.Name] = ir.MemID(len(p.g.Memories))
	p.g.Memories = append(p.g.Memories, m)
	p.g.Source.Memories = append(p.g.Source.Memories, at.pos())
}

func (p *parser) size(what string) int64 { return int64(p.uint(what, math.MaxInt64)) }

func (p *parser) dtype() ir.DType {
	if p.tok.kind == tokIdent {
		if d, err := ir.ParseDType(string(p.tok.text)); err == nil {
			p.advance()
			return d
		}
	}
	p.want("an element type (bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)", p.similarWord(dtypeNames))
	return ir.Invalid
}

var dtypeNames = func() (out []string) {
	for d := ir.Bool; d.Valid(); d++ {
		out = append(out, d.String())
	}
	return out
}()

// shape parses [a, b, …]. It returns nil if there is none.
func (p *parser) shape() []int64 {
	if !p.tok.is("[") {
		return nil
	}
	var out []int64
	for more := p.open("[", "]"); more; more = p.more("]") {
		out = append(out, p.size("a dimension"))
	}
	return out
}

func (p *parser) contents() ir.Init {
	switch t := p.tok; p.word("contents: blob, file, fill, random or values", "blob", "file", "fill", "random", "values") {
	case "blob":
		return ir.Init{Kind: ir.InitBlob, Blob: p.embedded()}
	case "file":
		return ir.Init{Kind: ir.InitBlob, Blob: p.external(t)}
	case "fill":
		return ir.FillU32(uint32(p.uint("a pattern of four bytes like 0x3f800000", math.MaxUint32)))
	case "random":
		p.expect("seed")
		return ir.Init{Kind: ir.InitRandom, Seed: p.uint("a seed", math.MaxUint64)}
	case "values":
		return ir.Init{Kind: ir.InitValues, Values: p.values()}
	}
	return ir.Init{}
}

// values parses (OFFSET: TYPE VALUE, …).
func (p *parser) values() []ir.Value {
	out := []ir.Value{}
	for more := p.open("(", ")"); more; more = p.more(")") {
		v := ir.Value{Off: p.size("an offset in bytes")}
		p.expect(":")
		if !p.tok.is("hex") {
			v.Type = p.dtype()
		}
		b := p.binding(ir.Arg{Name: "value", Type: v.Type})
		if p.err == nil && b.Kind == ir.BindView {
			p.want("a value", "")
		}
		v.Bytes, v.Expr = b.Bytes, b.Expr
		out = append(out, v)
	}
	return out
}

func (p *parser) blob() *ir.Blob {
	switch t := p.tok; p.word("contents: blob or file", "blob", "file") {
	case "blob":
		return p.embedded()
	case "file":
		return p.external(t)
	}
	return nil
}

func (p *parser) embedded() *ir.Blob {
	p.expect("base64")
	if p.tok.kind != tokString {
		p.want(`bytes like base64"…"`, "")
		return nil
	}
	t := p.next()
	text := t.text[1 : len(t.text)-1]
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(data, text)
	if err != nil {
		var bad base64.CorruptInputError
		errors.As(err, &bad)
		t.offset, t.col = t.offset+1+int(bad), t.col+1+int32(bad)
		p.fail(t, "base64 is broken here", "want the standard alphabet with padding")
		return nil
	}
	return ir.NewBlob(data[:n:n])
}

func (p *parser) external(at token) *ir.Blob {
	path := p.string("the file's path in quotes")
	switch why := ir.BadPath(path); {
	case p.err != nil:
	case path == "":
		p.fail(at, "file has no path", "")
	case why != "":
		p.fail(at, fmt.Sprintf("path of external file %q %s", path, why), "")
	}
	p.expect("offset")
	offset := p.size("an offset in bytes")
	p.expect("length")
	length := p.size("a length in bytes")
	return ir.ExternalBlob(path, offset, length, p.sha256())
}

func (p *parser) sha256() (d ir.Digest) {
	p.expect("sha256")
	const what = "64 hexadecimal digits"
	if p.tok.kind != tokNumber && p.tok.kind != tokIdent {
		p.want(what, "")
		return d
	}
	if n, err := hex.Decode(d[:], p.tok.text[:min(len(p.tok.text), 2*len(d))]); err != nil || n != len(d) || len(p.tok.text) != 2*len(d) {
		p.want(what, fmt.Sprintf("found %d characters", len(p.tok.text)))
		return d
	}
	p.advance()
	return d
}

// maxArgs is the max number of rows of a valid argument table: Metal's 31 buffers and 31
// threadgroup arguments.
const maxArgs = 62

func (p *parser) kernel(at token) {
	k := ir.Kernel{Name: p.declared(tokKernel, "a kernel like @gemv")}
	p.place("kernel @"+ir.QuoteName(k.Name), at)
	switch kind := p.word("a library: builtin, generated, source or metallib", "builtin", "generated", "source", "metallib"); kind {
	case "generated":
		k.Library.Kind = ir.Generated
	case "source", "metallib":
		k.Library.Kind = ir.SourceFile
		if kind == "metallib" {
			k.Library.Kind = ir.Metallib
		}
		k.Library.Path = p.string("the library's path in quotes")
		k.Library.Digest = p.sha256()
	}
	k.Function = p.string("the function's name in quotes")
	if p.accept("constants") {
		for more := p.open("(", ")"); more; more = p.more(")") {
			k.Constants = append(k.Constants, p.functionConstant())
		}
	}
	if p.accept("args") {
		for more := p.open("(", ")"); more; more = p.more(")") {
			if len(k.Args) == maxArgs {
				p.fail(p.tok, fmt.Sprintf("kernel has more than %d arguments", maxArgs), "")
			}
			k.Args = append(k.Args, p.arg())
		}
	}
	p.kernels[k.Name] = ir.KernelID(len(p.g.Kernels))
	p.g.Kernels = append(p.g.Kernels, k)
}

func (p *parser) functionConstant() ir.FunctionConstant {
	c := ir.FunctionConstant{Index: uint16(p.uint("the index of a function constant", math.MaxUint16))}
	if !p.tok.is(":") {
		c.Name = p.name("the constant's name or ':'")
	}
	p.expect(":")
	at := p.tok
	c.Type = p.dtype()
	if c.Type.Size() == 0 {
		p.fail(at, fmt.Sprintf("function constant %d is %s", c.Index, c.Type), "packed types have no single values")
	}
	c.Bits = p.value(c.Type)
	return c
}

func (p *parser) arg() ir.Arg {
	a := ir.Arg{Slot: uint8(p.uint("the slot of an argument", math.MaxUint8))}
	a.Name = p.name("the argument's name")
	p.expect(":")
	a.Kind, _ = ir.ParseArgKind(p.word("an address space: device, constant or threadgroup", "device", "constant", "threadgroup"))
	a.Type = p.dtype()
	a.Count = usualCount(a.Kind)
	if p.accept("[") {
		a.Count = 0
		if !p.tok.is("]") {
			a.Count = int32(p.uint("the number of elements", math.MaxInt32))
		}
		p.expect("]")
	}
	if a.Kind == ir.DeviceArg || p.tok.kind == tokIdent {
		a.Access, _ = ir.ParseArgAccess(p.word("an access: read, write or readwrite", "read", "write", "readwrite"))
	}
	return a
}

// References.

func (p *parser) memoryID() ir.MemID {
	id, _ := lookup(p, tokMemory, "memory", "%", p.memories)
	return id
}

// lookup parses a reference and finds what it names.
func lookup[T any](p *parser, kind tokenKind, what, sigil string, names map[string]T) (T, bool) {
	var id T
	if p.tok.kind != kind {
		p.want("a "+what+" like "+sigil+"name", "")
		return id, false
	}
	t := p.next()
	var ok bool
	if text := t.text[1:]; text[0] != '"' {
		id, ok = names[string(text)] // allocates nothing
	} else {
		id, ok = names[p.text(t)]
	}
	if !ok {
		p.unknown(t, what, sigil, keys(names), "declare it before its first use")
	}
	return id, ok
}

// keys returns the names in order, so that which of two equally near names is suggested does not
// depend on the order of a map.
func keys[T any](names map[string]T) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := make([]string, 0, len(names))
		for n := range names {
			all = append(all, n)
		}
		slices.Sort(all)
		for _, n := range all {
			if !yield(n) {
				return
			}
		}
	}
}

// unknown reports a name that is not declared. The hint is a similar name, or otherwise if there is
// none.
func (p *parser) unknown(t token, what, sigil string, names iter.Seq[string], otherwise string) {
	if p.err != nil {
		return
	}
	name := p.text(t)
	hint := didYouMean(sigil, nearest(name, names))
	if i := strings.IndexByte(name, '-'); hint == "" && i > 0 {
		for n := range names {
			if n == name[:i] {
				hint = "'-' may stand inside a name: put spaces around a minus"
			}
		}
	}
	if hint == "" {
		hint = otherwise
	}
	t.kind = tokIdent
	p.fail(t, fmt.Sprintf("unknown %s %s", what, t.describe()), hint)
}
