package infer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// slotKind is what the dispatches of a class bind to an argument.
type slotKind uint8

const (
	absent   slotKind = iota // nothing
	view                     // a buffer
	inline                   // bytes, to an argument in device space
	integers                 // bytes or a scalar; the integers are symbols
	numbers                  // floats, as bytes or a scalar
)

// slot is an argument of a kernel, and what the dispatches of a class bind to it.
type slot struct {
	ir.Arg
	kind   slotKind
	name   string // as a declaration has it
	count  int    // of integers and numbers: elements
	bytes  int    // of what is bound inline
	symbol int    // of integers: index of the first symbol
}

// class is the dispatches of one kernel that differ only in the values of inline arguments, in their views, and in
// the sizes of their grid. The integers among the values, and the sizes, are its symbols.
type class struct {
	kernel  ir.Kernel
	kind    ir.GridKind
	group   [3]uint32
	local   []ir.ThreadgroupMemory
	slots   []slot
	views   []int    // indices of the slots with a view, in order
	names   []string // names of the symbols: those of integers, then of the grid's three sizes
	grid    int      // index of the grid's first symbol
	forms   []*form
	divided []int64 // sizes of the threadgroup, by which expressions may divide symbols
}

// form stands for the dispatches of a graph that differ only in where their views lie.
type form struct {
	graph  *ir.Graph
	node   *ir.Dispatch
	others []ir.ID // dispatches of the same form
}

// maxArray is the maximum number of integers in an argument whose elements become symbols; a longer one is a table.
const maxArray = 58

// classes adds the dispatches of a graph to known and new classes. It returns those that fit none, with the reason.
func classes(g *ir.Graph, known []*class, want func(k *ir.Kernel) bool) (out []*class, left []Left) {
	out = known
	byKey := map[string]*class{}
	for _, c := range out {
		byKey[c.key()] = c
	}
	forms := map[string]*form{}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || !want(&g.Kernels[d.Kernel]) {
			continue
		}
		c, why := classOf(g, d)
		if why != "" {
			left = append(left, Left{Graph: g.Name, Command: d.ID, Kernel: g.Kernels[d.Kernel].Function, Why: why})
			continue
		}
		key := c.key()
		if have := byKey[key]; have != nil {
			c = have
		} else {
			byKey[key] = c
			out = append(out, c)
		}
		id := key + formKey(g, d)
		if d.Effects.Known() && !msl.Declared(&g.Kernels[d.Kernel]) {
			id += d.ID.String() // its effects are its own
		}
		if f := forms[id]; f != nil {
			f.others = append(f.others, d.ID)
			continue
		}
		f := &form{graph: g, node: d}
		forms[id] = f
		c.forms = append(c.forms, f)
	}
	return out, left
}

// formKey returns a key that is equal for dispatches of the same form.
func formKey(g *ir.Graph, d *ir.Dispatch) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%p %v", g, d.Grid)
	for i := range d.Bindings {
		x := g.Resolve(d.Bindings[i])
		switch x.Kind {
		case ir.BindView:
			fmt.Fprintf(&b, " view %s", g.FormatAffine(x.View.Len))
			if several(g, &x) > 0 {
				fmt.Fprintf(&b, " of %d from %d", x.View.Mem, x.View.Off.Const)
			}
			for j := range i { // a kernel may have another argument in place
				if y := g.Resolve(d.Bindings[j]); y.Kind == ir.BindView && sameBytes(g, x.View, y.View) {
					fmt.Fprintf(&b, " as %d", j)
				}
			}
		case ir.BindBytes:
			fmt.Fprintf(&b, " %x", x.Bytes)
		default:
			fmt.Fprintf(&b, " %s", g.FormatAffine(x.Expr))
		}
	}
	return b.String()
}

// several returns the number of bytes of a view that several values of argument memory share; 0 for any other binding.
func several(g *ir.Graph, b *ir.Binding) int {
	if b.Kind != ir.BindView || !b.View.Off.IsConst() || !b.View.Len.IsConst() || b.View.Len.Const > 4*maxArray {
		return 0
	}
	if m := &g.Memories[b.View.Mem]; m.Kind != ir.Argument || m.Alias != ir.NoMem {
		return 0
	}
	return int(b.View.Len.Const)
}

// classOf returns the class of a dispatch, without forms, or the reason why it has none.
func classOf(g *ir.Graph, d *ir.Dispatch) (c *class, why string) {
	k := &g.Kernels[d.Kernel]
	if d.Counts() != nil {
		return nil, "its grid is in memory"
	}
	c = &class{kernel: *k, kind: d.GridKind, group: d.Threadgroup, local: d.ThreadgroupMemory}
	used := map[string]bool{}
	for i := range k.Args {
		a := k.Args[i]
		if a.Kind == ir.ThreadgroupArg {
			continue
		}
		s := slot{Arg: a, name: free(used, a.Name, a.Slot), symbol: -1}
		bound := d.Binding(a.Slot)
		if bound == nil {
			c.slots = append(c.slots, s)
			continue
		}
		b := g.Resolve(*bound)
		size := int(a.Type.Size())
		shared := several(g, &b)
		switch {
		case b.Kind == ir.BindView && a.Kind == ir.ConstantArg && shared > 0 && !a.Type.Float() && shared%size == 0 && shared/size <= maxArray:
			s.kind, s.count, s.bytes, s.symbol = integers, shared/size, shared, len(c.names)
			for j := range s.count {
				c.names = append(c.names, fmt.Sprintf("%s[%d]", s.name, j))
			}
		case b.Kind == ir.BindView && a.Kind == ir.ConstantArg:
			return nil, fmt.Sprintf("argument %d (%s) is constant and bound to a buffer, so that nobody knows its value", a.Slot, a.Name)
		case b.Kind == ir.BindView:
			s.kind = view
			c.views = append(c.views, len(c.slots))
		case a.Kind == ir.DeviceArg:
			s.kind, s.bytes = inline, len(b.Bytes)
			if b.Kind == ir.BindScalar {
				return nil, fmt.Sprintf("argument %d (%s) is of the device space and bound to a param", a.Slot, a.Name)
			}
		case b.Kind == ir.BindScalar && a.Type != ir.F32:
			s.kind, s.count, s.bytes, s.symbol = integers, 1, size, len(c.names)
			c.names = append(c.names, s.name)
		case b.Kind == ir.BindScalar:
			s.kind, s.count, s.bytes = numbers, 1, size
		default:
			s.bytes = len(b.Bytes)
			if s.kind = numbers; size == 0 || len(b.Bytes)%size != 0 {
				return nil, fmt.Sprintf("argument %d (%s) has %d bytes, no whole number of %s", a.Slot, a.Name, len(b.Bytes), a.Type)
			}
			s.count = len(b.Bytes) / size
			if !a.Type.Float() && s.count > maxArray {
				return nil, fmt.Sprintf("argument %d (%s) has %d integers, more than the %d that can be symbols", a.Slot, a.Name, s.count, maxArray)
			}
			if !a.Type.Float() {
				s.kind, s.symbol = integers, len(c.names)
				for j := range s.count {
					n := s.name
					if a.Count != 1 {
						n = fmt.Sprintf("%s[%d]", s.name, j)
					}
					c.names = append(c.names, n)
				}
			}
		}
		c.slots = append(c.slots, s)
	}
	if len(c.names) > 61 {
		return nil, fmt.Sprintf("it has %d integers among its arguments, more than can be symbols", len(c.names))
	}
	c.grid = len(c.names)
	for _, axis := range "xyz" {
		c.names = append(c.names, free(used, d.GridKind.String()+"_"+string(axis), 0))
	}
	for _, n := range d.Threadgroup {
		if !slices.Contains(divisors, int64(n)) && !slices.Contains(c.divided, int64(n)) {
			c.divided = append(c.divided, int64(n))
		}
	}
	return c, ""
}

// words are reserved in expressions.
var words = []string{"inf", "sum", "max", "min", "argmax", "ceil", "pow2", "select", "round", "exp", "exp2", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "abs", "as_f16", "as_f32", "_",
	"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "bool"}

// free returns a name for an argument that is valid in a declaration, and adds it to those used.
func free(used map[string]bool, name string, slot uint8) string {
	ok := name != ""
	for i, r := range name {
		ok = ok && (r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9')
	}
	if !ok {
		name = fmt.Sprintf("arg%d", slot)
	}
	for used[name] || slices.Contains(words, name) {
		name += "_"
	}
	used[name] = true
	return name
}

func (c *class) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %q", c.kernel.Library, c.kernel.Function)
	for _, x := range c.kernel.Constants {
		fmt.Fprintf(&b, " %d=%s:%d", x.Index, x.Type, x.Bits)
	}
	fmt.Fprintf(&b, " %v %v %v", c.kind, c.group, c.local)
	for _, s := range c.slots {
		fmt.Fprintf(&b, " %d %s %v %d %v %v %v", s.Slot, s.name, s.kind, s.bytes, s.Type, s.Access, s.Arg.Kind)
	}
	return b.String()
}

// values returns the values of a form's symbols for given params of its graph, and the lengths of its views in bytes.
func (c *class) values(f *form, params []uint32) (vals, lens []int64) {
	d := f.node
	for i := range c.slots {
		s := &c.slots[i]
		switch s.kind {
		case integers:
			b := f.graph.Resolve(*d.Binding(s.Slot))
			if b.Kind == ir.BindScalar {
				vals = append(vals, b.Expr.Eval(params))
				continue
			}
			raw := b.Bytes
			if b.Kind == ir.BindView { // several values of argument memory
				m := &f.graph.Memories[b.View.Mem]
				all := make([]byte, m.Size)
				m.WriteValues(all, params)
				raw = all[b.View.Off.Const:][:s.bytes]
			}
			size := int(s.Type.Size())
			for j := range s.count {
				vals = append(vals, integer(s.Type, raw[j*size:(j+1)*size]))
			}
		case view:
			lens = append(lens, d.Binding(s.Slot).View.Len.Eval(params))
		}
	}
	for _, e := range d.Grid {
		vals = append(vals, e.Eval(params))
	}
	return vals, lens
}

// integer decodes an integer of a type.
func integer(t ir.DType, raw []byte) int64 {
	switch t {
	case ir.I8:
		return int64(int8(raw[0]))
	case ir.U16:
		return int64(binary.LittleEndian.Uint16(raw))
	case ir.I16:
		return int64(int16(binary.LittleEndian.Uint16(raw)))
	case ir.U32:
		return int64(binary.LittleEndian.Uint32(raw))
	case ir.I32:
		return int64(int32(binary.LittleEndian.Uint32(raw)))
	case ir.U64, ir.I64:
		return int64(binary.LittleEndian.Uint64(raw))
	}
	return int64(raw[0])
}

// shape has a value for each symbol of a class and a length for each view, with which a dispatch can run.
type shape struct {
	vals, lens []int64
	form       *form    // what else it has, as a dispatch of the graph
	params     []uint32 // of a real shape
	real       bool     // the graph has it, with these params
}

// say formats the values of a shape for messages.
func (c *class) say(s *shape) string {
	var b strings.Builder
	for i, n := range c.names {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i == c.grid {
			fmt.Fprintf(&b, "%s %dx%dx%d", c.kind, s.vals[i], s.vals[i+1], s.vals[i+2])
			break
		}
		fmt.Fprintf(&b, "%s=%d", n, s.vals[i])
	}
	if s.real {
		fmt.Fprintf(&b, " (%s of graph %s)", s.form.node.ID, ir.QuoteName(s.form.graph.Name))
	}
	return b.String()
}

// threads returns the number of threads in a shape's grid.
func (c *class) threads(s *shape) int64 {
	n := int64(1)
	for i, v := range s.vals[c.grid:] {
		if c.kind == ir.Threadgroups {
			v = sat(v, int64(c.group[i]))
		}
		n = sat(n, max(0, v))
	}
	return n
}

// fits reports whether every value is in the range of its argument's type, or of a grid.
func (c *class) fits(s *shape) bool {
	for i := range c.slots {
		x := &c.slots[i]
		if x.kind != integers {
			continue
		}
		for _, v := range s.vals[x.symbol : x.symbol+x.count] {
			bits := x.Type.Bits()
			if x.Type == ir.Bool {
				bits = 1
			}
			lo, hi := int64(0), int64(1)<<min(62, bits)-1
			switch x.Type {
			case ir.I8, ir.I16, ir.I32, ir.I64:
				lo, hi = -(hi+1)/2, hi/2
			}
			if v < lo || v > hi {
				return false
			}
		}
	}
	for _, v := range s.vals[c.grid:] {
		if v < 0 || v > 1<<31-1 {
			return false
		}
	}
	return true
}

// graph returns a graph with one dispatch of the shape, and the memories of its views. Each view has a memory of its
// own unless together is set; then views that are equal in the form share one. With declared, the checker compares
// accesses with the kernel's declaration; otherwise it allows all of them. Inline bytes that are not symbols are
// those of the form, changed by fill if that is not nil.
func (c *class) graph(s *shape, together, declared bool, fill func(to []byte, t ir.DType)) (*ir.Graph, *ir.Dispatch, []ir.MemID, error) {
	b := ir.NewBuilder("infer")
	d := ir.Dispatch{Kernel: b.Kernel(c.kernel), GridKind: c.kind, Threadgroup: c.group, ThreadgroupMemory: c.local}
	for i := range d.Grid {
		d.Grid[i] = ir.Ext(s.vals[c.grid+i])
	}
	mems := make([]ir.MemID, len(c.views))
	n := 0
	for i := range c.slots {
		x := &c.slots[i]
		switch x.kind {
		case view:
			size := s.lens[n]
			mems[n] = ir.NoMem
			for j := range n {
				if together && c.sameView(s, j, n) {
					mems[n] = mems[j]
				}
			}
			if mems[n] == ir.NoMem {
				mems[n] = b.Memory(ir.Memory{Name: fmt.Sprintf("m%d", n), Kind: ir.State, Size: max(1, size)})
			}
			d.Bindings = append(d.Bindings, ir.BufferArg(x.Slot, ir.ViewOf(mems[n], 0, size)))
			n++
		case integers:
			var raw []byte
			for _, v := range s.vals[x.symbol : x.symbol+x.count] {
				raw = append(raw, binary.LittleEndian.AppendUint64(nil, uint64(v))[:x.Type.Size()]...)
			}
			d.Bindings = append(d.Bindings, ir.BytesArg(x.Slot, raw))
		case inline, numbers:
			raw := make([]byte, x.bytes)
			if y := s.form.graph.Resolve(*s.form.node.Binding(x.Slot)); y.Kind == ir.BindBytes {
				copy(raw, y.Bytes)
			} else if x.bytes == 4 { // an f32 param
				binary.LittleEndian.PutUint32(raw, 0x3f000000)
			}
			if fill != nil {
				fill(raw, x.Type)
			}
			d.Bindings = append(d.Bindings, ir.BytesArg(x.Slot, raw))
		}
	}
	if !declared { // anything is allowed
		d.Effects = &ir.Effects{Complete: true}
		for i := range d.Bindings {
			if x := &d.Bindings[i]; x.Kind == ir.BindView {
				r := x.View.Contiguous()
				d.Effects.Reads = append(d.Effects.Reads, r)
				if a, _ := c.kernel.Arg(x.Slot); a.Access != ir.ReadArg {
					d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: r})
				}
			}
		}
	}
	node := b.Dispatch(d)
	g, err := b.Graph()
	return g, node, mems, err
}

// sameView reports whether two views of a form are the same bytes.
func (c *class) sameView(s *shape, i, j int) bool {
	return sameBytes(s.form.graph, s.form.node.Binding(c.slots[c.views[i]].Slot).View, s.form.node.Binding(c.slots[c.views[j]].Slot).View)
}

func sameBytes(g *ir.Graph, v, w ir.View) bool {
	m, a := g.Root(v.Mem)
	n, b := g.Root(w.Mem)
	return m == n && v.Off.AddConst(a).Equal(w.Off.AddConst(b)) && v.Len.Equal(w.Len)
}

// accepts returns the effects that a declaration gives a dispatch, or an error if it does not describe it.
func accepts(x *decl.Decl, g *ir.Graph, d *ir.Dispatch) (*ir.Effects, error) {
	in, err := x.Bind(g, d)
	if err != nil {
		return nil, err
	}
	return in.Effects()
}
