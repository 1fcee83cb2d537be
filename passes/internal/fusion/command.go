package fusion

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// command is what a round knows about one command.
type command struct {
	*shape  // nil: it cannot be a member of a group
	node    ir.Command
	effects *ir.Effects
	kind    uint16 // a number from fuser.kinds
	fresh   bool   // fused in the previous round, or stuck and so to be tried again
	missed  bool   // a remark says why it was not fused
	gone    bool   // it was fused into another command
	// stuck: it is the last member of a group for which no place was found. Fusions since then may have made a place.
	stuck bool
	// unrounded: its terms lack roundings of intermediates that the recording has.
	unrounded bool
}

// shape is what commands of the same form (decl.Form) have in common.
type shape struct {
	id   uint32         // 0: the shape belongs to one command only
	in   *decl.Instance // of one command of this shape, with that command's places in memory
	form *decl.Form     // nil: the shape belongs to copies, or to one command only
	// The arguments, as indices in in.Decl.Args, that the effects' reads and writes belong to.
	reads, writes []int
	work          cost.Work
	// spans are the spans of the arguments. If the shape belongs to one command only, they are absolute. Otherwise they
	// are relative to the begin of the view, and 1 to 0 (invalid) if the end is not a constant distance from there.
	spans []isel.Span
	// moved caches, by argument, the span of a view whose offset depends on params.
	moved []moved
	// ones says, by argument, which kinds of all-ones weights (see memory.ones) it may read; plain
	// is the kind of a command that reads none.
	ones   []uint8
	plain  uint16
	usable bool
	after  *shape // the shape of the command that followed last time, a guess for the next lookup
}

// moved is where the region of a view lies in the memory of the view, for all
// values of the params: within [lo, end), or anywhere if not ok.
type moved struct {
	known, ok bool
	off       ir.Affine
	lo, end   int64
}

// memory holds facts about a memory that every view of it needs.
type memory struct {
	root   ir.MemID
	off    int64
	weight bool  // its root memory is a weight
	filled bool  // its root is filled with one repeated word, whose value terms may use
	ones   uint8 // bit k: all elements of type onesTypes[k] are 1
}

// onesTypes are the types of weights that may be all ones.
var onesTypes = []ir.DType{ir.F32, ir.F16, ir.BF16}

func memories(g *ir.Graph) []memory {
	out := make([]memory, len(g.Memories))
	for i := range out {
		m := &out[i]
		m.root, m.off = g.Root(ir.MemID(i))
		x := &g.Memories[m.root]
		m.weight = x.Kind == ir.Weight
		m.filled = m.weight && x.Init.Kind == ir.InitFill
		for k, t := range onesTypes {
			if m.filled && isel.OnesOf(x, t) {
				m.ones |= 1 << k
			}
		}
	}
	return out
}

// anew binds command i, or reuses what was found for the same dispatch in the previous round. A
// copy is always bound again, because its element type depends on the commands around it.
func (r *round) anew(old *command, node ir.Command, i int) *command {
	d, ok := node.(*ir.Dispatch)
	if old == nil || !ok {
		c := r.bind(node, i)
		c.unrounded = ok && len(d.From) > 1 // an earlier run of the pass may have left out roundings
		return c
	}
	c := r.commands.One()
	*c = command{shape: old.shape, node: node, effects: old.effects, kind: old.kind, fresh: true, unrounded: old.unrounded}
	return c
}

// bind gives command i its declaration if it can be a member of a group: its effects must be
// complete and equal to those that the declaration gives.
func (r *round) bind(node ir.Command, i int) *command {
	if d, ok := node.(*ir.Dispatch); ok && r.declared != nil && d.Effects.Known() {
		if form := r.declared.Form(d); form != nil {
			if form.Describes(d, d.Effects) {
				return r.placed(d, form)
			}
			c := r.commands.One()
			c.node, c.effects, c.fresh = node, d.Effects, true
			return c
		}
	}
	c := r.commands.One()
	c.node, c.effects, c.fresh = node, node.Touches(), true
	var in *decl.Instance
	var err error
	switch n := node.(type) {
	case *ir.Dispatch:
		if !c.effects.Known() || !msl.Declared(&r.g.Kernels[n.Kernel]) || n.Counts() != nil {
			return c
		}
		if r.declared != nil {
			in, err = msl.Bind(r.g, n)
		} else {
			in, err = r.o.Library.Bind(r.g, n)
		}
		if err != nil {
			return c
		}
		if e, err := in.Effects(); err != nil || !e.Equal(c.effects) {
			return c
		}
	case *ir.Copy:
		if s := r.copyShape(n, r.copied(i), c.effects); s.usable {
			c.shape = s
			c.kind = r.kindOf(c)
		}
		return c
	default:
		return c
	}
	if s := r.newShape(in, nil, false, c.effects); s.usable {
		c.shape = s
		c.kind = r.kindOf(c)
	}
	return c
}

// copyShape returns the shape of a copy that moves elements of type t. Copies have no form, but those that differ only
// in where their views lie share a shape for the same reason: what is found out about the groups of one holds for all.
// As in a form, offsets are multiples of the same powers of two up to 8.
func (f *fuser) copyShape(n *ir.Copy, t ir.DType, e *ir.Effects) *shape {
	key := append(f.copyKey[:0], byte(t), f.alignment(&n.Src)<<4|f.alignment(&n.Dst))
	key = binary.AppendVarint(key, n.Src.Len.Const)
	for _, x := range n.Src.Len.Terms() {
		key = binary.AppendVarint(binary.AppendUvarint(key, uint64(x.Param)), x.Coeff)
	}
	f.copyKey = key
	if s := f.copies[string(key)]; invariants.Caches && s != nil {
		return s
	}
	s := &shape{}
	if in, err := isel.Copy(f.g, n, t); err == nil {
		s = f.newShape(in, nil, true, e)
		s.id = f.newID()
	}
	f.copies[string(key)] = s
	return s
}

// alignment returns the exponent of the largest power of two, up to 8, of which the offset of a view in its root is a
// multiple.
func (f *fuser) alignment(v *ir.View) byte {
	x := uint64(v.Off.Const + f.mems[v.Mem].off)
	for _, t := range v.Off.Terms() {
		x |= uint64(t.Coeff)
	}
	return byte(bits.TrailingZeros64(x | 8))
}

// newID numbers a shape that several commands share.
func (f *fuser) newID() uint32 {
	f.shapes++
	return f.shapes
}

// placed returns the command for a dispatch of a known form, whose effects are those of the form.
func (r *round) placed(d *ir.Dispatch, form *decl.Form) *command {
	c := r.commands.One()
	c.node, c.effects, c.fresh = d, d.Effects, true
	s := r.last
	if s != nil {
		s = s.after
	}
	if s == nil || s.form != form { // mostly equal, because graphs repeat themselves
		var ok bool
		if s, ok = r.forms[form]; !ok {
			in := &decl.Instance{}
			form.Place(in, d, make([]ir.View, form.Views()))
			s = r.newShape(in, form, true, d.Effects)
			s.id = r.newID()
			r.forms[form] = s
		}
		if r.last != nil {
			r.last.after = s
		}
	}
	r.last = s
	if s.usable {
		c.shape = s
		c.kind = r.kindOf(c)
	}
	return c
}

// kindOf returns the kind of a command.
func (f *fuser) kindOf(c *command) uint16 {
	k := kind{d: c.in.Decl}
	for j, what := range c.ones {
		if what == 0 {
			continue
		}
		if v := c.view(j); f.mems[v.Mem].ones&what != 0 {
			k.ones |= 1 << min(j, 31)
		}
	}
	if k.ones == 0 && c.plain != 0 {
		return c.plain
	}
	id, ok := f.kinds[k]
	if !ok {
		id = uint16(len(f.kinds) + 1)
		f.kinds[k] = id
	}
	if k.ones == 0 {
		c.plain = id
	}
	return id
}

// newShape returns the shape of an instance with these effects: of this instance alone, or one that it shares with the
// other commands of its form or with other copies.
func (f *fuser) newShape(in *decl.Instance, form *decl.Form, shared bool, e *ir.Effects) *shape {
	s := &shape{in: in, form: form}
	if !isel.Selectable(in.Decl) {
		return s
	}
	s.spans = make([]isel.Span, len(in.Decl.Args))
	s.ones = make([]uint8, len(in.Decl.Args))
	for j := range in.Decl.Args {
		var err error
		if s.spans[j], err = isel.SpanOf(in, j); err != nil {
			s.spans[j].Root = ir.NoMem // treated like an inline argument
			continue
		}
		if s.spans[j].Root == ir.NoMem {
			continue
		}
		if in.Decl.Args[j].Mode == decl.Read {
			s.reads = append(s.reads, j)
		} else {
			s.writes = append(s.writes, j)
		}
		if k := slices.Index(onesTypes, in.Decl.Args[j].Elem); k >= 0 {
			s.ones[j] = 1 << k
		}
		if !shared {
			continue
		}
		// If the region begins where its view does, and its end is at most a constant further, the span is known.
		x := &s.spans[j]
		x.Lo, x.End = 1, 0
		if region, err := in.Region(j); err == nil {
			lo, end := region.Hull()
			_, n, ok := f.g.Range(end.Sub(in.Views[j].Off))
			if lo.Equal(in.Views[j].Off) && ok && n >= 0 {
				x.Lo, x.End = 0, n
			}
		}
	}
	if len(s.reads) != len(e.Reads) || len(s.writes) != len(e.Writes) {
		return s
	}
	s.moved = make([]moved, len(s.spans))
	s.work, s.usable = f.model.Instance(in, e), true
	return s
}

// recorded returns the number of recorded commands that a command stands for: itself, if it was not made of others.
func (c *command) recorded() int {
	from, _, _ := provenance(c.node)
	return max(len(from), 1)
}

// view returns the view that device argument j of a command is bound to.
func (c *command) view(j int) *ir.View {
	switch n := c.node.(type) {
	case *ir.Copy:
		if j == isel.CopySource {
			return &n.Src
		}
		return &n.Dst
	case *ir.Dispatch:
		if c.form != nil {
			return c.form.View(n, j)
		}
	}
	return &c.in.Views[j]
}

// instance returns the bound declaration of a command.
func (f *fuser) instance(c *command) *decl.Instance {
	if c.id == 0 {
		return c.in
	}
	in := f.instances.One()
	switch n := c.node.(type) {
	case *ir.Copy:
		isel.PlaceCopy(in, c.in, n, f.dispatches.One(), f.views.Take(2))
	case *ir.Dispatch:
		c.form.Place(in, n, f.views.Take(c.form.Views()))
	}
	return in
}

// span returns the span of argument j of a command, as [isel.SpanOf] does.
func (f *fuser) span(c *command, j int) isel.Span {
	rel := &c.spans[j]
	if rel.Root == ir.NoMem || c.id == 0 {
		return *rel
	}
	v := c.view(j)
	m := &f.mems[v.Mem]
	if v.Off.IsConst() && rel.Lo <= rel.End {
		at := v.Off.Const + m.off
		return isel.Span{Root: m.root, At: ir.Const(at), Lo: at + rel.Lo, End: at + rel.End}
	}
	// The span relative to the memory depends only on the shape and the view's offset, so it is cached.
	x := &c.moved[j]
	if !invariants.Caches || !x.known || !x.off.Equal(v.Off) {
		*x = moved{known: true, off: v.Off}
		if r, err := f.instance(c).Region(j); err == nil {
			lo, end := r.Hull()
			var ok1, ok2 bool
			x.lo, _, ok1 = f.g.Range(lo)
			_, x.end, ok2 = f.g.Range(end)
			x.ok = ok1 && ok2
		}
	}
	at := v.Off.AddConst(m.off)
	if !x.ok {
		return isel.Span{Root: m.root, At: at, End: f.g.Memories[m.root].Size}
	}
	return isel.Span{Root: m.root, At: at, Lo: x.lo + m.off, End: x.end + m.off}
}

// spansOf returns the spans of all arguments of a command.
func (f *fuser) spansOf(c *command) []isel.Span {
	out := make([]isel.Span, len(c.spans))
	for j := range out {
		out[j] = f.span(c, j)
	}
	return out
}

// copied returns the element type of a copy: that with which its source was written, or else that with
// which its destination is first read.
func (r *round) copied(i int) ir.DType {
	if u := r.flow.Reads(i); len(u) == 1 {
		if s, ok := u[0].Single(); ok {
			if p := r.cmds[s.Command]; p.shape != nil && p.in.Decl.Args[p.writes[s.Write]].Elem.Size() > 0 {
				return p.in.Decl.Args[p.writes[s.Write]].Elem
			}
		}
	}
	if w := r.flow.Writes(i); len(w) == 1 && len(w[0].Readers) > 0 {
		reader := w[0].Readers[0]
		if d, ok := r.flow.Commands[reader.Command].(*ir.Dispatch); ok {
			if in, err := r.o.Library.Bind(r.g, d); err == nil {
				k := int32(0)
				for j := range in.Decl.Args {
					if a := &in.Decl.Args[j]; a.Kind == ir.DeviceArg && a.Mode == decl.Read && in.Views[j].Mem != ir.NoMem {
						if k == reader.Read && a.Elem.Size() > 0 {
							return a.Elem
						}
						k++
					}
				}
			}
		}
	}
	return ir.U8
}
