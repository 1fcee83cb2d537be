package mlxt

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

func (p *parser) command(at token) {
	id := p.id()
	switch {
	case p.tok.kind == tokKernel:
		p.node(at, p.dispatch(id))
	case p.accept("copy"):
		c := &ir.Copy{ID: id, Src: p.view()}
		p.expect("->")
		c.Dst = p.view()
		c.Label, c.From = p.transferClauses(id)
		p.node(at, c)
	case p.accept("fill"):
		f := &ir.Fill{ID: id, Dst: p.view()}
		f.Value = byte(p.uint("a byte", math.MaxUint8))
		f.Label, f.From = p.transferClauses(id)
		p.node(at, f)
	case p.accept("carry"):
		c := &ir.Carry{ID: id, Src: p.view()}
		p.expect("->")
		c.Dst = p.view()
		c.Label, c.From = p.transferClauses(id)
		p.node(at, c)
	case p.accept("join"):
		var seen clauses
		for p.clause(&seen, "after") {
			p.after(id)
		}
		p.node(at, &ir.Join{ID: id})
	default:
		p.want("a kernel (@name), 'copy', 'fill', 'carry' or 'join'", p.similarWord([]string{"copy", "fill", "carry", "join"}))
	}
}

func (p *parser) id() ir.ID {
	if p.tok.kind != tokID {
		p.want("the id of a command like #0", "")
		return 0
	}
	t := p.next()
	v, err := parseUint(string(t.text[1:]))
	if err != nil || v > math.MaxUint32 {
		p.fail(t, fmt.Sprintf("id %s is more than %d", t.describe(), uint32(math.MaxUint32)), "")
	}
	return ir.ID(v)
}

// transferClauses parses the clauses of copy, fill or carry id, in any order.
func (p *parser) transferClauses(id ir.ID) (label string, from []ir.ID) {
	var seen clauses
	for p.err == nil {
		switch {
		case p.clause(&seen, "label"):
			label = p.string("a label in quotes")
		case p.clause(&seen, "from"):
			from = p.from()
		case p.clause(&seen, "after"):
			p.after(id)
		default:
			return label, from
		}
	}
	return label, from
}

var dispatchClauses = []string{"threadgroup", "grid", "op", "label", "from", "after", "effects"}

// clauses is the set of the clauses that a command has had so far: a bit for each of
// dispatchClauses.
type clauses uint8

func (c clauses) has(word string) bool { return c>>slices.Index(dispatchClauses, word)&1 != 0 }

// clause parses the word that begins a clause, if it comes next. A second clause of one word is an
// error.
func (p *parser) clause(seen *clauses, word string) bool {
	if !p.tok.is(word) {
		return false
	}
	t := p.next()
	if seen.has(word) {
		p.fail(t, "command has two '"+word+"' clauses", "")
	}
	*seen |= 1 << slices.Index(dispatchClauses, word)
	return true
}

func (p *parser) from() []ir.ID {
	p.ids = p.ids[:0]
	for {
		p.ids = append(p.ids, p.id())
		if !p.accept(",") {
			return slices.Clone(p.ids)
		}
	}
}

// after parses the list of an 'after' clause: the edges into a command.
func (p *parser) after(to ir.ID) {
	first := len(p.g.Edges)
	for more := true; more; more = p.accept(",") {
		at := p.tok
		previous := p.accept("previous")
		from := p.id()
		if p.err == nil && p.g.Ordering != ir.ByEdges {
			p.fail(at, "an edge in a graph that is not ordered by edges", "say so behind the graph's name: graph "+ir.QuoteName(p.g.Name)+" edges {")
		}
		p.g.Edges = append(p.g.Edges, ir.Edge{From: from, To: to, Previous: previous})
	}
	ir.SortWaits(p.g.Edges[first:])
}

func (p *parser) commit() *ir.Commit {
	c := &ir.Commit{}
	if p.tok.kind == tokIdent && !slices.Contains(statements, string(p.tok.text)) {
		c.Order, _ = ir.ParseCommitOrder(p.word("an order (none, fence, event), a label, a command, a declaration or '}'", "none", "fence", "event"))
	}
	if p.tok.kind == tokString {
		c.Label = p.text(p.next())
	}
	return c
}

func (p *parser) dispatch(id ir.ID) *ir.Dispatch {
	at := p.tok
	d := &ir.Dispatch{ID: id}
	kernel, ok := lookup(p, tokKernel, "kernel", "@", p.kernels)
	if !ok {
		return d
	}
	d.Kernel = kernel
	k := &p.g.Kernels[kernel]
	d.Bindings = p.arguments(d, k)
	var seen clauses
	for p.err == nil {
		switch {
		case p.clause(&seen, "threadgroup"):
			d.ThreadgroupMemory = p.threadgroupMemory(k)
		case p.clause(&seen, "grid"):
			p.grid(d)
		case p.clause(&seen, "op"):
			d.Op = p.name("the kind of operation")
		case p.clause(&seen, "label"):
			d.Label = p.string("a label in quotes")
		case p.clause(&seen, "from"):
			d.From = p.from()
		case p.clause(&seen, "after"):
			p.after(id)
		case p.clause(&seen, "effects"):
			d.Effects = p.effects()
		default:
			if !seen.has("grid") {
				if p.tok.kind == tokIdent && !slices.Contains(statements, string(p.tok.text)) {
					p.want("a clause of the dispatch: "+strings.Join(dispatchClauses, ", "), p.similarWord(dispatchClauses))
				}
				p.fail(at, "dispatch has no grid", "add: grid threads [x, y, z] of [x, y, z]")
			} else if p.tok.kind == tokIdent && !slices.Contains(statements, string(p.tok.text)) {
				p.want("a clause of the dispatch ("+strings.Join(dispatchClauses, ", ")+"), a command, a declaration or '}'",
					p.similarWord(slices.Concat(dispatchClauses, statements)))
			}
			return d
		}
	}
	return d
}

func (p *parser) grid(d *ir.Dispatch) {
	if p.word("the unit of the grid: threadgroups or threads", "threadgroups", "threads") == "threads" {
		d.GridKind = ir.Threads
	}
	p.expect("[")
	for i := range d.Grid {
		if i > 0 {
			p.expect(",")
		}
		d.Grid[i] = p.extent()
	}
	p.expect("]")
	p.expect("of")
	p.expect("[")
	for i := range d.Threadgroup {
		if i > 0 {
			p.expect(",")
		}
		d.Threadgroup[i] = uint32(p.uint("a number of threads", math.MaxUint32))
	}
	p.expect("]")
	if p.accept("at") {
		v := p.view()
		d.Indirect = cmp.Or(d.Indirect, &ir.Indirect{})
		d.Indirect.Grid = &v
	}
}

func (p *parser) threadgroupMemory(k *ir.Kernel) []ir.ThreadgroupMemory {
	var out []ir.ThreadgroupMemory
	for more := p.open("(", ")"); more; more = p.more(")") {
		if len(out) == maxArgs {
			p.fail(p.tok, fmt.Sprintf("dispatch has more than %d threadgroup arguments", maxArgs), "")
		}
		var m ir.ThreadgroupMemory
		if p.tok.kind == tokNumber {
			m.Slot = uint8(p.uint("a slot", math.MaxUint8))
		} else {
			t := p.tok
			name := p.name("the name or slot of a threadgroup argument")
			a, ok := k.ArgNamed(name)
			if !ok || a.Kind != ir.ThreadgroupArg {
				p.unknownArg(t, k, "threadgroup argument", func(a ir.Arg) bool { return a.Kind == ir.ThreadgroupArg })
			}
			m.Slot = a.Slot
		}
		p.expect("=")
		m.Bytes = uint32(p.uint("a size in bytes", math.MaxUint32))
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b ir.ThreadgroupMemory) int { return int(a.Slot) - int(b.Slot) })
	return out
}

// unknownArg reports a name that no argument has for which which returns true.
func (p *parser) unknownArg(t token, k *ir.Kernel, what string, which func(ir.Arg) bool) {
	var names, quoted []string
	for _, a := range k.Args {
		if which(a) {
			names = append(names, a.Name)
			quoted = append(quoted, ir.QuoteName(a.Name))
		}
	}
	hint := fmt.Sprintf("kernel @%s has none", ir.QuoteName(k.Name))
	if len(names) > 0 {
		hint = fmt.Sprintf("kernel @%s has %s", ir.QuoteName(k.Name), strings.Join(quoted, ", "))
	}
	p.unknown(t, what, "", slices.Values(names), hint)
}

// arguments parses (name = value, …) in any order.
func (p *parser) arguments(d *ir.Dispatch, k *ir.Kernel) []ir.Binding {
	p.bindings = p.bindings[:0]
	var bound [math.MaxUint8 + 1]bool
	for more := p.open("(", ")"); more; more = p.more(")") {
		t := p.tok
		a, ok := p.argRef(k)
		switch {
		case p.err != nil:
		case !ok:
			p.unknownArg(t, k, "argument", func(a ir.Arg) bool { return a.Kind != ir.ThreadgroupArg })
		case a.Kind == ir.ThreadgroupArg:
			p.fail(t, fmt.Sprintf("argument %s is threadgroup memory", t.describe()), "size it after the arguments: threadgroup("+ir.QuoteName(a.Name)+" = BYTES)")
		case bound[a.Slot]:
			p.fail(t, fmt.Sprintf("argument %s is bound twice", t.describe()), "")
		}
		bound[a.Slot] = true
		p.expect("=")
		b := p.binding(a)
		p.bindings = append(p.bindings, b)
		if b.Kind == ir.BindView && p.accept("at") {
			d.Indirect = cmp.Or(d.Indirect, &ir.Indirect{})
			d.Indirect.Offsets = append(d.Indirect.Offsets, ir.OffsetAt{Slot: a.Slot, At: p.view()})
		}
	}
	if len(p.bindings) == 0 {
		return nil
	}
	if x := d.Indirect; x != nil {
		slices.SortStableFunc(x.Offsets, func(a, b ir.OffsetAt) int { return int(a.Slot) - int(b.Slot) })
	}
	slices.SortStableFunc(p.bindings, func(a, b ir.Binding) int { return int(a.Slot) - int(b.Slot) })
	return slices.Clone(p.bindings)
}

// argRef parses the name of an argument.
func (p *parser) argRef(k *ir.Kernel) (ir.Arg, bool) {
	if p.tok.kind == tokIdent {
		for i := range k.Args {
			if k.Args[i].Name == string(p.tok.text) {
				p.advance()
				return k.Args[i], true
			}
		}
	}
	return k.ArgNamed(p.name("the name of an argument"))
}

func (p *parser) binding(a ir.Arg) ir.Binding {
	switch {
	case p.tok.kind == tokMemory:
		return ir.BufferArg(a.Slot, p.view())
	case p.tok.is("hex"):
		p.advance()
		return ir.BytesArg(a.Slot, p.hexBytes())
	case p.tok.is("expr"):
		p.advance()
		return ir.ScalarArg(a.Slot, a.Type, p.affine())
	case p.atExpression():
		return ir.ScalarArg(a.Slot, a.Type, p.affine())
	}
	at := p.tok
	size := int(a.Type.Size())
	if size == 0 && (at.kind == tokNumber || at.is("-") || at.is("[")) {
		p.fail(at, fmt.Sprintf("argument %s is %s, which has no single values", ir.QuoteName(a.Name), a.Type), `write the bytes: hex"…"`)
	}
	p.bytes = p.bytes[:0]
	if !p.tok.is("[") {
		p.bytes = appendLittleEndian(p.bytes, p.value(a.Type), size)
	} else {
		for more := p.open("[", "]"); more; more = p.more("]") {
			p.bytes = appendLittleEndian(p.bytes, p.value(a.Type), size)
		}
	}
	return ir.BytesArg(a.Slot, slices.Clone(p.bytes))
}

func appendLittleEndian(b []byte, v uint64, size int) []byte {
	for range size {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

func (p *parser) hexBytes() []byte {
	if p.tok.kind != tokString {
		p.want(`bytes like hex"00ff"`, "")
		return nil
	}
	t := p.next()
	text := t.text[1 : len(t.text)-1]
	data := make([]byte, len(text)/2)
	if _, err := hex.Decode(data, text); err != nil {
		p.fail(t, fmt.Sprintf("found %s, want pairs of hexadecimal digits", t.describe()), "")
	}
	return data
}

// atExpression reports whether an expression with params comes next, and not a number. An
// expression may begin with a number.
func (p *parser) atExpression() bool {
	if k := p.tok.kind; k != tokNumber && k != tokPunct {
		return k == tokParam // in these common cases no lexer is copied
	}
	t, ahead := p.tok, p.lex
	if t.is("-") {
		ahead.next(&t)
	}
	if t.kind == tokNumber {
		ahead.next(&t)
		return t.is("*") || t.is("+") || t.is("-")
	}
	return t.kind == tokParam
}

// value parses one value of type d and returns its bits.
func (p *parser) value(d ir.DType) uint64 {
	at := p.tok
	negative := p.accept("-")
	switch {
	case p.tok.kind == tokNumber || d == ir.Bool && (p.tok.is("true") || p.tok.is("false")) || d.Float() && p.tok.is("inf"):
		t := p.next()
		v, err := parseValue(d, negative, string(t.text))
		if err != nil {
			t.text = p.lex.src[at.offset : t.offset+len(t.text)] // with the sign
			p.fail(at, fmt.Sprintf("%s %v", t.describe(), err), "")
		}
		return v
	case p.tok.kind == tokIdent && !negative:
		t := p.tok
		if _, err := ir.ParseDType(string(t.text)); err != nil {
			break
		}
		if !t.is(d.String()) {
			p.fail(t, fmt.Sprintf("found bits of type %s, want type %s", t.text, d), "")
			return 0
		}
		p.advance()
		p.expect(":")
		return p.uint(fmt.Sprintf("%d bits", d.Bits()), math.MaxUint64>>(64-d.Bits()))
	}
	p.want(fmt.Sprintf("a value of type %s", d), "")
	return 0
}

func (p *parser) effects() *ir.Effects {
	e := &ir.Effects{Complete: p.word("'complete' or 'partial'", "complete", "partial") == "complete"}
	if p.accept("reads") {
		p.reads = p.reads[:0]
		for more := p.err == nil; more; more = p.accept(",") {
			p.reads = append(p.reads, p.region())
		}
		e.Reads = slices.Clone(p.reads)
	}
	if p.accept("writes") {
		p.writes = p.writes[:0]
		for more := p.err == nil; more; more = p.accept(",") {
			var w ir.Write
			if w.Must = p.accept("must"); !w.Must {
				p.accept("may")
			}
			w.Atomic = p.accept("atomic")
			w.Region = p.region()
			p.writes = append(p.writes, w)
		}
		e.Writes = slices.Clone(p.writes)
	}
	return e
}
