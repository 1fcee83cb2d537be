package mlxt

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Version is the version of the text form, the number in the first line of a text.
const Version = 1

// maxIndent is how many groups deep a line may be indented. It keeps the text in proportion to the
// graph, however deep its groups nest.
const maxIndent = 16

// flushAt is how many bytes the printer gathers before it writes them.
const flushAt = 64 << 10

// Options say how to write large contents. The zero value writes everything
// that the module holds.
type Options struct {
	// InlineLimit is the length in bytes up to which embedded contents are
	// written into the text; 0 means any length.
	InlineLimit int64
	// External says where contents longer than the limit can be found: in the file path (relative
	// to the text), from byte offset on. If External is nil or ok is false, the text holds the
	// contents after all.
	External func(*ir.Blob) (path string, offset int64, ok bool)
	// Rebase, if not nil, makes the path of an external blob relative to the directory of the text.
	Rebase func(path string) (string, error)
}

// Print writes m's canonical text. If [ir.Module.Check] refuses the module, Print writes nothing
// and returns the error.
func Print(w io.Writer, m *ir.Module) error { return Options{}.Print(w, m) }

// Format returns m's canonical text. If the module cannot be printed, it returns the reason as a
// comment of the text.
func Format(m *ir.Module) string {
	var b strings.Builder
	if err := Print(&b, m); err != nil {
		return "// " + strings.ReplaceAll(err.Error(), "\n", "\n// ") + "\n"
	}
	return b.String()
}

// Print writes m's canonical text; see the function [Print].
func (o Options) Print(w io.Writer, m *ir.Module) error {
	if err := m.Check(); err != nil {
		return fmt.Errorf("print module: %w", err)
	}
	p := &printer{w: w, opts: o}
	p.module(m)
	p.flush()
	return p.err
}

type printer struct {
	w    io.Writer
	opts Options
	buf  []byte
	err  error // the first one; nothing is written after it

	g                         *ir.Graph
	edges                     []ir.Edge // edges into later commands
	params, memories, kernels []string  // names as they are written, without the sigil
}

func (p *printer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *printer) flush() {
	if p.err == nil {
		_, err := p.w.Write(p.buf)
		if err != nil {
			p.fail(fmt.Errorf("print module: %w", err))
		}
	}
	p.buf = p.buf[:0]
}

func (p *printer) str(ss ...string) {
	for _, s := range ss {
		p.buf = append(p.buf, s...)
	}
}

func (p *printer) quoted(s string)  { p.buf = strconv.AppendQuote(p.buf, s) }
func (p *printer) int(v int64)      { p.buf = strconv.AppendInt(p.buf, v, 10) }
func (p *printer) uint(v uint64)    { p.buf = strconv.AppendUint(p.buf, v, 10) }
func (p *printer) name(s string)    { p.str(ir.QuoteName(s)) }
func (p *printer) mem(m ir.MemID)   { p.str("%", p.memories[m]) }
func (p *printer) sha(d *ir.Digest) { p.buf = hex.AppendEncode(append(p.buf, " sha256 "...), d[:]) }

func (p *printer) newline() {
	p.buf = append(p.buf, '\n')
	if len(p.buf) >= flushAt {
		p.flush()
	}
}

func (p *printer) module(m *ir.Module) {
	p.str("mlxt ")
	p.int(Version)
	p.newline()
	if len(m.Data) > 0 {
		p.newline()
	}
	for _, d := range m.Data {
		p.str("data ")
		p.quoted(d.Name)
		p.str(" = ")
		p.blob(d.Blob)
		p.newline()
	}
	for _, g := range m.Graphs {
		p.newline()
		p.graph(g)
	}
}

func (p *printer) graph(g *ir.Graph) {
	p.g, p.edges = g, g.Edges
	p.params = slices.Grow(p.params[:0], len(g.Params))
	for i := range g.Params {
		p.params = append(p.params, ir.QuoteName(g.Params[i].Name))
	}
	p.memories = slices.Grow(p.memories[:0], len(g.Memories))
	for i := range g.Memories {
		p.memories = append(p.memories, ir.QuoteName(g.Memories[i].Name))
	}
	p.kernels = slices.Grow(p.kernels[:0], len(g.Kernels))
	for i := range g.Kernels {
		p.kernels = append(p.kernels, ir.QuoteName(g.Kernels[i].Name))
	}

	p.str("graph ", ir.QuoteName(g.Name))
	if g.Ordering != ir.ByBarriers {
		p.str(" ", g.Ordering.String())
	}
	if g.NextHost {
		p.str(" next host")
	}
	p.str(" {")
	p.newline()
	for i := range g.Params {
		p.param(i)
	}
	for _, c := range g.Constraints {
		p.str("  require ")
		p.affine(c.LHS)
		p.str(" <= ")
		p.int(c.Max)
		p.newline()
	}
	for i := range g.Memories {
		p.memory(i)
	}
	for i := range g.Kernels {
		p.kernel(i)
	}
	if len(g.Nodes) > 0 && len(g.Params)+len(g.Memories)+len(g.Kernels) > 0 {
		p.newline()
	}
	depth := 1
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.GroupEnd); ok {
			depth--
		}
		p.node(n, depth)
		if _, ok := n.(*ir.GroupBegin); ok {
			depth++
		}
	}
	p.str("}")
	p.newline()
}

func (p *printer) param(i int) {
	a := &p.g.Params[i]
	p.str("  param $", p.params[i], " ", a.Type.String(), " in [")
	p.bound(a.Type, a.Min)
	p.str(", ")
	p.bound(a.Type, a.Max)
	p.str("]")
	switch {
	case a.Advance > 0:
		p.str(" += ")
		p.int(a.Advance)
	case a.Advance < 0:
		p.str(" -= ")
		p.int(-a.Advance)
	}
	p.newline()
}

func (p *printer) bound(d ir.DType, v float64) {
	if d == ir.F32 {
		p.buf = appendFloat32(p.buf, float32(v))
		return
	}
	p.uint(uint64(v))
}

func (p *printer) memory(i int) {
	m := &p.g.Memories[i]
	p.str("  memory %", p.memories[i])
	if m.Alias != ir.NoMem {
		p.str(" alias ")
		p.mem(m.Alias)
		p.str(" + ")
		p.int(m.AliasOff)
		p.str(" size ")
		p.int(m.Size)
	} else {
		p.str(" ", m.Kind.String(), " ")
		p.int(m.Size)
		if m.Storage != ir.Shared {
			p.str(" ", m.Storage.String())
		}
	}
	if m.Align != 0 {
		p.str(" align ")
		p.int(m.Align)
	}
	if m.DType != ir.Invalid {
		p.str(" ", m.DType.String())
		for j, d := range m.Shape {
			p.str(separator(j, "["))
			p.int(d)
		}
		if len(m.Shape) > 0 {
			p.str("]")
		}
	}
	if m.Every {
		p.str(" every")
	}
	switch m.Init.Kind {
	case ir.InitBlob:
		p.str(" = ")
		p.blob(m.Init.Blob)
	case ir.InitFill:
		p.str(" = fill ")
		p.hex(uint64(binary.LittleEndian.Uint32(m.Init.Pattern[:])), 8)
	case ir.InitRandom:
		p.str(" = random seed ")
		p.uint(m.Init.Seed)
	case ir.InitValues:
		p.str(" = values(")
		for j := range m.Init.Values {
			v := &m.Init.Values[j]
			p.str(separator(j, ""))
			p.int(v.Off)
			p.str(": ")
			if v.Type != ir.Invalid {
				p.str(v.Type.String(), " ")
			}
			if v.Bytes == nil {
				p.binding(&ir.Binding{Kind: ir.BindScalar, Expr: v.Expr}, ir.Arg{})
				continue
			}
			a := ir.Arg{Type: v.Type}
			if int64(len(v.Bytes)) == v.Type.Size() {
				a.Count = 1
			}
			p.inline(v.Bytes, a)
		}
		p.str(")")
	}
	p.newline()
}

func separator(i int, open string) string {
	if i == 0 {
		return open
	}
	return ", "
}

// hex writes v with at least n digits.
func (p *printer) hex(v uint64, n int) {
	p.str("0x")
	for s := 16; s > 0; s-- {
		if d := v >> (4 * (s - 1)); s <= n || d != 0 {
			p.buf = append(p.buf, "0123456789abcdef"[d&15])
		}
	}
}

func (p *printer) blob(b *ir.Blob) {
	path, offset := b.Path, b.Offset
	embedded := path == ""
	if !embedded && p.opts.Rebase != nil {
		var err error
		if path, err = p.opts.Rebase(path); err != nil {
			p.fail(fmt.Errorf("print module: %w", err))
			return
		}
	}
	if embedded && p.opts.InlineLimit > 0 && b.Length > p.opts.InlineLimit && p.opts.External != nil {
		if where, off, ok := p.opts.External(b); ok {
			path, offset, embedded = where, off, false
		}
	}
	if !embedded {
		p.str("file ")
		p.quoted(path)
		p.str(" offset ")
		p.int(offset)
		p.str(" length ")
		p.int(b.Length)
		p.sha(&b.Digest)
		return
	}
	data, err := b.Bytes()
	if err != nil {
		p.fail(fmt.Errorf("print module: %w", err))
		return
	}
	p.str(`blob base64"`)
	for len(data) > 0 {
		n := min(len(data), flushAt/4*3) // a multiple of 3, so that base64 pads only at the end
		p.buf = base64.StdEncoding.AppendEncode(p.buf, data[:n])
		data = data[n:]
		p.flush()
	}
	p.str(`"`)
}

func (p *printer) kernel(i int) {
	k := &p.g.Kernels[i]
	p.str("  kernel @", p.kernels[i], " ", k.Library.Kind.String(), " ")
	if !k.Library.Declared() {
		p.quoted(k.Library.Path)
		p.sha(&k.Library.Digest)
		p.str(" ")
	}
	p.quoted(k.Function)
	for j, c := range k.Constants {
		p.str(separator(j, " constants("))
		p.int(int64(c.Index))
		if c.Name != "" {
			p.str(" ")
			p.name(c.Name)
		}
		p.str(": ", c.Type.String(), " ")
		p.buf = appendValue(p.buf, c.Type, c.Bits)
	}
	if len(k.Constants) > 0 {
		p.str(")")
	}
	for j := range k.Args {
		p.str(separator(j, " args("))
		p.arg(&k.Args[j])
	}
	if len(k.Args) > 0 {
		p.str(")")
	}
	p.newline()
}

func (p *printer) arg(a *ir.Arg) {
	p.int(int64(a.Slot))
	p.str(" ")
	p.name(a.Name)
	p.str(": ", a.Kind.String(), " ", a.Type.String())
	if a.Count != usualCount(a.Kind) {
		p.str("[")
		if a.Count != 0 {
			p.int(int64(a.Count))
		}
		p.str("]")
	}
	if a.Kind == ir.DeviceArg || a.Access != ir.ReadArg {
		p.str(" ", a.Access.String())
	}
}

// usualCount is the count of an argument that is written without brackets: 1 for constants, which
// are scalars then, and 0 for the others, which are pointers.
func usualCount(k ir.ArgKind) int32 {
	if k == ir.ConstantArg {
		return 1
	}
	return 0
}
