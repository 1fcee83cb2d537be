package adversary

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Change is one way to change a graph in place. The function reports whether it found
// something to change.
type Change struct {
	Name  string
	Apply func(x *Changing) bool
}

// Changing is a graph that is being changed.
type Changing struct {
	rng  *rand.Rand
	g    *ir.Graph
	from Origins
	next ir.ID
}

// Changes are all ways, in a fixed order. Some of them are harmless.
var Changes = []Change{
	{"argument_byte", (*Changing).argumentByte},
	{"argument_expression", (*Changing).argumentExpression},
	{"argument_value_moved", (*Changing).argumentValueMoved},
	{"argument_view_moved", (*Changing).argumentViewMoved},
	{"argument_memory_shifted", (*Changing).argumentMemoryShifted},
	{"argument_made_inline", (*Changing).argumentMadeInline},
	{"argument_of_another", (*Changing).argumentOfAnother},
	{"inline_changed", (*Changing).inlineChanged},
	{"unlisted_moved", func(x *Changing) bool { return x.moveView(true) }},
	{"view_moved", func(x *Changing) bool { return x.moveView(false) }},
	{"view_of_another_memory", (*Changing).viewOfAnother},
	{"view_through_alias", (*Changing).viewThroughAlias},
	{"alias_moved", (*Changing).aliasMoved},
	{"param_replaced", (*Changing).paramReplaced},
	{"barrier_dropped", (*Changing).barrierDropped},
	{"barrier_added", (*Changing).barrierAdded},
	{"commands_exchanged", (*Changing).commandsExchanged},
	{"command_moved", (*Changing).commandMoved},
	{"commit_weakened", (*Changing).commitWeakened},
	{"ordered_by_edges", (*Changing).orderedByEdges},
	{"command_dropped", (*Changing).commandDropped},
	{"command_repeated", (*Changing).commandRepeated},
	{"copy_forwarded", (*Changing).copyForwarded},
	{"scratch_renamed", (*Changing).scratchRenamed},
	{"effect_changed", (*Changing).effectChanged},
	{"kernel_changed", (*Changing).kernelChanged},
	{"grid_changed", (*Changing).gridChanged},
	{"fill_changed", (*Changing).fillChanged},
	{"provenance_forged", (*Changing).provenanceForged},
	{"provenance_lost", (*Changing).provenanceLost},
	{"interface_changed", (*Changing).interfaceChanged},
	{"carry_changed", (*Changing).carryChanged},
}

func some[T any](x *Changing, list []T) (v T, ok bool) {
	if len(list) == 0 {
		return v, false
	}
	return list[x.rng.IntN(len(list))], true
}

// where lists the nodes for which yes returns true.
func (x *Changing) where(yes func(n ir.Node) bool) (out []int) {
	for i, n := range x.g.Nodes {
		if yes(n) {
			out = append(out, i)
		}
	}
	return out
}

// isCommand reports whether n does something; joins do not.
func isCommand(n ir.Node) bool {
	_, join := n.(*ir.Join)
	_, ok := n.(ir.Command)
	return ok && !join
}

func (x *Changing) values() []ir.Value { return x.g.Memories[args].Init.Values }

// bindings lists the bindings of dispatches for which yes returns true.
func (x *Changing) bindings(yes func(d *ir.Dispatch, b *ir.Binding) bool) (out []*ir.Binding) {
	for _, n := range x.g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			for i := range d.Bindings {
				if yes(d, &d.Bindings[i]) {
					out = append(out, &d.Bindings[i])
				}
			}
		}
	}
	return out
}

func (x *Changing) isArgument(b *ir.Binding) bool {
	return b.Kind == ir.BindView && x.g.Memories[b.View.Mem].Kind == ir.Argument
}

func (x *Changing) argumentByte() bool {
	v, ok := some(x, x.values())
	if !ok || v.Bytes == nil {
		return false
	}
	v.Bytes[x.rng.IntN(len(v.Bytes))] ^= 1
	return true
}

func (x *Changing) argumentExpression() bool {
	list := x.values()
	i := x.rng.IntN(len(list))
	if list[i].Bytes != nil {
		return false
	}
	list[i].Expr = list[i].Expr.AddConst(1)
	if x.rng.IntN(2) == 0 {
		list[i].Expr = ir.Linear(1, ir.Term{Param: ir.ParamID(x.rng.IntN(len(x.g.Params))), Coeff: 1})
	}
	return true
}

// argumentValueMoved moves a value into a gap, or drops it.
func (x *Changing) argumentValueMoved() bool {
	list := x.values()
	i := x.rng.IntN(len(list))
	if x.rng.IntN(3) == 0 && len(list) > 1 {
		x.g.Memories[args].Init.Values = slices.Delete(list, i, i+1)
		return true
	}
	list[i].Off += word * (1 - 2*x.rng.Int64N(2))
	return list[i].Off >= 0
}

func (x *Changing) argumentViewMoved() bool {
	b, ok := some(x, x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return x.isArgument(b) }))
	if !ok {
		return false
	}
	by := []int64{1, 2, word, -word, 2 * word}[x.rng.IntN(5)]
	if x.rng.IntN(4) == 0 {
		b.View.Len = b.View.Len.AddConst(by)
	} else {
		b.View.Off = b.View.Off.AddConst(by)
	}
	return true
}

// argumentMemoryShifted moves all values and all views of them by the same distance,
// which is harmless.
func (x *Changing) argumentMemoryShifted() bool {
	m := &x.g.Memories[args]
	by := word * (1 + x.rng.Int64N(3))
	m.Size += by
	for i := range m.Init.Values {
		m.Init.Values[i].Off += by
	}
	for _, b := range x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return b.Kind == ir.BindView && b.View.Mem == args }) {
		b.View.Off = b.View.Off.AddConst(by)
	}
	x.g.Memories[argsAlias].AliasOff += by
	return true
}

// argumentMadeInline binds inline what a single value of argument memory holds, which
// is harmless.
func (x *Changing) argumentMadeInline() bool {
	b, ok := some(x, x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return x.isArgument(b) }))
	if !ok {
		return false
	}
	y := x.g.Resolve(*b)
	if y.Kind == ir.BindView {
		return false
	}
	*b = y
	if y.Kind == ir.BindBytes {
		b.Bytes = slices.Clone(y.Bytes)
	}
	return true
}

func (x *Changing) argumentOfAnother() bool {
	list := x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return x.isArgument(b) || b.Kind != ir.BindView })
	p, ok := some(x, list)
	q, _ := some(x, list)
	if !ok || p == q {
		return false
	}
	slot := p.Slot
	*p = *q
	p.Slot = slot
	return true
}

func (x *Changing) inlineChanged() bool {
	b, ok := some(x, x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return b.Kind != ir.BindView }))
	switch {
	case !ok:
		return false
	case b.Kind == ir.BindScalar:
		b.Expr = b.Expr.AddConst(1)
	default:
		b.Bytes[x.rng.IntN(len(b.Bytes))] ^= 1
	}
	return true
}

func (x *Changing) moveView(unlisted bool) bool {
	b, ok := some(x, x.bindings(func(d *ir.Dispatch, b *ir.Binding) bool {
		return b.Kind == ir.BindView && !x.isArgument(b) && unlisted == (d.Kernel == kUnlisted && b.Slot == 2)
	}))
	if !ok {
		return false
	}
	by := word * []int64{1, -1, 2, -2}[x.rng.IntN(4)]
	switch x.rng.IntN(5) {
	case 0:
		b.View.Len = b.View.Len.AddConst(by)
	case 1:
		b.View.Mem = []ir.MemID{in, weight, state, out, scratch, other}[x.rng.IntN(6)]
	case 2:
		if len(x.g.Params) == 0 {
			return false
		}
		b.View.Off = b.View.Off.Add(ir.Linear(0, ir.Term{Param: 0, Coeff: by}))
	default:
		b.View.Off = b.View.Off.AddConst(by)
	}
	return true
}

// viewOfAnother replaces a view by one of another command, and moves what the effects
// say of it.
func (x *Changing) viewOfAnother() bool {
	device := func(_ *ir.Dispatch, b *ir.Binding) bool { return b.Kind == ir.BindView && !x.isArgument(b) }
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Dispatch); return ok }))
	if !ok {
		return false
	}
	d := x.g.Nodes[i].(*ir.Dispatch)
	v, _ := some(x, x.bindings(device))
	b := &d.Bindings[x.rng.IntN(len(d.Bindings))]
	if !device(d, b) || !b.View.Len.Equal(v.View.Len) || b.View.Equal(v.View) {
		return false
	}
	x.retarget(d, b, v.View)
	return true
}

// retarget makes a binding bind another view, and moves what the effects say of it.
func (x *Changing) retarget(d *ir.Dispatch, b *ir.Binding, to ir.View) {
	was, all := rooted(x.g, b.View), Valuations(x.g)
	now := rooted(x.g, to)
	b.View = to
	if d.Effects == nil {
		return
	}
	move := func(r *ir.Region) {
		root, off := x.g.Root(r.Mem)
		s := *r
		s.Mem, s.Off = root, r.Off.AddConst(off)
		if root == was.Mem && slices.ContainsFunc(all, func(p []uint32) bool { return meets(s, was, p) }) {
			s.Mem, s.Off = now.Mem, s.Off.Sub(was.Off).Add(now.Off)
			*r = s
		}
	}
	for i := range d.Effects.Reads {
		move(&d.Effects.Reads[i])
	}
	for i := range d.Effects.Writes {
		move(&d.Effects.Writes[i].Region)
	}
}

func (x *Changing) viewThroughAlias() bool {
	b, ok := some(x, x.bindings(func(_ *ir.Dispatch, b *ir.Binding) bool { return b.Kind == ir.BindView && b.View.Mem >= low }))
	if !ok {
		return false
	}
	b.View = rooted(x.g, b.View)
	return true
}

func (x *Changing) aliasMoved() bool {
	x.g.Memories[[]ir.MemID{low, middle, argsAlias}[x.rng.IntN(3)]].AliasOff += word
	return true
}

func (x *Changing) paramReplaced() bool {
	if len(x.g.Params) == 0 {
		return false
	}
	other := func(a ir.Affine) ir.Affine {
		if x.rng.IntN(2) == 0 {
			return ir.Linear(a.Const, ir.Term{Param: 1, Coeff: a.Coeff(0)}, ir.Term{Param: 0, Coeff: a.Coeff(1)})
		}
		return ir.Const(a.Const + a.Coeff(0)*x.rng.Int64N(4))
	}
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Dispatch); return ok }))
	if !ok {
		return false
	}
	d := x.g.Nodes[i].(*ir.Dispatch)
	b := &d.Bindings[x.rng.IntN(len(d.Bindings))]
	switch {
	case x.rng.IntN(4) == 0:
		d.Grid[0].Num = other(d.Grid[0].Num)
	case b.Kind == ir.BindView:
		b.View.Off = other(b.View.Off)
	case b.Kind == ir.BindScalar:
		b.Expr = other(b.Expr)
	}
	return true
}

func (x *Changing) barrierDropped() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok }))
	if ok {
		x.g.Nodes = slices.Delete(x.g.Nodes, i, i+1)
	}
	return ok
}

func (x *Changing) barrierAdded() bool {
	x.g.Nodes = slices.Insert(x.g.Nodes, x.rng.IntN(len(x.g.Nodes)+1), ir.Node(&ir.Barrier{}))
	return true
}

// commandsExchanged exchanges two neighbouring commands, whether or not a barrier
// stands between them.
func (x *Changing) commandsExchanged() bool {
	list := x.where(isCommand)
	if len(list) < 2 {
		return false
	}
	k := x.rng.IntN(len(list) - 1)
	n := x.g.Nodes
	n[list[k]], n[list[k+1]] = n[list[k+1]], n[list[k]]
	return true
}

func (x *Changing) commandMoved() bool {
	i, ok := some(x, x.where(isCommand))
	if !ok {
		return false
	}
	n := x.g.Nodes[i]
	x.g.Nodes = slices.Delete(x.g.Nodes, i, i+1)
	x.g.Nodes = slices.Insert(x.g.Nodes, x.rng.IntN(len(x.g.Nodes)+1), n)
	return true
}

func (x *Changing) commitWeakened() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool {
		c, ok := n.(*ir.Commit)
		_, barrier := n.(*ir.Barrier)
		return ok && c.Order != ir.OrderNone || barrier
	}))
	if ok {
		x.g.Nodes[i] = &ir.Commit{Order: ir.CommitOrder(x.rng.IntN(2) * 2)}
	}
	return ok
}

// orderedByEdges orders the commands by some of all possible edges.
func (x *Changing) orderedByEdges() bool {
	g := x.g
	g.Ordering = ir.ByEdges
	g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok })
	for i, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			g.Nodes[i] = &ir.Commit{Label: c.Label}
		}
	}
	if x.rng.IntN(2) == 0 {
		g.Nodes = slices.Insert(g.Nodes, x.rng.IntN(len(g.Nodes)+1), ir.Node(&ir.Join{ID: x.next}))
		x.next++
	}
	var ids []ir.ID
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			ids = append(ids, c.Num())
		}
	}
	of, often := x.rng.IntN(8), 8 // keep nearly all edges, or few
	for j, to := range ids {
		for i, from := range ids {
			if x.rng.IntN(often) >= of {
				g.Edges = append(g.Edges, ir.Edge{From: from, To: to, Previous: i >= j || x.rng.IntN(4) == 0})
			}
		}
	}
	g.NextHost = x.rng.IntN(4) == 0
	g.SortEdges()
	return true
}

func (x *Changing) commandDropped() bool {
	i, ok := some(x, x.where(isCommand))
	if ok {
		x.g.Nodes = slices.Delete(x.g.Nodes, i, i+1)
	}
	return ok
}

// commandRepeated runs a command a second time, directly after itself or later.
func (x *Changing) commandRepeated() bool {
	i, ok := some(x, x.where(isCommand))
	if !ok {
		return false
	}
	id := x.g.Nodes[i].(ir.Command).Num()
	h := ir.Graph{Nodes: x.g.Nodes[i : i+1], Memories: x.g.Memories, Kernels: x.g.Kernels}
	again := h.Clone().Nodes[0]
	x.setID(again, x.next, []ir.ID{id})
	if o, ok := x.from[id]; ok {
		x.from[x.next] = o
	} else {
		x.from[x.next] = id
	}
	x.next++
	at := i + 1
	if x.rng.IntN(2) == 0 {
		at += x.rng.IntN(len(x.g.Nodes) - i)
	}
	x.g.Nodes = slices.Insert(x.g.Nodes, at, ir.Node(&ir.Barrier{}), again, ir.Node(&ir.Barrier{}))
	return true
}

func (x *Changing) setID(n ir.Node, id ir.ID, from []ir.ID) {
	n.(ir.Command).Renumber(id, from)
}

func (x *Changing) setFrom(n ir.Node, from []ir.ID) {
	id := n.(ir.Command).Num()
	x.setID(n, id, from)
}

// copyForwarded makes a reader of a copy read what was copied, and may drop the copy.
// This is harmless if nobody else reads the copy and nothing was written since.
func (x *Changing) copyForwarded() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Copy); return ok }))
	if !ok {
		return false
	}
	c := x.g.Nodes[i].(*ir.Copy)
	dst := rooted(x.g, c.Dst)
	done := false
	for _, n := range x.g.Nodes[i:] {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		for k := range d.Bindings {
			if b := &d.Bindings[k]; b.Kind == ir.BindView && rooted(x.g, b.View).Equal(dst) && k == 0 {
				x.retarget(d, b, c.Src)
				done = true
			}
		}
	}
	if done && x.rng.IntN(2) == 0 {
		x.g.Nodes = slices.Delete(x.g.Nodes, i, i+1)
	}
	return done
}

// scratchRenamed moves the views of a scratch memory to another one, new or in use:
// those of all commands, or those from some command on.
func (x *Changing) scratchRenamed() bool {
	old := other
	to := scratch
	if x.rng.IntN(2) == 0 {
		to = ir.MemID(len(x.g.Memories))
		x.g.Memories = append(x.g.Memories, ir.Memory{Name: "fresh", Kind: ir.Scratch, Size: 24 * word, Alias: ir.NoMem})
	}
	by := ir.Const(word * x.rng.Int64N(12))
	first := 0
	if x.rng.IntN(3) == 0 {
		first = x.rng.IntN(len(x.g.Nodes))
	}
	move := func(v ir.View) ir.View {
		if v.Mem == old {
			v.Mem, v.Off = to, v.Off.Add(by)
		}
		return v
	}
	for _, n := range x.g.Nodes[first:] {
		switch n := n.(type) {
		case *ir.Copy:
			n.Src, n.Dst = move(n.Src), move(n.Dst)
		case *ir.Fill:
			n.Dst = move(n.Dst)
		case *ir.Dispatch:
			for k := range n.Bindings {
				if b := &n.Bindings[k]; b.Kind == ir.BindView && b.View.Mem == old {
					x.retarget(n, b, move(b.View))
				}
			}
		}
	}
	return true
}

func (x *Changing) effectChanged() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { d, ok := n.(*ir.Dispatch); return ok && d.Effects != nil }))
	if !ok {
		return false
	}
	e := x.g.Nodes[i].(*ir.Dispatch).Effects
	switch k := x.rng.IntN(6); {
	case k == 0 && len(e.Reads) > 0:
		e.Reads = e.Reads[1:]
	case k == 1:
		e.Complete = false
	case k == 2:
		e.Writes[0].Must = !e.Writes[0].Must
	case k == 3:
		e.Writes[0].Run = e.Writes[0].Run.AddConst(-word)
	case k == 4:
		e.Reads = append(e.Reads, ir.ViewOf(in, 0, word).Contiguous())
	default:
		e.Writes = nil
	}
	return true
}

func (x *Changing) kernelChanged() bool {
	k := &x.g.Kernels[x.rng.IntN(len(x.g.Kernels))]
	switch x.rng.IntN(4) {
	case 0:
		k.Library.Digest[x.rng.IntN(32)] ^= 1
	case 1:
		k.Function += "_"
	case 2:
		k.Constants[0].Bits ^= 1
	default:
		i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Dispatch); return ok }))
		if !ok {
			return false
		}
		x.g.Nodes[i].(*ir.Dispatch).Kernel = ir.KernelID(x.rng.IntN(len(x.g.Kernels)))
	}
	return true
}

func (x *Changing) gridChanged() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Dispatch); return ok }))
	if !ok {
		return false
	}
	d := x.g.Nodes[i].(*ir.Dispatch)
	switch x.rng.IntN(4) {
	case 0:
		d.Grid[0].Num = d.Grid[0].Num.AddConst(1)
	case 1:
		d.Grid[0].Div = 3 - d.Grid[0].Div
	case 2: // the same number, written in another way
		d.Grid[0] = ir.Extent{Num: d.Grid[0].Num.Scale(2), Div: 2 * d.Grid[0].Div}
	default:
		d.Threadgroup[0]++
	}
	return true
}

// carryChanged moves what a carry reads or writes, or gives it another destination.
func (x *Changing) carryChanged() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Carry); return ok }))
	if !ok {
		return false
	}
	c := ir.CloneNode(x.g.Nodes[i]).(*ir.Carry)
	x.g.Nodes[i] = c
	switch x.rng.IntN(4) {
	case 0:
		c.Src.Off = c.Src.Off.AddConst(word * (x.rng.Int64N(3) - 1))
	case 1:
		c.Dst.Off = c.Dst.Off.AddConst(word * (x.rng.Int64N(3) - 1))
	case 2:
		n := ir.Const(word * (1 + x.rng.Int64N(4)))
		c.Src.Len, c.Dst.Len = n, n
	default:
		c.Dst.Mem = in + state - c.Dst.Mem
	}
	return true
}

func (x *Changing) fillChanged() bool {
	i, ok := some(x, x.where(func(n ir.Node) bool { _, ok := n.(*ir.Fill); return ok }))
	if ok {
		x.g.Nodes[i].(*ir.Fill).Value ^= 1
	}
	return ok
}

func (x *Changing) provenanceForged() bool {
	list := x.where(isCommand)
	i, _ := some(x, list)
	j, _ := some(x, list)
	id := x.g.Nodes[j].(ir.Command).Num()
	x.setFrom(x.g.Nodes[i], []ir.ID{id})
	return true
}

// provenanceLost gives all commands new IDs, which is harmless.
func (x *Changing) provenanceLost() bool {
	from := Origins{}
	for _, i := range x.where(isCommand) {
		id := x.g.Nodes[i].(ir.Command).Num()
		if o, ok := x.from[id]; ok {
			from[x.next] = o
		} else {
			from[x.next] = id
		}
		x.setID(x.g.Nodes[i], x.next, nil)
		x.next++
	}
	x.from = from
	return true
}

func (x *Changing) interfaceChanged() bool {
	m := &x.g.Memories[[]ir.MemID{in, weight, state, out}[x.rng.IntN(4)]]
	switch x.rng.IntN(10) {
	case 8:
		m.Every = true // for anything but an output, Check reports it
	case 9:
		if len(x.g.Params) == 0 {
			return false
		}
		x.g.Params[x.rng.IntN(2)].Advance++
	case 0:
		m.DType, m.Shape = ir.F32, []int64{m.Size / word}
	case 1:
		m.Storage = ir.Private
	case 2:
		m.Align = 64
	case 3:
		m.Size += word
	case 4:
		m.Init = ir.Init{Kind: ir.InitRandom, Seed: 99}
	case 5:
		m.Name += "_"
	case 6:
		m.Kind = []ir.MemKind{ir.Input, ir.Output, ir.State, ir.Scratch}[x.rng.IntN(4)]
	default:
		if len(x.g.Params) == 0 {
			return false
		}
		x.g.Params[0].Max++
	}
	return true
}

// Mutate changes a copy of g in the given way, and perhaps in some more. ok is false if
// there was nothing to change.
func Mutate(rng *rand.Rand, g *ir.Graph, kind int) (*ir.Graph, Origins, bool) {
	x := &Changing{rng: rng, g: g.Clone(), from: Origins{}, next: 1000}
	for i := range x.g.Memories { // clones share their contents
		for j := range x.g.Memories[i].Init.Values {
			v := &x.g.Memories[i].Init.Values[j]
			v.Bytes = slices.Clone(v.Bytes)
		}
	}
	if !Changes[kind].Apply(x) {
		return nil, nil, false
	}
	for rng.IntN(4) == 0 {
		h, from := x.g.Clone(), x.from
		if Changes[rng.IntN(len(Changes))].Apply(x) && x.g.Check() == nil {
			continue
		}
		x.g, x.from = h, from
	}
	return x.g, x.from, x.g.Check() == nil
}
