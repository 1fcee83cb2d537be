package irtest

import (
	"encoding/binary"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func (g *gen) nodes() {
	open := 0
	add := func(n ir.Node) { g.g.Nodes = append(g.g.Nodes, n) }
	for range rapid.IntRange(0, 12).Draw(g.t, "nodes") {
		switch kind := rapid.IntRange(0, 9).Draw(g.t, "node"); {
		case kind == 0 && g.g.Ordering == ir.ByEdges:
			add(&ir.Join{ID: g.id()})
		case kind == 0:
			add(&ir.Barrier{})
		case kind == 1:
			order := ir.OrderNone
			if g.g.Ordering != ir.ByEdges {
				order = rapid.SampledFrom([]ir.CommitOrder{ir.OrderNone, ir.OrderFence, ir.OrderEvent}).Draw(g.t, "order")
			}
			add(&ir.Commit{Order: order, Label: labels.Draw(g.t, "label")})
		case kind == 2:
			open++
			add(&ir.GroupBegin{Label: labels.Draw(g.t, "label")})
		case kind == 3 && open > 0:
			open--
			add(&ir.GroupEnd{})
		case kind == 4:
			dst, src := g.copyViews()
			add(&ir.Copy{ID: g.id(), Dst: dst, Src: src, Label: labels.Draw(g.t, "label"), From: g.from()})
		case kind == 5 || len(g.g.Kernels) == 0:
			add(&ir.Fill{ID: g.id(), Dst: g.view(g.memory(true)), Value: rapid.Byte().Draw(g.t, "value"), Label: labels.Draw(g.t, "label"), From: g.from()})
		default:
			d := g.dispatch()
			if g.chance(4, "indirect") {
				g.indirect(d)
			}
			add(d)
		}
	}
	for ; open > 0; open-- {
		add(&ir.GroupEnd{})
	}
	g.carry()
}

// carry draws a carry from an output to an input or a state, if there are any.
func (g *gen) carry() {
	var from, to []ir.MemID
	for i := range g.g.Memories {
		switch m := &g.g.Memories[i]; {
		case m.Alias != ir.NoMem:
		case m.Kind == ir.Output:
			from = append(from, ir.MemID(i))
		case m.Kind == ir.Input || m.Kind == ir.State && m.DType.Valid():
			to = append(to, ir.MemID(i))
		}
	}
	if len(from) == 0 || len(to) == 0 || !g.bool("carry") {
		return
	}
	s, d := rapid.SampledFrom(from).Draw(g.t, "carried"), rapid.SampledFrom(to).Draw(g.t, "carried to")
	src, dst := &g.g.Memories[s], &g.g.Memories[d]
	if dst.Kind == ir.Input {
		dst.DType, dst.Shape = ir.U8, nil
	}
	src.DType, src.Shape = dst.DType, nil
	if src.Size < dst.DType.Size() || dst.DType.Size() == 0 {
		src.DType, src.Shape = ir.Invalid, nil
		return
	}
	n := g.upTo(min(src.Size, dst.Size), "length")
	g.g.Nodes = append(g.g.Nodes, &ir.Carry{
		ID: g.id(), Src: ir.ViewOf(s, g.upTo(src.Size-n, "offset"), n), Dst: ir.ViewOf(d, g.upTo(dst.Size-n, "offset"), n), Label: labels.Draw(g.t, "label"), From: g.from(),
	})
}

// indirect makes a dispatch take from memory what it can.
func (g *gen) indirect(d *ir.Dispatch) {
	t := g.t
	x := &ir.Indirect{}
	if g.bool("counts") {
		// The first memory that has room.
		for i := range g.g.Memories {
			if m := &g.g.Memories[i]; m.Size >= 12 {
				v := ir.ViewOf(ir.MemID(i), 4*g.upTo((m.Size-12)/4, "counts"), 12)
				x.Grid = &v
				break
			}
		}
	}
	if x.Grid != nil {
		d.GridKind = ir.Threadgroups
		for i := range d.Grid {
			d.Grid[i] = ir.Ext(rapid.Int64Range(0, 99).Draw(t, "greatest grid"))
		}
		if d.Effects != nil {
			d.Effects.Reads = append(d.Effects.Reads, x.Grid.Contiguous())
			for i := range d.Effects.Writes {
				d.Effects.Writes[i].Must = false
			}
		}
	}
	for i := range d.Bindings {
		if b := &d.Bindings[i]; b.Kind == ir.BindView && g.g.Memories[b.View.Mem].Kind != ir.Scratch && b.View.Off.IsConst() && !g.offset {
			if at, ok := g.holding(b.View.Off.Const); ok {
				x.Offsets = append(x.Offsets, ir.OffsetAt{Slot: b.Slot, At: at})
				g.offset = true // another one would need another value
			}
		}
	}
	if x.Grid != nil || len(x.Offsets) > 0 {
		d.Indirect = x
	}
}

// holding makes a value of argument memory hold an offset.
func (g *gen) holding(off int64) (ir.View, bool) {
	for i := range g.g.Memories {
		m := &g.g.Memories[i]
		if m.Kind != ir.Argument || m.Alias != ir.NoMem {
			continue
		}
		for _, v := range m.Init.Values {
			if n := len(v.Bytes); n == 8 || n == 4 && off <= math.MaxUint32 {
				binary.LittleEndian.PutUint32(v.Bytes, uint32(off))
				if n == 8 {
					binary.LittleEndian.PutUint64(v.Bytes, uint64(off))
				}
				return ir.ViewOf(ir.MemID(i), v.Off, int64(n)), true
			}
		}
	}
	return ir.View{}, false
}

// edges draws edges for a graph that is ordered by them.
func (g *gen) edges() {
	var ids []ir.ID
	for _, n := range g.g.Nodes {
		if c, ok := n.(ir.Command); ok {
			ids = append(ids, c.Num())
		}
	}
	if g.g.Ordering != ir.ByEdges || len(ids) == 0 {
		return
	}
	for range rapid.IntRange(0, 2*len(ids)).Draw(g.t, "edges") {
		from, to := g.upTo(int64(len(ids)-1), "from"), g.upTo(int64(len(ids)-1), "to")
		g.g.Edges = append(g.g.Edges, ir.Edge{From: ids[from], To: ids[to], Previous: from >= to})
	}
	g.g.SortEdges()
}

func (g *gen) id() ir.ID {
	id := ir.ID(len(g.ids))
	if g.chance(4, "odd id") {
		id = ir.ID(rapid.OneOf(rapid.Uint32(), rapid.Just(uint32(math.MaxUint32))).Draw(g.t, "id"))
	}
	for g.ids[id] {
		id++
	}
	g.ids[id] = true
	return id
}

func (g *gen) from() []ir.ID {
	var out []ir.ID
	for range max(0, rapid.IntRange(-3, 3).Draw(g.t, "from")) {
		out = append(out, ir.ID(rapid.Uint32().Draw(g.t, "from id")))
	}
	return out
}

// copyViews draws two disjoint views of one length.
func (g *gen) copyViews() (dst, src ir.View) {
	d, s := g.memory(true), g.anyMemory()
	dr, do := g.g.Root(d)
	sr, so := g.g.Root(s)
	if dr != sr {
		room := min(g.g.Memories[d].Size, g.g.Memories[s].Size)
		n := g.affine(g.upTo(room, "room of the length"))
		_, most, _ := g.g.Range(n)
		return ir.View{Mem: d, Off: g.affine(g.g.Memories[d].Size - most), Len: n}, ir.View{Mem: s, Off: g.affine(g.g.Memories[s].Size - most), Len: n}
	}
	// In one root: the source's bytes end where the destination's begin or before.
	lo, hi := so, do+g.g.Memories[d].Size
	a := g.upTo(g.g.Memories[s].Size, "source offset")
	n := g.upTo(min(g.g.Memories[s].Size-a, max(0, hi-lo-a), g.g.Memories[d].Size), "length")
	b := max(so+a+n-do, 0)
	if b+n > g.g.Memories[d].Size {
		n = 0
		b = 0
	}
	return ir.ViewOf(d, b, n), ir.ViewOf(s, a, n)
}

func (g *gen) dispatch() *ir.Dispatch {
	t := g.t
	d := &ir.Dispatch{
		ID:       g.id(),
		Kernel:   ir.KernelID(g.upTo(int64(len(g.g.Kernels)-1), "kernel")),
		GridKind: rapid.SampledFrom([]ir.GridKind{ir.Threadgroups, ir.Threads}).Draw(t, "grid kind"),
		Label:    labels.Draw(t, "label"),
		From:     g.from(),
	}
	if g.bool("op") {
		d.Op = names.Draw(t, "op")
	}
	for _, a := range g.g.Kernels[d.Kernel].Args {
		if a.Kind == ir.ThreadgroupArg {
			if g.bool("threadgroup memory") {
				d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: a.Slot, Bytes: 16 * uint32(1+g.upTo(255, "bytes"))})
			}
		} else if len(g.g.Kernels[d.Kernel].Constants) == 0 || !g.chance(8, "unbound") {
			d.Bindings = append(d.Bindings, g.binding(a))
		}
	}
	threads := int64(1024)
	for i := range 3 {
		d.Grid[i] = ir.Ext(1 + g.upTo(9, "grid"))
		if g.bool("affine grid") {
			div := rapid.SampledFrom([]int64{1, 2, 32, 1000, math.MaxInt64}).Draw(t, "divisor")
			d.Grid[i] = ir.Extent{Num: g.affine(math.MaxUint32), Div: div}
		}
		n := rapid.Int64Range(1, threads).Draw(t, "threads")
		d.Threadgroup[i] = uint32(n)
		threads /= n
	}
	d.Effects = g.effects()
	g.keepPromises(d)
	return d
}

func (g *gen) binding(a ir.Arg) ir.Binding {
	t := g.t
	if a.Kind == ir.DeviceArg && (a.Access != ir.ReadArg || !g.chance(4, "inline device memory")) || a.Kind == ir.ConstantArg && g.chance(4, "constant buffer") {
		return ir.BufferArg(a.Slot, g.view(g.memory(a.Kind == ir.DeviceArg && a.Access != ir.ReadArg)))
	}
	if (a.Kind == ir.DeviceArg || a.Count == 1) && g.bool("scalar") {
		switch a.Type {
		case ir.I32, ir.U32:
			e := g.affine(math.MaxInt32)
			if a.Type == ir.I32 && g.bool("below zero") {
				e = e.AddConst(math.MinInt32)
			}
			return ir.ScalarArg(a.Slot, a.Type, e)
		case ir.I64, ir.U64:
			e := g.affine(math.MaxInt64 >> 1)
			if a.Type == ir.I64 && g.bool("below zero") {
				e = e.AddConst(math.MinInt64 >> 1)
			}
			return ir.ScalarArg(a.Slot, a.Type, e)
		case ir.F32:
			if ps := g.floatParams(); len(ps) > 0 {
				return ir.ScalarArg(a.Slot, ir.F32, ir.Linear(0, ir.Term{Param: rapid.SampledFrom(ps).Draw(t, "f32 param"), Coeff: 1}))
			}
		}
	}
	n := int(a.Count) * int(a.Type.Size())
	if n > 4096 { // more than can be inline
		return ir.BufferArg(a.Slot, g.view(g.anyMemory()))
	}
	if n == 0 {
		n = rapid.IntRange(1, 24).Draw(t, "inline bytes")
		if g.chance(16, "many inline bytes") {
			n = 4096
		}
	}
	data := rapid.SliceOfN(rapid.Byte(), min(n, 40), min(n, 40)).Draw(t, "inline data")
	if a.Type.Float() && g.bool("odd float") {
		// Infinities, quiet and signalling NaNs, denormals, in every element.
		pat := rapid.SampledFrom([][]byte{{0, 0, 0x80, 0x7f}, {0, 0, 0x80, 0xff}, {1, 0, 0xc0, 0x7f}, {1, 0, 0x80, 0x7f}, {1, 0, 0, 0}, {0, 0, 0, 0x80}, {0, 0x7c, 0, 0xfc}, {1, 0x7c, 1, 0x7e}}).Draw(t, "pattern")
		for i := range data {
			data[i] = pat[i&3]
		}
	}
	if a.Type == ir.Bool && g.bool("proper bools") {
		for i := range data {
			data[i] &= 1
		}
	}
	for len(data) < n {
		data = append(data, byte(len(data)))
	}
	return ir.BytesArg(a.Slot, data)
}

func (g *gen) effects() *ir.Effects {
	kind := rapid.IntRange(0, 3).Draw(g.t, "effects")
	if kind == 0 {
		return nil
	}
	e := &ir.Effects{Complete: kind > 1}
	for range rapid.IntRange(0, 3).Draw(g.t, "reads") {
		e.Reads = append(e.Reads, g.region(g.memory(false)))
	}
	for range rapid.IntRange(0, 3).Draw(g.t, "writes") {
		e.Writes = append(e.Writes, ir.Write{Region: g.region(g.memory(true)), Must: g.bool("must"), Atomic: g.chance(4, "atomic")})
	}
	return e
}

// keepPromises takes back what effects say of writes and [ir.Graph.Check] refuses.
func (g *gen) keepPromises(d *ir.Dispatch) {
	if d.Effects == nil {
		return
	}
	for i := range d.Grid {
		if lo, _, ok := g.g.Range(d.Grid[i].Num); !ok || lo <= 0 {
			for k := range d.Effects.Writes {
				d.Effects.Writes[k].Must = false
			}
		}
	}
	var out []ir.Write
	for _, w := range d.Effects.Writes {
		root, _ := g.g.Root(w.Mem)
		readOnly := slices.ContainsFunc(d.Bindings, func(b ir.Binding) bool {
			m := ir.NoMem
			if b.Kind == ir.BindView {
				m, _ = g.g.Root(b.View.Mem)
			}
			a, _ := g.g.Kernels[d.Kernel].Arg(b.Slot)
			return m == root && (a.Kind != ir.DeviceArg || a.Access == ir.ReadArg)
		})
		if readOnly {
			continue
		}
		w.Must = w.Must && !slices.ContainsFunc(out, func(x ir.Write) bool { return x.Must })
		out = append(out, w)
	}
	d.Effects.Writes = out
}
