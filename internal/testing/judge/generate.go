package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// word is the size in bytes of all elements in generated graphs.
const word = 4

// generator draws a graph; see [Generate].
type generator struct {
	rng     *rand.Rand
	b       *ir.Builder
	params  []ir.ParamID // pos and n, or none
	mems    []ir.MemID   // the memories that views may name, aliases included
	defined []ir.View    // what a command may read
	kernels map[string]ir.KernelID
	unknown bool // one dispatch has unknown effects
	fusible bool // there are norms with a weight of ones, and products of their results
	one     ir.MemID
	two     ir.MemID
	matrix  bool     // the columns of a matrix were written
	pending []func() // products that are still to be added
}

// Generate draws a graph of 4 to 17 commands over small memories. It has aliases,
// partial overlaps, may-writes and atomics, strided effects, matrices of which each
// column is written, a cache that is written at
// a param, states that are read before they are written, several command buffers, and
// sometimes a dispatch of unknown effects. order places its barriers; sometimes edges
// take their place. The result has no race in the sense of [Judge], with replays
// ordered as o says, and none of its results depends on undefined bytes.
func Generate(rng *rand.Rand, o Options, order func(*ir.Graph) error) (*ir.Graph, error) {
	for range 200 {
		x := &generator{rng: rng, b: ir.NewBuilder("g"), kernels: map[string]ir.KernelID{}, unknown: rng.IntN(4) == 0, fusible: rng.IntN(3) == 0}
		x.unknown = x.unknown && !x.fusible
		g, err := x.graph()
		if err != nil || Undefined(g, o) != "" {
			continue // for example, a view left its memory
		}
		if err := order(g); err != nil {
			return nil, fmt.Errorf("placing barriers: %w", err)
		}
		if Close(g, o) {
			bareCommit(rng, g, o)
			if rng.IntN(5) == 0 {
				PlaceEdges(rng, g)
			}
			return g, nil
		}
	}
	return nil, fmt.Errorf("no sound graph in 200 tries")
}

// Sound reports whether a graph has no race, within a replay or from one replay to the
// next as o orders them, for all values of the params that o looks at.
func Sound(g *ir.Graph, o Options) bool {
	o.setDefaults()
	return len(racesOf(newBareLowerer(g), valuations(g, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1))), o, 0)) == 0
}

// Close makes it possible for replays of a graph to follow one another, if it has no
// other races: by a barrier at its end, or else by ordering its commits, or else by one
// more commit.
func Close(g *ir.Graph, o Options) bool {
	if Sound(g, o) {
		return true
	}
	g.Nodes = append(g.Nodes, &ir.Barrier{})
	if Sound(g, o) {
		return true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if c, ok := n.(*ir.Commit); ok && c.Order == ir.OrderNone {
			c.Order = ir.OrderEvent
			if Sound(g, o) {
				return true
			}
		}
	}
	g.Nodes[len(g.Nodes)-1] = &ir.Commit{Order: ir.OrderEvent}
	return Sound(g, o)
}

// bareCommit tries to put a commit that orders nothing where no order across it is
// needed.
func bareCommit(rng *rand.Rand, g *ir.Graph, o Options) {
	for _, at := range rng.Perm(len(g.Nodes))[:min(8, len(g.Nodes))] {
		old := g.Nodes
		g.Nodes = slices.Insert(slices.Clone(old), at, ir.Node(&ir.Commit{}))
		if at > 0 && at < len(old) && Sound(g, o) {
			return
		}
		g.Nodes = old
	}
}

func (x *generator) chance(n int) bool { return x.rng.IntN(n) == 0 }

func (x *generator) graph() (*ir.Graph, error) {
	b := x.b
	if x.chance(2) {
		x.params = []ir.ParamID{b.Param("pos", 0, 2), b.Param("n", 1, 2)}
		b.Require(x.at(0, word, word, 1), 3*word) // pos + n <= 3
	}
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 8 * word})
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 8 * word, Init: ir.Init{Kind: ir.InitRandom, Seed: 7}})
	st := b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: 8 * word, Init: ir.FillU32(0)})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 10 * word})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 16 * word})
	t := b.Memory(ir.Memory{Name: "t", Kind: ir.Scratch, Size: 8 * word})
	lo := b.Alias("s_lo", s, 0, 8*word)
	mid := b.Alias("s_mid", s, 6*word, 8*word)
	inner := b.Alias("s_inner", mid, 2*word, 4*word)
	x.mems = []ir.MemID{st, out, out, s, s, t, t, lo, mid, inner}
	for _, m := range []ir.MemID{in, w, st} {
		x.defined = append(x.defined, ir.ViewOf(m, 0, 8*word), ir.ViewOf(m, 2*word, 4*word), ir.ViewOf(m, 0, 2*word))
	}
	if x.params != nil {
		x.defined = append(x.defined, ir.View{Mem: st, Len: x.at(0, word, word, 1)}) // the cache up to pos + n
	}
	if x.fusible {
		x.one = b.Memory(ir.Memory{Name: "one", Kind: ir.Weight, Size: word, Init: ir.FillU32(0x3f800000)})
		x.two = b.Memory(ir.Memory{Name: "two", Kind: ir.Weight, Size: word, Init: ir.FillU32(0x40000000)})
	}
	n := 3 + x.rng.IntN(8)
	pillar := x.rng.IntN(n)
	for i := range n {
		if i > 0 && x.chance(7) {
			b.Commit(ir.CommitOrder(x.rng.IntN(3)), "")
		}
		switch {
		case x.unknown && i == pillar:
			x.foreign()
		case len(x.pending) > 0 && !x.chance(3):
			x.product()
		case x.fusible && x.chance(3):
			x.norm()
		default:
			x.command()
		}
	}
	for len(x.pending) > 0 {
		x.product()
	}
	if x.chance(2) { // keeps the last results alive
		k := x.kernel("sum", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "b", ir.ReadArg), deviceArg(2, "c", ir.ReadArg), deviceArg(3, "dst", ir.WriteArg))
		e := &ir.Effects{Complete: true}
		var bs []ir.Binding
		for i := range 3 {
			v := x.defined[max(0, len(x.defined)-1-i)]
			e.Reads = append(e.Reads, v.Contiguous())
			bs = append(bs, ir.BufferArg(uint8(i), v))
		}
		dst := ir.ViewOf(out, 8*word, 2*word)
		for _, b := range bs {
			if !separate(x.b.Unfinished(), b.View, dst) {
				return nil, fmt.Errorf("the last value lies in the last bytes of the output")
			}
		}
		e.Writes = []ir.Write{{Region: dst.Contiguous(), Must: true}}
		x.dispatch(k, e, append(bs, ir.BufferArg(3, dst))...)
	} else {
		b.Copy(ir.ViewOf(out, 8*word, 2*word), x.readable(2*word), "")
	}
	if x.chance(4) {
		x.carry(in, st, out)
	}
	return b.Graph()
}

// carry carries the last bytes of the output, which are always written, to the input or
// to the state.
func (x *generator) carry(in, st, out ir.MemID) {
	for _, m := range []ir.MemID{in, st, out} {
		x.b.Unfinished().Memories[m].DType = ir.U8
	}
	dst := ir.ViewOf(in, word*x.rng.Int64N(7), 2*word)
	if x.chance(2) {
		dst.Mem = st
	}
	if x.chance(3) {
		dst.Off = x.at(dst.Off.Const%(3*word), 1, 0, word)
	}
	x.b.Carry(dst, ir.ViewOf(out, 8*word, 2*word), "")
}

// at returns c + p·pos + q·n, times on, or c if there are no params.
func (x *generator) at(c, p, q, on int64) ir.Affine {
	if x.params == nil {
		return ir.Const(c)
	}
	return ir.Linear(c, ir.Term{Param: x.params[0], Coeff: p * on}, ir.Term{Param: x.params[1], Coeff: q * on})
}

func (x *generator) somewhere() ir.View {
	m := x.mems[x.rng.IntN(len(x.mems))]
	words := x.b.Unfinished().Memories[m].Size / word
	if x.params != nil && x.chance(4) && words >= 4 {
		off := word * x.rng.Int64N(words-3)
		switch x.rng.IntN(3) {
		case 0: // one row at pos
			return ir.View{Mem: m, Off: x.at(off, word, 0, 1), Len: ir.Const(word)}
		case 1: // n rows at pos
			return ir.View{Mem: m, Off: x.at(off, word, 0, 1), Len: x.at(0, 0, word, 1)}
		default: // n rows
			return ir.View{Mem: m, Off: ir.Const(off), Len: x.at(0, 0, word, 1)}
		}
	}
	n := 1 + x.rng.Int64N(min(4, words))
	return ir.ViewOf(m, word*x.rng.Int64N(words-n+1), word*n)
}

// readable draws a defined view, of length n unless n is 0.
func (x *generator) readable(n int64) ir.View {
	for range 50 {
		// Later writes are read more often.
		i := max(x.rng.IntN(len(x.defined)), x.rng.IntN(len(x.defined)))
		v := x.defined[i]
		if v.Len.IsConst() && v.Len.Const > n && (n > 0 || x.chance(3)) { // a part of it
			k := n
			if k == 0 {
				k = word * (1 + x.rng.Int64N(v.Len.Const/word))
			}
			v.Off = v.Off.AddConst(word * x.rng.Int64N((v.Len.Const-k)/word+1))
			v.Len = ir.Const(k)
		}
		if n == 0 || v.Len.Equal(ir.Const(n)) {
			if x.chance(3) { // name the same bytes through an alias
				root, off := x.b.Unfinished().Root(v.Mem)
				v.Mem, v.Off = root, v.Off.AddConst(off)
			}
			return v
		}
	}
	return ir.ViewOf(0, 0, max(n, word))
}

// apart draws a view to write that shares no byte with the others, whatever the params:
// their root memories differ, or their hulls do not meet.
func (x *generator) apart(others ...ir.View) ir.View {
	g := x.b.Unfinished()
	for {
		v, ok := x.somewhere(), true
		for _, o := range others {
			ok = ok && separate(g, v, o)
		}
		if ok {
			return v
		}
	}
}

func separate(g *ir.Graph, a, b ir.View) bool {
	ma, oa := g.Root(a.Mem)
	mb, ob := g.Root(b.Mem)
	if ma != mb {
		return true
	}
	_, x, ok1 := g.Range(a.End().AddConst(oa).Sub(b.Off.AddConst(ob)))
	_, y, ok2 := g.Range(b.End().AddConst(ob).Sub(a.Off.AddConst(oa)))
	return ok1 && x <= 0 || ok2 && y <= 0
}

// kernel returns a kernel of that name, builtin or without declaration.
func (x *generator) kernel(name string, args ...ir.Arg) ir.KernelID {
	id, ok := x.kernels[name]
	if ok {
		return id
	}
	k := ir.Kernel{Name: name, Function: name, Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal", Digest: ir.Digest{1}}, Args: args}
	if args == nil {
		k = msl.Declarations(name)[0].Kernel(name)
	} else {
		k.Args = append(k.Args, ir.Arg{Slot: 0, Name: "shared", Kind: ir.ThreadgroupArg, Type: ir.F32})
		k.Constants = []ir.FunctionConstant{{Index: 3, Name: "c", Type: ir.U32, Bits: uint64(x.rng.IntN(4))}}
	}
	id = x.b.Kernel(k)
	x.kernels[name] = id
	return id
}

func deviceArg(slot uint8, name string, access ir.ArgAccess) ir.Arg {
	return ir.Arg{Slot: slot, Name: name, Kind: ir.DeviceArg, Access: access, Type: ir.F32}
}

func (x *generator) dispatch(k ir.KernelID, e *ir.Effects, bindings ...ir.Binding) *ir.Dispatch {
	return x.b.Dispatch(ir.Dispatch{Kernel: k, Bindings: bindings, Effects: e, Threadgroup: [3]uint32{4, 1, 1},
		Grid: [3]ir.Extent{{Num: x.at(2, 0, 1, 1), Div: 1}, ir.Ext(1), ir.Ext(1)}})
}

func (x *generator) command() {
	b := x.b
	value := ir.BytesArg(4, ir.ValueBytes(uint32(x.rng.IntN(3))))
	constant := ir.Arg{Slot: 4, Name: "v", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}
	switch kind := x.rng.IntN(16); {
	case kind == 0:
		v := x.apart()
		b.Fill(v, byte(x.rng.IntN(2)), "")
		x.defined = append(x.defined, v)
	case kind <= 2:
		src := x.readable(0)
		dst := x.apart(src)
		if !src.Len.Equal(dst.Len) {
			src = x.readable(word)
			dst = x.apart(src)
			for !dst.Len.IsConst() || !separate(b.Unfinished(), ir.View{Mem: dst.Mem, Off: dst.Off, Len: ir.Const(word)}, src) {
				dst = x.apart(src)
			}
			dst.Len = ir.Const(word)
		}
		b.Copy(dst, src, "")
		x.defined = append(x.defined, dst)
	case kind <= 5: // dst = f(src)
		k := x.kernel("map", deviceArg(0, "src", ir.ReadArg), deviceArg(1, "dst", ir.WriteArg), constant)
		src := x.readable(0)
		dst := x.apart(src)
		if x.params != nil && x.chance(2) {
			value = ir.ScalarArg(4, ir.U32, x.at(0, 1, 0, 1))
		}
		x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}},
			ir.BufferArg(0, src), ir.BufferArg(1, dst), value)
		x.defined = append(x.defined, dst)
	case kind <= 8: // dst = f(a, b)
		k := x.kernel("zip", deviceArg(0, "a", ir.ReadArg), deviceArg(1, "b", ir.ReadArg), deviceArg(2, "dst", ir.WriteArg), constant)
		p, q := x.readable(0), x.readable(0)
		dst := x.apart(p, q)
		x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{p.Contiguous(), q.Contiguous()}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}},
			ir.BufferArg(0, p), ir.BufferArg(1, q), ir.BufferArg(2, dst), value)
		x.defined = append(x.defined, dst)
	case kind <= 10: // dst may keep old bytes
		k := x.kernel("scatter", deviceArg(0, "src", ir.ReadArg), deviceArg(1, "dst", ir.ReadWriteArg))
		dst := x.readable(0)
		for x.b.Unfinished().Memories[dst.Mem].Kind.ReadOnly() {
			dst = x.readable(0)
		}
		src := x.readable(0)
		for !separate(b.Unfinished(), src, dst) {
			src = x.defined[x.rng.IntN(6)] // an input or a weight
		}
		x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: dst.Contiguous(), Atomic: x.chance(4)}}},
			ir.BufferArg(0, src), ir.BufferArg(1, dst))
	case kind <= 12: // columns of a matrix, written or read
		k := x.kernel("column", deviceArg(0, "src", ir.ReadArg), deviceArg(1, "dst", ir.WriteArg))
		width, column := 2+x.rng.Int64N(2), x.rng.Int64N(2)
		var m ir.View
		write := x.chance(2)
		if write {
			m = ir.ViewOf(x.mems[x.rng.IntN(6)], 0, 8*word)
		} else {
			m = ir.ViewOf(2, 0, 8*word) // the state
		}
		if write && !x.matrix && x.chance(2) {
			x.matrix = true
			x.columns(k)
			return
		}
		strided := ir.Region{Mem: m.Mem, Off: m.Off.AddConst(column * word), Run: ir.Const(word), Dims: []ir.Dim{{Count: ir.Const(2), Stride: width * word}}}
		if write {
			src := x.readable(0)
			if !separate(b.Unfinished(), src, m) {
				src = x.defined[x.rng.IntN(6)]
			}
			x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: strided, Must: true}}}, ir.BufferArg(0, src), ir.BufferArg(1, m))
			for i := range int64(2) {
				x.defined = append(x.defined, ir.ViewOf(m.Mem, (column+i*width)*word, word))
			}
			return
		}
		dst := x.apart(m)
		x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{strided}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}}, ir.BufferArg(0, m), ir.BufferArg(1, dst))
		x.defined = append(x.defined, dst)
	default: // a declared kernel: c = a + b of f32s
		k := x.kernel("vv_Addfloat32")
		n := word * (1 + x.rng.Int64N(3))
		p, q := x.readable(n), x.readable(n)
		if p.Len.IsConst() && q.Len.IsConst() {
			n = min(n, p.Len.Const, q.Len.Const)
		}
		p.Len, q.Len = ir.Const(n), ir.Const(n)
		dst := x.apart(p, q)
		for !dst.Len.IsConst() || dst.Len.Const < n {
			dst = x.apart(p, q)
		}
		dst.Len = ir.Const(n)
		d := x.dispatch(k, nil, ir.BufferArg(0, p), ir.BufferArg(1, q), ir.BufferArg(2, dst))
		d.GridKind, d.Grid[0] = ir.Threads, ir.Ext(n/word)
		d.Threadgroup[0] = uint32(n / word)
		x.defined = append(x.defined, dst)
	}
}

// columns writes the columns of a matrix one after another, sometimes more than once, and
// sometimes as many rows as a param says. Sometimes the rows behind that are written too.
// Together they leave no byte out, so that the matrix can be read.
func (x *generator) columns(k ir.KernelID) {
	m := ir.ViewOf(x.mems[x.rng.IntN(6)], 0, 8*word)
	width := 1 + x.rng.Int64N(3)
	rows := ir.Const(2)
	if x.chance(2) {
		rows = x.at(0, 0, 1, 1)
		if x.params == nil {
			rows = ir.Const(1)
		}
	}
	column := func(at, n ir.Affine, to int64, count ir.Affine) {
		src := x.defined[x.rng.IntN(6)] // an input or a weight
		if y := x.readable(0); separate(x.b.Unfinished(), y, m) {
			src = y
		}
		r := ir.Region{Mem: m.Mem, Off: m.Off.Add(at), Run: n, Dims: []ir.Dim{{Count: count, Stride: to}}}
		if count.Equal(ir.Const(1)) {
			r.Dims = nil
		}
		x.dispatch(k, &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: r, Must: true}}}, ir.BufferArg(0, src), ir.BufferArg(1, m))
	}
	order := x.rng.Perm(int(width))
	if x.chance(3) {
		order = append(order, order[0])
	}
	for _, c := range order {
		n := int64(1)
		if int64(c)+1 < width && x.chance(4) {
			n = 2 // over its neighbour
		}
		column(ir.Const(int64(c)*word), ir.Const(n*word), width*word, rows)
	}
	length := rows.Scale(width * word)
	if x.chance(3) && width < 3 { // a row behind them
		column(length, ir.Const(width*word), word, ir.Const(1))
		length = length.AddConst(width * word)
	}
	x.defined = append(x.defined, ir.View{Mem: m.Mem, Off: m.Off, Len: length})
}

// norm adds a norm with a weight of ones (sometimes of twos). Its product with a scale
// comes later.
func (x *generator) norm() {
	b := x.b
	axis, rows := int64(2+2*x.rng.IntN(2)), int64(1+x.rng.IntN(2))
	n := axis * rows * word
	src := x.readable(n)
	mid := x.apart(src)
	for range 20 {
		if mid.Len.IsConst() && mid.Len.Const == n && (b.Unfinished().Memories[mid.Mem].Kind == ir.Scratch || x.chance(8)) {
			break
		}
		mid = x.apart(src)
	}
	if !mid.Len.IsConst() || mid.Len.Const != n || src.Len.Const != n {
		x.command()
		return
	}
	weight := x.one
	if x.chance(8) {
		weight = x.two
	}
	d := x.dispatch(x.kernel("rmsfloat32"), nil, ir.BufferArg(0, src), ir.BufferArg(1, ir.ViewOf(weight, 0, word)), ir.BufferArg(2, mid),
		ir.BytesArg(3, ir.ValueBytes(float32(1e-5))), ir.BytesArg(4, ir.ValueBytes(uint32(axis))), ir.BytesArg(5, ir.ValueBytes(uint32(0))))
	d.GridKind, d.Grid[0], d.Threadgroup[0] = ir.Threads, ir.Ext(32*rows), 32
	if x.chance(4) {
		x.defined = append(x.defined, mid)
	}
	x.pending = append(x.pending, func() {
		scale := ir.ViewOf(1, word*x.rng.Int64N(8-axis+1), axis*word)
		if x.chance(3) {
			scale = x.readable(axis * word)
		}
		if !scale.Len.IsConst() || scale.Len.Const != axis*word {
			return
		}
		dst := x.apart(mid, scale)
		for range 40 {
			if dst.Len.IsConst() && dst.Len.Const == n {
				break
			}
			dst = x.apart(mid, scale)
		}
		if x.chance(6) && separate(b.Unfinished(), mid, scale) {
			dst = mid
		}
		if !dst.Len.IsConst() || dst.Len.Const != n {
			return
		}
		args := []ir.View{mid, scale}
		strides := [][]byte{ir.ValueBytes([]int64{axis, 1}), ir.ValueBytes([]int64{0, 1})}
		if x.chance(3) {
			args[0], args[1], strides[0], strides[1] = args[1], args[0], strides[1], strides[0]
		}
		bs := []ir.Binding{ir.BufferArg(0, args[0]), ir.BufferArg(1, args[1]), ir.BufferArg(2, dst)}
		var d *ir.Dispatch
		if rows == 1 && x.chance(2) {
			d = x.dispatch(x.kernel("vv_Multiplyfloat32"), nil, bs...)
			d.Grid[0], d.Threadgroup[0] = ir.Ext(axis), uint32(axis)
		} else {
			d = x.dispatch(x.kernel("g2_Multiplyfloat32"), nil, append(bs, ir.BytesArg(3, strides[0]), ir.BytesArg(4, strides[1]))...)
			d.Grid[0], d.Grid[1], d.Threadgroup[0] = ir.Ext(axis), ir.Ext(rows), uint32(axis)
		}
		d.GridKind = ir.Threads
		x.defined = append(x.defined, dst)
	})
}

// product adds the oldest product that is still to be added.
func (x *generator) product() {
	f := x.pending[0]
	x.pending = x.pending[1:]
	f()
}

// foreign adds a dispatch of unknown effects.
func (x *generator) foreign() {
	k := x.kernel("foreign", deviceArg(0, "src", ir.ReadArg), deviceArg(1, "dst", ir.WriteArg))
	src := x.readable(0)
	dst := x.apart(src)
	var e *ir.Effects
	if x.chance(2) {
		e = &ir.Effects{Reads: []ir.Region{src.Contiguous()}}
	}
	x.dispatch(k, e, ir.BufferArg(0, src), ir.BufferArg(1, dst))
}
